# label: soak
# timeout: 2400, not under sanitizers, runs alone
# The unit tests of the short suite, built by gcc, under the sanitizer of data races; but for those
# of what runs in one thread and takes long, and the golden models, which run what test_zero runs.
. "$SOURCE/tests/support/inner-suite.sh"
inner_build soak-tsan tsan all -DSIFR_WERROR=ON
inner_test -L short -L unit -E \
    '^test_(plan|search|keep|golden_(models|encoders)|tokenizer_(hostile|split|golden)|template_hostile)$' -j 2
