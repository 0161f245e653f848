# label: full
# timeout: 1800, not under sanitizers, runs alone
# gcc, with all optimisation, finds nothing to warn of. clang warns of the source alone, whatever the
# optimisation: test_asan builds all of it with clang and -Werror.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build release all -DSIFR_WERROR=ON -DCMAKE_C_COMPILER=gcc
