# label: full
# Ranks under mpirun: what they exchange at 1, 2, 3, 4 and 8, more than there are cores; a rank that
# differs, fails, dies, exits or stalls ends the run soon, with a line that says so.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 300
program=$BUILD/tests/test_ranks
. "$SOURCE/tests/support/mpirun.sh"

# Through MPI, in windows, where only some operands lie in one, and on hosts of which each is a node
# of the tree (two levels) or none: the same sums, to the bit.
exchange() { # RANKS HOW TEXT
    run "$1" exchange "$2"
    [ "$code" = 0 ] || fail "$1 ranks, $2: exit code $code"
    grep -q "^$1 ranks, $3: " out || fail "$1 ranks, $2: not $3"
    [ "$(grep -c '^log: ' err)" = "${4:-0}" ] || fail "$1 ranks, $2: lines that were said"
    echo "$2: $(cat out), $seconds s"
}
exchange 1 windows '1 on a host, memory apart'
for ranks in 2 3 4 8; do exchange $ranks windows "$ranks on a host, memory shared"; done
exchange 4 own '4 on a host, memory shared'
exchange 3 mpi '3 on a host, memory apart'
# As many ranks do: 6 = 3 x 2, 7 from left to right, 8 = 2^3.
for ranks in 6 7 8; do exchange $ranks many "$ranks on a host, memory apart"; done
exchange 3 mixed '3 on a host, memory shared'
exchange 8 windows2 '2 on a host, memory shared'
exchange 8 windows4 '4 on a host, memory shared'
exchange 4 cyclic2 '2 on a host, memory shared' 1 # numbered host by host
grep -q "sifr numbers them host by host, so its rank 1 is the launcher's 2 " err || fail "order: not said"
exchange 6 windows3 '3 on a host, memory shared' # 3 and 3, added from left to right
exchange 6 windows2 '2 on a host, memory apart'  # pairs are no nodes of 3 and 3
exchange 4 own2 '2 on a host, memory shared'     # operands nowhere: all by MPI

# Where the system forbids it one rank says so, and MPI carries all.
exchange 3 forbidden '3 on a host, memory apart' 1
grep -q 'rank 0 cannot share memory with the ranks of its host (shared memory: Operation not' err ||
    fail "why no memory is shared is not said"
exchange 3 unnamed '3 on a host, memory shared' 1
grep -q 'rank 0 cannot read the memory of its neighbours (rank 1 has none)' err ||
    fail "why there is no window is not said"

run 4 differ
[ "$code" = 2 ] || fail "a rank that differs: exit code $code"
grep -q 'rank 0: config: differs on rank 3 from' err || fail "the rank that differs is not named"

# Whoever is the cause gives the exit code; MPICH's launcher kills the others and gives theirs.
expect() { [ "$code" = "$1" ] || { [ "$mpich" ] && [ "$code" != 0 ] && [ "$code" != 124 ]; }; }
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
        [ "$mpich" ] || fail "$word: the rank that died is not named"
    echo "$word: exit code $code after $seconds s"
done

run 2 stall
expect 4 || fail "a rank that stalls: exit code $code"
grep -q 'rank 0: all_gather of unit 3, step 7: not done after 1 s' err || fail "what is not said"
grep -q 'rank 1 has not been in a collective for [1-9] s, last control; rank 0 waits in it' err ||
    fail "who is missing is not said"
[ "$seconds" -lt 30 ] || fail "$seconds s until a stalled rank was given up"
