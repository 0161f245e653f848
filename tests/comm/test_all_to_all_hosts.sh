# label: full
# All-to-alls of ranks on two hosts, which are network namespaces: what arrives, over TCP and not
# through the memory that they share in truth, and as many bytes at the interface as the ledger has.
# not under sanitizers (MPI keeps what it took), timeout: 100
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/namespaces.sh"
hosts 2
program=$BUILD/tests/test_all_to_all
ranks() { # RANKS-A-HOST WORD…
    local each=$1
    shift
    printf "%s slots=$each\n" h1 h2 >hostfile
    [ ! "$mpich" ] || printf "%s:$each\n" h1 h2 >hostfile
    on h1 timeout 60 $launcher --hostfile hostfile -n $((2 * each)) "$program" "$@" >out 2>err ||
        fail "$each ranks a host, $*: exit code $?"
}
for each in 1 2 3; do
    ranks $each exchange windows
    grep -qE "^$((2 * each)) ranks, $each on a host, windows: [0-9]+ bytes, [1-9][0-9]* from other hosts" out ||
        fail "$each ranks a host: $(cat out)"
    cat out
done
bytes=50000000
before=$(received h2)
ranks 1 long windows $bytes
wire=$(($(received h2) - before))
echo "$bytes bytes for the second host, $wire at its interface"
[ $wire -ge $bytes ] && [ $wire -le $((bytes * 11 / 10 + 1000000)) ] || fail "$wire bytes at the interface"
