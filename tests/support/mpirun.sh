# Sourced by tests that start a test's own program, $program, on ranks: what find_mpi.sh sets. Under
# Open MPI ($mpich is "") the launcher gives the exit code of the rank that was the cause.
fail() { echo "$1" >&2; cat out err >&2 2>/dev/null || :; exit 1; }
. "$SOURCE/tests/support/find_mpi.sh"
run() { # RANKS WORD...: exit code in $code, seconds in $seconds
    local begun=$SECONDS ranks=$1
    shift
    code=0
    timeout 120 "$launcher" -n "$ranks" $options "$program" "$@" >out 2>err || code=$?
    seconds=$((SECONDS - begun))
}
