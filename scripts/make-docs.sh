#!/bin/sh
# Writes what of docs/ is made from the program and its source: make-docs.sh BUILD. A page is
# replaced once it is whole: where its maker is missing or fails, it stays as it is, and nothing is
# left beside it.
set -eu
cd "$(dirname "$0")/.."
for tool in config_docs row_docs; do
    [ -x "$1/$tool" ] || {
        echo "make-docs.sh: $1/$tool is not built: ninja -C $1 config_docs row_docs" >&2
        exit 1
    }
done
trap 'rm -f docs/*.new' EXIT
make_page() { # PAGE COMMAND…
    page=docs/$1
    shift
    "$@" >"$page.new"
    mv "$page.new" "$page"
}
make_page config.md "$1/config_docs"
make_page rows.md "$1/row_docs"
if command -v python3 >/dev/null; then
    make_page rooms.svg python3 scripts/rooms_picture.py
    make_page errors.md python3 scripts/errors_page.py
else
    echo "docs/rooms.svg and docs/errors.md are left as they are: no python3"
fi
