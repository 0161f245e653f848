# label: full
# Ranks whose devices hide their memory exchange by windows, across hosts, by NCCL between hosts and
# where memory cannot be shared; by all, and by rows and columns of a mesh: the sums of the tree, to
# the bit. What is wrong with NCCL.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 300
program=$BUILD/tests/test_device_exchange
. "$SOURCE/tests/support/mpirun.sh"
for case in 2:windows 3:windows 4:windows 8:windows 4:hosts 8:hosts 2:apart 4:apart 2:unshared 4:unshared \
    2:nccl1 3:nccl1 4:nccl1 4:nccl2 8:nccl2 8:nccl4; do
    ranks=${case%:*} how=${case#*:}
    timeout 100 "$launcher" -n "$ranks" $options "$program" "$how" >out 2>err || {
        code=$?
        [ "$code:${how%[0-9]}" = 77:nccl ] && continue # no kernels over the shim here
        fail "$ranks ranks, $how: exit code $code"
    }
    grep -q "^$ranks ranks, $how: equal" out || fail "$ranks ranks, $how: nothing said"
done

# A rank that fails alone is not kept by the others, which have its memory open and wait for it.
timeout 60 "$launcher" -n 2 $options "$program" windows alone >out 2>err && fail "a rank failed, and nobody says so"
grep -q '^closed after [5-9] s' out || fail "kept: $(cat out err)"

# NCCL that does not start, or has other versions: through host memory, with the same sums. One that
# fails on the way ends all ranks, with its own words.
"$program" nccl1 probe alone >out 2>err && code=0 || code=$?
[ "$code" != 77 ] || exit 0
for wrong in init versions; do
    for how in nccl1 nccl2; do
        timeout 100 "$launcher" -n 4 $options "$program" $how $wrong staged >out 2>err ||
            fail "$how, $wrong: exit code $?"
        grep -q "^4 ranks, $how: equal" out || fail "$how, $wrong: nothing said"
    done
done
timeout 60 "$launcher" -n 2 $options "$program" nccl1 fails >out 2>err && fail "NCCL failed, and nobody says so"
[ $? != 124 ] || fail "NCCL failed, and ranks wait"
grep -q 'NCCL: between hosts: internal error' err || fail "not what NCCL says"
