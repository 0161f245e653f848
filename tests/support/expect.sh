# Sourced by tests of what commands answer.
fail() { echo "$1" >&2; exit 1; }
# expect CODE COMMAND…: runs it, with its output in `out` and its errors in `err`
expect() {
    local want=$1 code=0
    shift
    # Of ranks MPI's plugins leave memory behind, and no name to forgive it by.
    case " $* " in *' --ranks '*) local -x ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" ;; esac
    "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || { tail -3 out; cat err; fail "$*: exit code $code, not $want"; }
}
