#!/bin/sh
# Writes plain English text, a file for each book, from Debian's package bible-kjv: demo-text.sh DIR
# DIR/train gets most chapters; every 30th goes into DIR/held-out, and is never trained on.
set -eu
mkdir -p "$1.new/train" "$1.new/held-out"
bible -f 'gen1:1-rev22:21' | awk -v directory="$1.new" '
# "Ge1:2 And the earth was …": book and chapter, verse, text
{
    chapter = $1
    sub(/:.*/, "", chapter)
    book = chapter
    sub(/[0-9]+$/, "", book)
    if (chapter != last) {
        if (file != "") print "" >>file
        chapters++
        name = directory (chapters % 30 ? "/train/" : "/held-out/") book ".txt"
        if (name != file && file != "") close(file)
        file = name
        last = chapter
    }
    sub(/^[^ ]+ /, "")
    print >>file
}'
rm -rf "$1"
mv "$1.new" "$1"
