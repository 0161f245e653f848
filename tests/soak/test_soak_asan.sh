# label: soak
# timeout: 2400, not under sanitizers, runs alone
# The whole short suite, and 40 seconds of each fuzz target, built by clang with -Werror, under the
# sanitizers of addresses and undefined behaviour.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build soak-asan asan all -DSIFR_WERROR=ON
export FUZZ_SECONDS=40
inner_test -L 'short|fuzz' -j 2
