# label: full
# timeout: 1800, not under sanitizers, runs alone
# gcc, with all optimisation, finds nothing to warn of (-g changes no warning, and takes time). clang
# warns of the source alone, whatever the optimisation: test_asan builds src/ with clang and -Werror,
# test_soak_asan the tests, too.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build release all -DSIFR_WERROR=ON -DCMAKE_C_COMPILER=gcc \
    -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O3 -DNDEBUG"
