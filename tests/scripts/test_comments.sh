# in check
# Comments that name a file of the tree, or a page of docs/, name one that is there.
fail() { echo "$1" >&2; exit 1; }
cd "$SOURCE" || exit 1

# What stands in comments: lines of a block begin with " *".
find src include tests examples bench -name '*.[ch]' | sort | while read -r file; do
    sed -n 's/^ *\(\/\*.*\)/\1/p; s/^ *\(\* .*\)/\1/p; s/^.*[;{},] *\(\/\*.*\)/\1/p' "$file" | sed "s|^|$file: |"
done >"$OLDPWD/comments"
cd "$OLDPWD" || exit 1
[ "$(wc -l <comments)" -gt 3000 ] || fail "only $(wc -l <comments) lines of comments found"

# "host/board.c", "mpi.c", "-lm"; not "a.b.c", and not the system's: <time.h>.
cut -d: -f2- comments | grep -oE '(^|[ ("])([a-z0-9_]+/)*[a-z][a-z0-9_]+\.[ch]\b' | sed 's/^[ ("]*//' |
    sort -u | grep -vxF llm.c >files # the name of a program
[ "$(wc -l <files)" -gt 20 ] || fail "only $(wc -l <files) names of files found"
while read -r name; do
    [ -n "$(find "$SOURCE"/src "$SOURCE"/include "$SOURCE"/tests "$SOURCE"/bench "$SOURCE"/examples \
        -path "*/$name" | head -1)" ] || fail "no such file: $(grep -F "$name" comments | head -1)"
done <files
grep -oE 'docs/[a-z0-9_-]+\.md' comments | sort -u | while read -r page; do
    [ -e "$SOURCE/$page" ] || fail "no such page: $(grep -F "$page" comments | head -1)"
done || exit 1
grep -nE 'docs/[a-z-]+\.md, "' comments | while IFS= read -r line; do
    page=$(echo "$line" | sed 's/.*\(docs\/[a-z-]*\.md\), ".*/\1/')
    head=$(echo "$line" | sed 's/.*docs\/[a-z-]*\.md, "\([^"]*\)".*/\1/')
    grep -qE "^#+ $head\$" "$SOURCE/$page" || fail "no such section: $line"
done || exit 1
if grep -iE 'design page' comments; then fail "the design page is not in the tree"; fi
exit 0
