#!/bin/sh
# Runs the long tests whose names match, one after the other; when one ends, its output goes into
# the file OUTPUT and its result into the table of PAGE: soak.sh BUILD PAGE OUTPUT REGEX. What is
# interrupted keeps the part that it had.
# The last line is `N passed, N failed`, of what ran.
set -eu
build=$1 page=$2 output=$3 regex=$4
here=$(dirname "$0")
results=$build/soak-results
commit=$(git rev-parse --short=8 HEAD 2>/dev/null || echo unknown)
# The page and the output are what an earlier run of this script changed.
[ "$commit" = unknown ] || git diff --quiet HEAD -- . ":!$page" ":!$output" || commit=$commit-dirty
names() { # CTEST ARGUMENT…: one a line
    ctest --test-dir "$build" -N -L soak "$@" | sed -n 's/^ *Test *#[0-9]*: *//p'
}
all=$(names)
chosen=$(names -R "$regex")
[ "$chosen" ] || {
    echo "soak.sh: no long test matches $regex; there are: $(echo "$all" | paste -sd ' ')" >&2
    exit 2
}
rm -rf "$results"
mkdir -p "$results"
trap 'exit 130' INT
trap 'exit 143' TERM
for name in $chosen; do
    # Another code than 0 is in the results; one by a signal leaves none.
    ctest --test-dir "$build" -L soak -R "^$name\$" --output-on-failure --no-tests=error \
        --test-output-size-passed 1000000 --test-output-size-failed 1000000 \
        --output-junit "soak-results/$name.xml" || [ -s "$results/$name.xml" ] ||
        { echo "soak.sh: $name was interrupted" >&2 && exit 130; }
    # shellcheck disable=SC2086 # words
    "$here/soak-page.sh" "$results/$name.xml" "$build" "$commit" "$page" "$output" $all
done
exec "$here/test-summary.sh" "$results"/*.xml
