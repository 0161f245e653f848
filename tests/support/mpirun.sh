# Sourced by tests that start a test's own program, $program, on ranks: skips the test where there is
# no MPI. Sets $launcher, $options (which let any number of ranks share this machine) and $own_codes
# ("" under Open MPI, which gives the exit code of the rank that was the cause).
fail() { echo "$1" >&2; cat out err >&2 2>/dev/null || :; exit 1; }
launcher=${MPIEXEC:-$("$SIFR" doctor --json | sed -n 's/^ *"launcher": "\(.*\)",$/\1/p')}
if ! command -v "$launcher" >/dev/null || ! ldd "$program" | grep -q 'libmpi'; then
    echo "skipped: no MPI here (or sifr was built without): ranks are not tested"
    exit 77
fi
options= own_codes=1
if ! ldd "$program" | grep -q libmpich; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    options="--oversubscribe --bind-to none"
    own_codes=
fi
run() { # RANKS WORD...: exit code in $code, seconds in $seconds
    local begun=$SECONDS ranks=$1
    shift
    code=0
    timeout 120 "$launcher" -n "$ranks" $options "$program" "$@" >out 2>err || code=$?
    seconds=$((SECONDS - begun))
}
