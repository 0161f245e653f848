# Sourced by tests of what commands answer.
fail() { echo "$1" >&2; exit 1; }
# expect CODE COMMAND…: runs it, with its output in `out` and its errors in `err`
expect() {
    local want=$1 code=0
    shift
    "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || { tail -3 out; cat err; fail "$*: exit code $code, not $want"; }
}
# ranked COMMAND…: one that starts ranks. MPI's plugins leave memory behind, and no name to forgive it
# by.
ranked() { ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "$@"; }
