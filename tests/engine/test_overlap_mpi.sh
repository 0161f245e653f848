# label: full
# test_overlap on real ranks: two processes, MPI between them, slowed down.
# runs alone, not under sanitizers (it measures time), each MPI, timeout: 120
program=$BUILD/tests/test_overlap
. "$SOURCE/tests/support/mpirun.sh"
for stage in 2 3; do
    for share in 0.7 1.4; do
        for try in 1 2 3; do # other work may disturb a measurement
            ! timeout 60 "$launcher" -n 2 $options "$program" $stage $share || continue 2
        done
        echo "stage $stage, share $share: failed three times" >&2
        exit 1
    done
done
