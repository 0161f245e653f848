# in check
# Every relative link of a page leads to a file that is there, and its anchor to a heading of it.
# Every file of the tree that a page of docs/, README or CONTRIBUTING names in code quotes is there,
# too.
fail() { echo "$1" >&2; exit 1; }
cd "$SOURCE" || exit 1
pages=$(find . -name '*.md' -not -path './build*' -not -path './.*/*' | sort)
[ -n "$pages" ] || fail "no pages"

# The anchors of a page, as GitHub makes them: lower case, no punctuation, hyphens for spaces.
anchors() {
    sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

bad=0
count=0
for page in $pages; do
    for link in $(sed '/^    /d; s/`[^`]*`//g' "$page" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//'); do
        case $link in *://* | mailto:*) continue ;; esac
        count=$((count + 1))
        file=${link%%#*}
        target=$page
        [ -z "$file" ] || target=$(dirname "$page")/$file
        if [ ! -e "$target" ]; then
            echo "$page: no such file: $link" >&2
            bad=$((bad + 1))
        elif [ "$link" != "$file" ] && ! anchors "$target" | grep -qxF "${link#*#}"; then
            echo "$page: no such heading: $link" >&2
            bad=$((bad + 1))
        fi
    done
done
[ "$count" -gt 20 ] || fail "only $count links were found"

for page in docs/*.md README.md CONTRIBUTING.md; do
    for file in $(grep -oE '`(src|tests|bench|scripts|examples|include|cmake)/[A-Za-z0-9_./-]+\.[a-z]+`' "$page" | tr -d '`' | sort -u); do
        case $file in *NAME*) continue ;; esac
        [ -e "$file" ] || { echo "$page: no such file: $file" >&2; bad=$((bad + 1)); }
    done
done
[ "$bad" = 0 ] || fail "$bad links lead nowhere"
