# label: full
# timeout: 3600, not under sanitizers, runs alone
# The short suite and the fuzz targets, built by clang with -Werror, under the sanitizers of
# addresses and undefined behaviour.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build asan all -DSIFR_WERROR=ON
inner_test -L 'short|fuzz' -j 2
