# label: full
# timeout: 1800, not under sanitizers, runs alone
# Part of the short suite and the seeds of all fuzz targets, built by clang with -Werror, under the
# sanitizers of addresses and undefined behaviour. tests/CMakeLists.txt says which part, and
# tests/soak/test_soak_asan.sh runs all of it.
. "$SOURCE/tests/support/inner-suite.sh"
quick
inner_build asan tests_asan -DSIFR_WERROR=ON "${options[@]}"
export FUZZ_SECONDS=1 # the seeds are all run first, however long they take
inner_test -L asan -j 2
