# Sourced by tests that watch a run of theirs, the process $run; `fail` is theirs.
# Waits for up to 60 s until the command succeeds, while the run lives.
until_it() {
    for _ in $(seq 600); do
        "$@" >/dev/null 2>&1 && return
        kill -0 $run 2>/dev/null || fail "the run ended before: $*"
        sleep 0.1
    done
    fail "in vain: $*"
}
