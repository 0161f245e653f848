#!/bin/sh
# Runs a fuzz target for a few seconds: run-fuzz.sh PROGRAM SEEDS. FUZZ_SECONDS chooses how many.
# Seeds are those of SEEDS/<name of the target without fuzz_>/; an input that fails is printed.
set -eu
program=$1
name=$(basename "$program")
directory=$(mktemp -d "${TMPDIR:-/tmp}/sifr-fuzz.XXXXXX")
trap 'rm -rf "$directory"' EXIT
mkdir "$directory/corpus" "$directory/failures"
export TMPDIR="$directory"
seeds=$2/${name#fuzz_}
[ -d "$seeds" ] || seeds=
# shellcheck disable=SC2086 # no seeds, no argument
if "$program" -max_total_time="${FUZZ_SECONDS:-10}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -seed=1 -artifact_prefix="$directory/failures/" "$directory/corpus" $seeds \
    >"$directory/log" 2>&1; then
    tail -n 2 "$directory/log"
else
    tail -n 60 "$directory/log"
    for input in "$directory"/failures/*; do
        [ -f "$input" ] && echo "input $(basename "$input"), base64:" && base64 "$input"
    done
    exit 1
fi
