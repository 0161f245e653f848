# label: full
# Rows and columns of a mesh of ranks under mpirun: in windows, by messages, on several hosts; a rank
# that dies or stalls in its row ends all, and the line says in which group.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 300
program=$BUILD/tests/test_split
. "$SOURCE/tests/support/mpirun.sh"
exchange() { # RANKS COLUMNS HOW ROWS COLUMNS
    run "$1" "$2" "$3"
    [ "$code" = 0 ] || fail "$1 ranks, $2 columns, $3: exit code $code"
    grep -q "^$1 ranks in $2 columns, $3: equal; rows $4, columns $5$" out ||
        fail "$1 ranks, $2 columns, $3: not rows $4, columns $5"
    [ ! -s err ] || fail "$1 ranks, $2 columns, $3: something was said"
    echo "$(cat out), $seconds s"
}
exchange 2 1 windows apart shared
exchange 2 2 windows shared apart
exchange 4 2 windows shared shared
exchange 4 2 own shared shared
exchange 4 2 mpi apart apart
exchange 4 2 windows2 shared apart  # rows are hosts
exchange 8 4 windows2 shared apart  # rows are two hosts each: two levels
exchange 8 2 windows4 shared shared # columns are two ranks of each host
exchange 6 3 windows2 apart apart   # rows hold one host and a half
exchange 16 4 windows shared shared
# As many ranks do, with and without hosts.
exchange 6 3 mpi-many apart apart
exchange 12 4 windows3-many apart apart
exchange 8 8 windows2-many shared apart # the row is four hosts

# Whoever is the cause gives the exit code; MPICH's launcher kills the others and gives theirs.
run 4 2 own killed
[ "$code" != 0 ] && [ "$code" != 124 ] || fail "killed: exit code $code"
[ "$seconds" -lt 30 ] || fail "killed: $seconds s until the others ended"
grep -q 'all_gather (group row) of unit 3, step 7: rank 3 has died while rank 2 waits' err ||
    [ "$mpich" ] || fail "killed: the rank that died, or its group, is not named"
run 4 2 own stall
[ "$code" = 4 ] || { [ "$mpich" ] && [ "$code" != 0 ] && [ "$code" != 124 ]; } ||
    fail "stalled: exit code $code"
grep -q 'rank 2: all_gather (group row) of unit 3, step 7: not done after 1 s' err ||
    fail "stalled: what is not said"
grep -q 'rank 3 has not been in a collective for [1-9] s, last control (group column); rank 2 waits in it' err ||
    fail "stalled: who is missing is not said"
[ "$seconds" -lt 30 ] || fail "stalled: $seconds s until the others ended"

# Sends and receives: a neighbour that died before it sent, and one that sends something else.
run 4 2 own gone
[ "$code" != 0 ] && [ "$code" != 124 ] || fail "gone: exit code $code"
grep -q 'rank 0: receive (group stages) of unit 3, step 7: rank 3 has died while rank 0 waits' err ||
    [ "$mpich" ] || fail "gone: the rank that died is not named"
[ "$seconds" -lt 30 ] || fail "gone: $seconds s until the others ended"
for how in own windows mpi; do
    run 4 2 $how longer
    [ "$code" != 0 ] && [ "$code" != 124 ] || fail "longer, $how: exit code $code"
    [ $how = mpi ] || grep -q 'rank 0: receive: 2000 bytes are expected from rank 3, but it sends 3000' err ||
        fail "longer, $how: not said"
    [ "$seconds" -lt 30 ] || fail "longer, $how: $seconds s until the others ended"
done
