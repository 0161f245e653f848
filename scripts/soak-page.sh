#!/bin/sh
# Puts the output of long tests into their page, between two markers:
# soak-page.sh RESULTS.xml BUILD COMMIT PAGE TEST…. RESULTS.xml was written by `ctest --output-junit`.
# Each test of it gets its part anew, with the date; other parts stay. TEST…: all long tests, in the
# order of the page; parts of others go.
set -eu
results=$1 build=$2 commit=$3 page=$4
shift 4
[ -s "$results" ] || {
    echo "soak-page.sh: $results: no results, so $page stays as it was" >&2
    exit 1
}
[ "$(grep -cE '^<!-- soak: (begin|end)' "$page")" = 2 ] || {
    echo "soak-page.sh: $page has no lines '<!-- soak: begin' and '<!-- soak: end'" >&2
    exit 1
}

# The machine in few words: its threads, and the widest vectors of which sifr has kernels.
machine() {
    "$build/sifr" doctor --json | awk '
        /"cpus":/ { gsub(/[^0-9]/, ""); cpus = $0 }
        /"avx2": true/ { set = "AVX2" }
        /"avx512f": true/ { set = "AVX-512" }
        END { print cpus " cores, " (set ? set : "no AVX2") }'
}
# Parts as they stand in the page: a line of the test, four columns in, then its output, eight.
parts_of() { # RESULTS
    awk -v of="$(date -u +%Y-%m-%d), commit $commit, $(machine)" '
    function attribute(name,    text) {
        if (!match($0, name "=\"[^\"]*\"")) return ""
        return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 3)
    }
    function plain(text) {
        gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text)
        gsub(/&#39;|&apos;/, "\047", text); gsub(/&amp;/, "\\&", text)
        return text
    }
    /<testcase / {
        result = attribute("status") == "run" ? "passed" : attribute("status") == "fail" ? "failed" : "not run"
        seconds = attribute("time") + 0
        printf "    %s: %s, %d:%02d min (%s)\n", attribute("name"), result, seconds / 60, seconds % 60, of
    }
    /<system-out>/ { inside = 1; sub(/.*<system-out>/, "") }
    inside {
        ends = sub(/<\/system-out>.*/, "")
        # Of a failure, which may have the logs of whole suites, only what counts.
        if (/^(skipped|failed): / || /^[0-9]+ (skipped|passed|runs)/) print "        " plain($0)
        if (ends) inside = 0
    }' "$1"
}
{
    sed '/^<!-- soak: begin/q' "$page"
    echo
    {
        sed '1,/^<!-- soak: begin/d; /^<!-- soak: end/,$d' "$page"
        parts_of "$results"
    } | awk -v names="$*" '
        !/^        [^ ]/ { name = "" }
        match($0, /^    [^ :]+: /) {
            name = substr($0, 5, RLENGTH - 6)
            text[name] = ""
        }
        name != "" { text[name] = text[name] $0 "\n" }
        END {
            count = split(names, order, " ")
            for (i = 1; i <= count; i++) {
                part = text[order[i]]
                if (part == "") {
                    printf "    %s: has not run yet\n", order[i]
                    missing++
                    continue
                }
                printf "%s", part
                line = substr(part, 1, index(part, "\n"))
                passed += line ~ /: passed, /
                failed += line ~ /: failed, /
                match(line, /[0-9]+:[0-9][0-9] min/)
                split(substr(line, RSTART, RLENGTH - 4), time, ":")
                seconds += time[1] * 60 + time[2]
            }
            printf "    %d passed, %d failed", passed, failed
            if (count - passed - failed) printf ", %d not run", count - passed - failed
            printf "; together %d:%02d min\n", seconds / 60, seconds % 60
            if (seconds > 9000) print "    more than the 150 min that all may take together"
        }'
    echo
    sed -n '/^<!-- soak: end/,$p' "$page"
} >"$page.new"
mv "$page.new" "$page"
