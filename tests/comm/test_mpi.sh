# label: full
# Ranks under mpirun: what they exchange at 1, 2, 3, 4 and 8, more than there are cores; a rank that
# differs, fails, dies, exits or stalls ends the run soon, with a line that says so.
# not under sanitizers (MPI keeps what it took), timeout: 300
program=$BUILD/tests/test_ranks
fail() { echo "$1" >&2; cat out err >&2 2>/dev/null || :; exit 1; }
launcher=${MPIEXEC:-mpirun}
if ! command -v "$launcher" >/dev/null || ! ldd "$program" | grep -q 'libmpi'; then
    echo "skipped: no MPI here (or sifr was built without): ranks are not tested"
    exit 77
fi
options= own_codes=1
if "$launcher" --version | grep -q 'Open MPI'; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    options="--oversubscribe --bind-to none"
    own_codes=
fi
run() { # RANKS WORD: exit code in $code, seconds in $seconds
    local begun=$SECONDS
    code=0
    timeout 120 "$launcher" -n "$1" $options "$program" "$2" >out 2>err || code=$?
    seconds=$((SECONDS - begun))
}

for ranks in 1 2 3 4 8; do
    run $ranks exchange
    [ "$code" = 0 ] || fail "$ranks ranks: exit code $code"
    grep -q "^$ranks ranks: " out || fail "$ranks ranks: not that many took part"
    echo "$(cat out), $seconds s"
done

run 4 differ
[ "$code" = 2 ] || fail "a rank that differs: exit code $code"
grep -q 'rank 0: config: not the same on rank 3 as' err || fail "the rank that differs is not named"

# Whoever is the cause gives the exit code; MPICH's launcher kills the others and gives theirs.
expect() { [ "$code" = "$1" ] || { [ "$own_codes" ] && [ "$code" != 0 ] && [ "$code" != 124 ]; }; }
run 3 fail
expect 3 || fail "a rank that fails: exit code $code"
grep -q 'rank 2: its own reason' err || fail "the reason is lost"
grep -q 'rank 0: all_gather of unit 3, step 7: rank 2 has ended' err || fail "rank 0 does not say who has left"
[ "$seconds" -lt 30 ] || fail "$seconds s until the others ended"

for word in exit killed; do
    run 3 $word
    [ "$code" != 0 ] && [ "$code" != 124 ] || fail "$word: exit code $code"
    [ "$seconds" -lt 30 ] || fail "$word: $seconds s until the others ended"
    grep -q 'all_gather of unit 3, step 7: rank 2 has died while rank [01] waits' err ||
        [ "$own_codes" ] || fail "$word: the rank that died is not named"
    echo "$word: exit code $code after $seconds s"
done

run 2 stall
expect 4 || fail "a rank that stalls: exit code $code"
grep -q 'rank 0: all_gather of unit 3, step 7: not done after 1 s' err || fail "what is not said"
grep -q 'rank 1 is not in a collective since [1-9] s, last control; rank 0 waits in it' err ||
    fail "who is missing is not said"
[ "$seconds" -lt 30 ] || fail "$seconds s until a stalled rank was given up"
