# label: full
# All-to-alls and all-reduces of ranks under mpirun, at 1 to 8 of them: in windows, where only some
# operands lie in one, by messages, and on hosts. A rank that names other sizes, dies or stalls is
# named.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 300
program=$BUILD/tests/test_all_to_all
. "$SOURCE/tests/support/mpirun.sh"
for case in 1:windows 2:windows 3:windows 8:windows 5:own 6:mpi 7:mixed 8:windows4 6:windows2 \
    8:mixed2 4:own1; do
    ranks=${case%:*} how=${case#*:}
    run "$ranks" exchange "$how"
    [ "$code" = 0 ] && [ ! -s err ] || fail "$ranks ranks, $how: exit code $code"
    grep -q "^$ranks ranks, [1-8] on a host, $how: " out || fail "$ranks ranks, $how: nothing said"
    echo "$(cat out), $seconds s"
done
program=$BUILD/tests/test_all_reduce
for case in 2:windows 7:windows 3:mpi 4:mixed 8:windows4 6:many; do
    run "${case%:*}" "${case#*:}"
    [ "$code" = 0 ] && grep -q "^${case%:*} ranks, ${case#*:}: equal" out ||
        fail "all-reduce, $case: exit code $code"
done
program=$BUILD/tests/test_all_to_all
run 2 long mpi 300000000 # two messages
[ "$code" = 0 ] && grep -q '^300000000 bytes came' out || fail "long: exit code $code"

# Whoever is the cause gives the exit code; MPICH's launcher kills the others and gives theirs, or 0.
ended() { # WHAT: by an error, and soon
    [ "$code" != 0 ] || [ "$mpich" ] || fail "$1: exit code 0"
    [ "$code" != 124 ] || fail "$1: it did not end"
    [ "$seconds" -lt 30 ] || fail "$1: $seconds s until the others ended"
}
run 3 killed windows
ended killed
grep -q 'all_to_all of unit 3, step 7: rank 2 has died while rank [01] waits' err ||
    [ "$mpich" ] || fail "killed: the rank that died is not named"
run 2 stall own
ended stall
grep -q 'rank 0: all_to_all of unit 3, step 7: not done after 1 s' err || fail "stall: not said"
grep -q 'rank 1 has not been in a collective for [1-9] s, last control; rank 0 waits in it' err ||
    fail "stall: who is missing is not said"
for case in longer:windows shorter:mpi; do
    run 3 ${case%:*} ${case#*:}
    ended $case
    sent=4095
    [ $case = shorter:mpi ] || sent=4097
    grep -q "rank 0: all_to_all: 4096 bytes are expected from rank 2, but it sends $sent" err ||
        fail "$case: not said"
done
