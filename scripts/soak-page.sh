#!/bin/sh
# Writes the last output of `make soak` into its page, between two markers:
# soak-page.sh RESULTS.xml BUILD COMMIT PAGE. RESULTS.xml was written by `ctest --output-junit`.
set -eu
results=$1 build=$2 commit=$3 page=$4
here=$(dirname "$0")
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
{
    sed '/^<!-- soak: begin/q' "$page"
    echo
    echo "$(date -u +%Y-%m-%d), commit $commit, $(machine):"
    echo
    awk '
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
        printf "    %s: %s, %d:%02d min\n", attribute("name"), result, seconds / 60, seconds % 60
    }
    /<system-out>/ { inside = 1; sub(/.*<system-out>/, "") }
    inside {
        ends = sub(/<\/system-out>.*/, "")
        # Of a failure, which may have the logs of whole suites, only what counts.
        if (/^(skipped|failed): / || /^[0-9]+ (skipped|passed|runs)/) print "        " plain($0)
        if (ends) inside = 0
    }' "$results"
    "$here/test-summary.sh" "$results" | tail -n 1 | sed 's/^/    /'
    echo
    sed -n '/^<!-- soak: end/,$p' "$page"
} >"$page.new"
mv "$page.new" "$page"
