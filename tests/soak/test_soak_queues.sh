# label: soak
# timeout: 2400, not under sanitizers, runs alone
# Tests of the engine on a device that has only begun its work and hides its memory
# (support/on_queues.h), built by gcc, under the sanitizer of data races. Not test_golden_optimizers,
# which takes too long.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build soak-tsan tsan all -DSIFR_WERROR=ON
export SIFR_TEST_QUEUED=1
tests='shards|tiles|recompute|narrow_states|frozen|encoder_bits|offload|offload_activations|zero'
tests="$tests|zero_keys|optimizers|optimizer_groups|ema|stage_recompute"
tests="$tests|golden_(models|lora|encoders|families)"
inner_test -R "^test_($tests)\$" -j 2
