#!/bin/sh
# Writes the pages of docs/ that are made from tables of the program: make-docs.sh BUILD
set -eu
cd "$(dirname "$0")/.."
"$1/config_docs" >docs/config.md.new
mv docs/config.md.new docs/config.md
"$1/row_docs" >docs/rows.md.new
mv docs/rows.md.new docs/rows.md
