# label: soak
# timeout: 1800, not under sanitizers, runs alone
# Signals to ranks, over and over: when one arrives is chance, and a fault in its handler has shown
# itself in one run of 80 only.
for run in $(seq 30); do
    mkdir "$run"
    (cd "$run" && bash -eu "$SOURCE/tests/cli/test_signals_ranks.sh" >log 2>&1) || {
        code=$?
        cat "$run/log"
        [ $code != 77 ] || exit 77
        echo "run $run of 30: exit code $code"
        exit 1
    }
    rm -r "$run"
done
echo "30 runs"
