#!/bin/sh
# Keeps the results of long tests: soak-page.sh RESULTS.xml BUILD COMMIT PAGE OUTPUT TEST….
# RESULTS.xml was written by `ctest --output-junit`. OUTPUT has a part for each test: its result with
# time, date, commit and machine, then what it printed; each test of RESULTS.xml gets its part anew,
# other parts stay. PAGE gets the table of all parts, between two markers. TEST…: all long tests, in
# the order of both; parts of others go.
set -eu
results=$1 build=$2 commit=$3 page=$4 output=$5
shift 5
[ -s "$results" ] || {
    echo "soak-page.sh: $results: no results, so $page and $output stay as they were" >&2
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
# Parts as they stand in OUTPUT: a line of the test, then what it printed, four columns in.
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
        printf "%s: %s, %d:%02d min (%s)\n", attribute("name"), result, seconds / 60, seconds % 60, of
    }
    /<system-out>/ { inside = 1; sub(/.*<system-out>/, "") }
    inside {
        ends = sub(/<\/system-out>.*/, "")
        # Of a failure, which may have the logs of whole suites, only what counts.
        if (/^(skipped|failed): / || /^[0-9]+ (skipped|passed|runs|pages)/) print "    " plain($0)
        if (ends) inside = 0
    }' "$1"
}
# All parts, in order.
{
    echo 'What the long tests printed when each last ran. Written by "make soak": docs/soak.md.'
    echo
    {
        [ ! -e "$output" ] || sed 1,2d "$output"
        parts_of "$results"
    } | awk -v names="$*" '
        /^[^ ]/ { name = $0; sub(/: .*/, "", name); text[name] = "" }
        { text[name] = text[name] $0 "\n" }
        END {
            count = split(names, order, " ")
            for (i = 1; i <= count; i++) printf "%s", text[order[i]]
        }'
} >"$output.new"
# The table of them: OUTPUT's "NAME: RESULT, TIME min (DATE, commit COMMIT, MACHINE)", last lines.
table_of() { # OUTPUT TESTS
    sed 1,2d "$1" | awk -v names="$2" '
        /^[^ ]/ {
            name = $0
            sub(/: .*/, "", name)
            match($0, /[0-9]+:[0-9][0-9] min/)
            time[name] = substr($0, RSTART, RLENGTH - 4)
            result[name] = substr($0, length(name) + 3, RSTART - length(name) - 5)
            about = substr($0, RSTART + RLENGTH + 2)
            date[name] = substr(about, 1, 10)
            if (match(about, /commit [^,]*, /)) commit[name] = substr(about, RSTART + 7, RLENGTH - 9)
            sub(/^[^,]*, (commit [^,]*, )?/, "", about)
            sub(/\)$/, "", about)
            machine[name] = about
            next
        }
        { sub(/^ */, ""); last[name] = $0 }
        END {
            print "| test | result | min | date | commit | machine | last line |"
            print "|---|---|---|---|---|---|---|"
            count = split(names, order, " ")
            for (i = 1; i <= count; i++) {
                name = order[i]
                if (!(name in result)) {
                    printf "| %s | has not run yet | | | | | |\n", name
                    continue
                }
                printf "| %s | %s | %s | %s | %s | %s | %s |\n", name, result[name], time[name], date[name],
                    commit[name], machine[name], last[name]
                passed += result[name] == "passed"
                failed += result[name] == "failed"
                split(time[name], part, ":")
                seconds += part[1] * 60 + part[2]
            }
            printf "\n%d passed, %d failed", passed, failed
            if (count - passed - failed) printf ", %d not run", count - passed - failed
            printf "; together %d:%02d min\n", seconds / 60, seconds % 60
            if (seconds > 9000) print "\nmore than the 150 min that all may take together"
        }'
}
{
    sed '/^<!-- soak: begin/q' "$page"
    echo
    table_of "$output.new" "$*"
    echo
    sed -n '/^<!-- soak: end/,$p' "$page"
} >"$page.new"
mv "$output.new" "$output"
mv "$page.new" "$page"
