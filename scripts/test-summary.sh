#!/bin/sh
# Sums up runs of ctest: test-summary.sh RESULTS.xml… (written by `ctest --output-junit`).
# Lists what was skipped and what failed, then `N skipped`, then `N passed, N failed` alone on the
# last line. Exit code 0 only where something passed and nothing failed.
set -eu
for results; do
    [ -s "$results" ] || {
        echo "test-summary.sh: $results: no results, so nothing ran" >&2
        echo "0 passed, 1 failed"
        exit 1
    }
done
awk '
function attribute(name,    text) {
    if (!match($0, name "=\"[^\"]*\"")) return ""
    text = substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 3)
    return text
}
function plain(text) {
    gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text)
    gsub(/&#39;|&apos;/, "\047", text); gsub(/&amp;/, "\\&", text)
    return text
}
/<testcase / { name = plain(attribute("name")); status = attribute("status"); skip = 0; last = "" }
# One with the code for "skipped" is no failure; any other that did not run is.
/<skipped message="SKIP_(RETURN_CODE|REGULAR_EXPRESSION)/ { skip = 1 }
/^\[ *SKIPPED *\] [A-Za-z_]/ || /<system-out>\[ *SKIPPED *\] [A-Za-z_]/ {
    line = $0
    sub(/.*\] */, "", line); sub(/[ \r].*/, "", line)
    cases[name "." line] = 1
}
/[^ \t]/ && !/^[ \t]*<\/?(testcase|properties|property|testsuite|skipped)/ {
    line = $0
    sub(/^.*<system-out>/, "", line); sub(/<\/system-out>.*/, "", line)
    if (line ~ /[^ \t]/) last = plain(line)
}
/<\/testcase>/ {
    if (status == "run") passed++
    else if (skip) { skipped++; print "skipped: " name (last != "" ? ": " last : "") }
    else if (status == "disabled") { skipped++; print "skipped: " name ": disabled" }
    else { failed++; print "failed: " name }
}
END {
    for (one in cases) { inner++; print "skipped: " one | "sort" }
    close("sort")
    printf "%d skipped", skipped
    if (inner) printf ", and %d single cases of tests that ran", inner
    printf "\n%d passed, %d failed\n", passed, failed
    exit failed > 0 || passed == 0
}' "$@"
