# label: full
# Tests of the engine again, on a device that has only begun its work and hides its memory
# (support/on_queues.h), beside test_queued and test_queued_mesh. All that can, and under the thread
# sanitizer, in tests/soak/test_soak_queues.sh.
# timeout: 600, not under sanitizers
fail() { echo "$1" >&2; exit 1; }
export SIFR_TEST_QUEUED=1
for test in test_narrow_states test_recompute test_frozen test_golden_models test_golden_lora; do
    begun=$SECONDS
    "$BUILD/tests/$test" >out 2>&1 || { code=$?; cat out; fail "$test: exit code $code"; }
    echo "$test: $((SECONDS - begun)) s"
done
