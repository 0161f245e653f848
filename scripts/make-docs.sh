#!/bin/sh
# Writes what of docs/ is made from the program and its source: make-docs.sh BUILD
set -eu
cd "$(dirname "$0")/.."
"$1/config_docs" >docs/config.md.new
mv docs/config.md.new docs/config.md
"$1/row_docs" >docs/rows.md.new
mv docs/rows.md.new docs/rows.md
if command -v python3 >/dev/null; then
    python3 scripts/rooms_picture.py >docs/rooms.svg.new
    mv docs/rooms.svg.new docs/rooms.svg
    python3 scripts/errors_page.py >docs/errors.md.new
    mv docs/errors.md.new docs/errors.md
else
    echo "docs/rooms.svg and docs/errors.md are left as they are: no python3"
fi
