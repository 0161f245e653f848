# What docs/memory.md, docs/offload.md and the pages that lead through a job show of `sifr plan` is
# what it prints: made anew they have the same words, and figures within 5 % (scratch depends on the
# processor; the program's own memory is left out).
# not under sanitizers (test_search, test_plan are)
mkdir pages
cp $(grep -l '(scripts/memory_page.sh) -->$' "$SOURCE"/docs/*.md) pages
"$SOURCE/scripts/memory_page.sh" "$SIFR" "$PWD/pages"
[ "$(grep -c '^    \$ sifr plan ' pages/memory.md)" = 7 ] || { echo "not all commands are there"; exit 1; }
[ "$(grep -c '^| .* on disk | .* GiB | .* % |$' pages/offload.md)" = 4 ] || { echo "not all rows are there"; exit 1; }
# same FILE: the words of a page, figures as they are, a word a line
words() { sed '/program itself takes/d; s/(\([^ ]*\) ranks share.*//; s/less .* that the program.*//' "$1" |
    tr -s ' ' '\n'; }
for page in $(basename -s .md pages/*.md); do
    words "$SOURCE/docs/$page.md" >old
    words pages/$page.md >new
    paste -d ' ' old new | awk -v page="$page" '
        function figure(word) { gsub(/[,%()+]/, "", word); return word }
        $1 == $2 { next }
        {
            a = figure($1); b = figure($2)
            if (a ~ /^-?[0-9.e+]+$/ && b ~ /^-?[0-9.e+]+$/) {
                off = a - b; off = off < 0 ? -off : off; size = a < 0 ? -a : a
                if (off <= size / 20 || off <= 0.3) next
            }
            print "docs/" page ".md says " $1 ", the program " $2; bad = 1
        }
        END { exit bad }' || { echo "run scripts/memory_page.sh, and read what it changed"; exit 1; }
done
