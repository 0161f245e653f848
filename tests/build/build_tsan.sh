# label: full
# timeout: 2400, not under sanitizers
# What test_tsan runs, built by gcc, under the sanitizer of data races.
. "$SOURCE/tests/support/inner-suite.sh"
beside
quick
inner_build tsan tsan tests_tsan -DSIFR_WERROR=ON "${options[@]}"
