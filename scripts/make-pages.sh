#!/bin/sh
# Writes the manual pages and the completion of bash, zsh and fish from the table of options of the
# program: make-pages.sh SIFR DIR. The build runs it (cmake/pages.cmake), `make install` lays down
# DIR/man1, DIR/bash, DIR/zsh and DIR/fish. The pages' date is that of SOURCE_DATE_EPOCH, else of the
# changelog.
set -eu
export LC_ALL=C
sifr=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
if [ "${SOURCE_DATE_EPOCH:-}" ]; then
    date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)
else
    date=$(date -u -r "$here/../CHANGELOG.md" +%Y-%m-%d)
fi
rm -rf "$out.new"
mkdir -p "$out.new/man1" "$out.new/bash" "$out.new/zsh" "$out.new/fish"
"$sifr" --help=table >"$out.new/table"
awk -v out="$out.new/man1" -v date="$date" -v version="$("$sifr" --version)" \
    -f "$here/pages/man.awk" "$out.new/table"
awk -v fixed="$here/pages/complete.bash" -f "$here/pages/bash.awk" "$out.new/table" >"$out.new/bash/sifr"
awk -f "$here/pages/short.awk" -f "$here/pages/zsh.awk" "$out.new/table" >"$out.new/zsh/_sifr"
awk -f "$here/pages/short.awk" -f "$here/pages/fish.awk" "$out.new/table" >"$out.new/fish/sifr.fish"
rm -rf "$out"
mv "$out.new" "$out"
