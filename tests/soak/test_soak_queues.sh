# label: soak
# timeout: 5400, not under sanitizers, runs alone
# Tests of the engine on a device that has only begun its work and hides its memory
# (support/on_queues.h), built by gcc, under the sanitizer of data races.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build tsan all -DSIFR_WERROR=OFF
export SIFR_TEST_QUEUED=1
inner_test -R '^test_(shards|tiles|recompute|narrow_states|frozen|encoder_bits|offload_activations|golden_models|zero_keys)$' -j 2
