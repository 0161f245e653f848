#!/bin/sh
# Puts standard input into a page of docs, between the markers of a name: page-part.sh PAGE NAME
set -eu
page=$1 name=$2
grep -q "<!-- $name: begin" "$page" || { echo "no markers of $name in $page" >&2; exit 1; }
new=$(mktemp)
part=$(mktemp)
trap 'rm -f "$new" "$part"' EXIT
cat >"$part"
awk -v name="$name" -v part="$part" '
    index($0, "<!-- " name ": end") { inside = 0 }
    !inside { print }
    index($0, "<!-- " name ": begin") {
        inside = 1
        while ((getline line <part) > 0) print line
    }' "$page" >"$new"
cat "$new" >"$page"
