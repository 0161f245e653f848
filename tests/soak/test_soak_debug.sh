# label: soak
# timeout: 2400, not under sanitizers, runs alone
# The suite with assertions on (preset debug), without what test_soak_asan runs, which has them on as
# well, and without the tests that build the tree another way, which would build what `make test`
# builds. Optimised, or kernels take ten times as long.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build debug debug all -DCMAKE_C_FLAGS_DEBUG="-O1 -g1"
inner_test -L full -LE 'build|sanitized' -j 2
