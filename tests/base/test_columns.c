/* Texts on a terminal: their width, and those from outside without what a terminal would act on. */
#include "base/columns.h"

#include <string.h>

#include "support/scratch.h"

static void widths(void **state) {
    (void)state;
    assert_int_equal(base_columns(""), 0);
    assert_int_equal(base_columns("loss 1.5"), 8);
    assert_int_equal(base_columns("\xe2\xa0\x89\xe2\xa3\xbf"), 2); /* braille */
    assert_int_equal(base_columns("caf\xc3\xa9"), 4);
    assert_int_equal(base_columns("\xe6\xbc\xa2"), 2);     /* wide */
    assert_int_equal(base_columns("\xf0\x9f\x98\x80"), 2); /* a picture */
    assert_int_equal(base_columns("\xff\xc3"), 2);         /* no UTF-8 */
}

static void beginnings_end_between_characters(void **state) {
    (void)state;
    assert_int_equal(base_fit_columns("\xe2\xa0\x89\xe2\xa3\xbfx", 1), 3);
    assert_int_equal(base_fit_columns("\xe2\xa0\x89\xe2\xa3\xbfx", 9), 7);
    assert_int_equal(base_fit_columns("\xe6\xbc\xa2", 1), 0);
    assert_int_equal(base_fit_columns("abc", 0), 0);
}

static void assert_shown(const char *text, bool utf8, const char *wanted) {
    char out[64];
    assert_string_equal(base_show_text(text, utf8, out, sizeof out), wanted);
}

static void controls_are_shown(void **state) {
    (void)state;
    assert_shown("runs/a b", true, "runs/a b");
    assert_shown("\x1b[2J\x07\n\x7f", true, "\\x1b[2J\\x07\\x0a\\x7f");
    assert_shown("\xc2\x9b"
                 "2J",
                 true, "\\xc2\\x9b2J"); /* CSI of C1 */
    assert_shown("\xe2\x80\xae"
                 "x",
                 true, "\\xe2\\x80\\xaex"); /* turns what follows */
    assert_shown("\xc0\xaf\xed\xa0\x80", true,
                 "\\xc0\\xaf\\xed\\xa0\\x80");                      /* overlong, surrogate */
    assert_shown("\xf4\x90\x80\x80", true, "\\xf4\\x90\\x80\\x80"); /* beyond Unicode */
    assert_shown("e\xcc\x81", true, "e\\xcc\\x81");                 /* joins what is before */
    assert_shown("caf\xc3\xa9\xff", true, "caf\xc3\xa9\\xff");
    assert_shown("caf\xc3\xa9", false, "caf\\xc3\\xa9");
}

static void long_texts_are_cut(void **state) {
    (void)state;
    char text[200], out[40];
    memset(text, 0x1b, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    base_show_text(text, true, out, sizeof out);
    assert_true(strlen(out) < sizeof out && strlen(out) % 4 == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths), cmocka_unit_test(beginnings_end_between_characters),
        cmocka_unit_test(controls_are_shown), cmocka_unit_test(long_texts_are_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
