# label: full
# timeout: 1800, not under sanitizers
# What runs in several threads: unit tests, as build_tsan.sh built them.
# tests/CMakeLists.txt says which, and tests/soak/test_soak_tsan.sh runs more of them.
. "$SOURCE/tests/support/inner-suite.sh"
beside
inner=$BUILD/tsan
inner_test -L tsan -j 2
