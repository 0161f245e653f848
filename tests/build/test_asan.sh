# label: full
# timeout: 1800, not under sanitizers
# Part of the short suite and the seeds of all fuzz targets, as build_asan.sh built them.
# tests/CMakeLists.txt says which part, and tests/soak/test_soak_asan.sh runs all of it.
. "$SOURCE/tests/support/inner-suite.sh"
beside
inner=$BUILD/asan
export FUZZ_SECONDS=1 # the seeds are all run first, however long they take
inner_test -L asan -j 2
