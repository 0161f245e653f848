#!/bin/sh
# Runs one test script in a fresh directory, which is removed afterwards: run-script.sh SCRIPT
set -eu
directory=$(mktemp -d "${TMPDIR:-/tmp}/sifr-test.XXXXXX")
trap 'rm -rf "$directory"' EXIT
cd "$directory"
bash -eu "$1"
