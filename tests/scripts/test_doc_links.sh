# in check
# Every relative link of a page leads to a file that is there, and its anchor to a heading of it.
# Every source file that a page names in code quotes is there, too, and a heading is a line of its
# own.
fail() { echo "$1" >&2; exit 1; }
work=$PWD
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
# A heading into which its paragraph was wrapped goes on behind a full stop.
if grep -nE '^#+ .*[a-z)`"][.] [A-Z]' $pages; then fail "these headings go on as text: break the line"; fi
[ "$count" -gt 20 ] || fail "only $count links were found"

# Files that pages name: with a path from the tree's root or the end of one, or by their name alone;
# NAME, ROOM and * stand for anything. Of others: files of CUDA, DeepSpeed and llama.cpp.
others="cuda.h cublasLt.h zero_to_fp32.py deepspeed/runtime/pipe/engine.py convert_hf_to_gguf.py"
named() { # PAGE…: "PAGE FILE" of each
    for page in "$@"; do
        grep -oE '`([A-Za-z0-9_.*-]+/)*[A-Za-z0-9_*-]+\.(c|h|inc|def|cu|sh|py|cmake)`' "$page" |
            tr -d '`' | sort -u | sed "s,^,$page ,"
        grep -oE '`(src|tests|bench|scripts|examples|include|cmake)/[A-Za-z0-9_./*-]+\.[a-z]+`' \
            "$page" | tr -d '`' | sort -u | sed "s,^,$page ,"
    done
}
missing() { # of `named`, those that are not there
    find src tests bench scripts examples include cmake -type f |
        awk -v others="$others" '
            BEGIN { n = split(others, list, " "); for (i = 1; i <= n; i++) known[list[i]] = 1 }
            FILENAME == "-" {
                files[++count] = "/" $0
                for (end = $0; sub("^/*[^/]+/", "", end);) known[end] = 1
                known[$0] = 1
                next
            }
            $2 in known { next }
            {
                text = $2; gsub("[.]", "[.]", text); gsub("NAME|ROOM|[*]", "[^/]*", text)
                there = 0
                if (text ~ "[*]")
                    for (i = 1; i <= count && !there; i++) there = files[i] ~ "/" text "$"
                if (!there) print $1 ": no such file: " $2
            }' - "$1"
}
named $pages >"$work/names"
[ "$(wc -l <"$work/names")" -gt 200 ] || fail "only $(wc -l <"$work/names") files are named"
missing "$work/names" >"$work/missing"
cat "$work/missing" >&2
bad=$((bad + $(wc -l <"$work/missing")))

# The test itself: of these four, the last two are not there.
echo '`src/train/loop.c` `op_NAME.c` `train/hoop.c` `src/config/import_known_*.inc`' >"$work/page"
named "$work/page" >"$work/names"
[ "$(missing "$work/names" | sort -u | wc -l)" = 2 ] || fail "the test: $(missing "$work/names")"
[ "$bad" = 0 ] || fail "$bad links lead nowhere"
