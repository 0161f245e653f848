# test_value_runs on real ranks: eight processes, in host memory and in that of a device that hides
# its own. A check that fails ends a rank with a code other than 0.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 60
program=$BUILD/tests/test_value_runs
. "$SOURCE/tests/support/mpirun.sh"
for where in host device; do
    timeout 50 "$launcher" -n 8 $options "$program" $where
done
