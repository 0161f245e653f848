# label: full
# timeout: 1800, not under sanitizers, runs alone
# What runs in several threads: unit tests, built by gcc, under the sanitizer of data races.
# tests/CMakeLists.txt says which, and tests/soak/test_soak_tsan.sh runs more of them.
. "$SOURCE/tests/support/inner-suite.sh"
quick
inner_build tsan tests_tsan -DSIFR_WERROR=OFF "${options[@]}"
inner_test -L tsan -j 2
