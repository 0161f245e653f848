# label: soak
# timeout: 2400, not under sanitizers, runs alone
# The whole suite with assertions on (preset debug); without the tests that build the tree another
# way, which would build what `make test` builds. Optimised, or kernels take ten times as long.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build debug debug all -DCMAKE_C_FLAGS_DEBUG="-O1 -g1"
inner_test -L full -LE build -j 2
