# label: full
# Ranks whose devices hide their memory exchange by windows, across hosts and where memory cannot be
# shared; by all, and by rows and columns of a mesh: the sums of the tree, to the bit.
# not under sanitizers (MPI keeps what it took), timeout: 300
program=$BUILD/tests/test_device_exchange
fail() { echo "$1" >&2; cat out err >&2 2>/dev/null || :; exit 1; }
launcher=${MPIEXEC:-mpirun}
if ! command -v "$launcher" >/dev/null || ! ldd "$program" | grep -q 'libmpi'; then
    echo "skipped: no MPI here (or sifr was built without): ranks are not tested"
    exit 77
fi
options=
if "$launcher" --version | grep -q 'Open MPI'; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    options="--oversubscribe --bind-to none"
fi
for case in 2:windows 3:windows 4:windows 8:windows 4:hosts 8:hosts 2:apart 4:apart 2:unshared 4:unshared; do
    ranks=${case%:*} how=${case#*:}
    timeout 100 "$launcher" -n "$ranks" $options "$program" "$how" >out 2>err ||
        fail "$ranks ranks, $how: exit code $?"
    grep -q "^$ranks ranks, $how: equal" out || fail "$ranks ranks, $how: nothing said"
done
