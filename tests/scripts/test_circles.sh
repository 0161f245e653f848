#!/bin/sh
# in check
# Files of src/ call each other in one direction: none calls a file that calls it, by others or
# directly. Read from the symbols of the build's objects. Inside of the folders of `recursive` there
# may be circles: what they do goes round by its nature, from an expression to its parts, which are
# expressions, and from a list of ops to the lists of its tiles. That of `left` has one that
# is still to be opened.
set -eu
recursive="text/template text/tokenizer plan/lower"
left="device/cpu"
failed=0

# "CALLED CALLER" of each call from one of the files SOURCES to another, by what nm -A says of their
# objects on standard input: "BUILD/X.dir/src/FILE.c.o:[ADDRESS] TYPE NAME".
calls() { # SOURCES
    awk -v folders="$recursive $left" '
        function both_in_a_folder(a, b,   i, n, list) {
            n = split(folders, list, " ")
            for (i = 1; i <= n; i++)
                if (index(a, list[i] "/") == 1 && index(b, list[i] "/") == 1) return 1
            return 0
        }
        NR == FNR { there[$1]; next }
        { file = $1; sub(/^.*\.dir\/src\//, "", file); sub(/\.o:.*$/, "", file) }
        !(file in there) { next } # left over from a source that is gone
        $(NF - 1) == "T" { home[$NF] = file }
        $(NF - 1) == "U" { from[++count] = file; name[count] = $NF }
        END {
            for (i = 1; i <= count; i++) {
                to = home[name[i]]
                if (to != "" && to != from[i] && !both_in_a_folder(to, from[i])) print to, from[i]
            }
        }' "$1" - | sort -u
}

# tsort names the files of each circle.
check() { # SOURCES SYMBOLS
    calls "$1" <"$2" | tsort >/dev/null
}

(cd "$SOURCE/src" && find . -name '*.c' | sed 's,^\./,,') >sources
find "$BUILD/CMakeFiles" -path '*.dir/src/*.o' -exec nm -A {} + 2>/dev/null >symbols
# Builds without Parquet lack a few objects; a build that was not finished lacks many.
built=$(grep -o '\.dir/src/[^:]*\.o:' symbols | sort -u | sed 's,^\.dir/src/,,; s,\.o:$,,' |
    grep -cxFf - sources) || true
[ "$((10 * built))" -gt "$((9 * $(wc -l <sources)))" ] || {
    echo "only $built of $(wc -l <sources) sources have objects: finish the build first"
    failed=1
}
check sources symbols || { echo "files call each other in a circle: let both call a third"; failed=1; }

# That it can fail: two files that call each other, and in a folder where they may.
for folder in engine text/template; do
    for pair in "a b" "b a"; do
        echo "x.dir/src/$folder/${pair% *}.c.o:0000 T ${pair% *}"
        echo "x.dir/src/$folder/${pair% *}.c.o:     U ${pair#* }"
    done >"$(basename $folder)"
    printf '%s\n' $folder/a.c $folder/b.c >>two
done
! check two engine 2>/dev/null || { echo "a circle is not found"; failed=1; }
check two template || { echo "a circle in a folder of recursion is refused"; failed=1; }
exit $failed
