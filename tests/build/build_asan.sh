# label: full
# timeout: 2400, not under sanitizers
# What test_asan runs, built by clang with -Werror, under the sanitizers of addresses and undefined
# behaviour.
. "$SOURCE/tests/support/inner-suite.sh"
beside
quick
inner_build asan asan tests_asan -DSIFR_WERROR=ON "${options[@]}"
