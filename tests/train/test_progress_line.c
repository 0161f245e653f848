/* What the live line gives up where the terminal is narrow. */
#include "train/view/progress_line.h"

#include "support/scratch.h"

static const train_line_part parts[] = {
    {"step 5/10", 9}, {"loss 1.5", 8}, {"scale 2", 1}, {"", 7}, {"9 tok/s", 3}};

static void assert_line(int columns, const char *wanted) {
    char line[128];
    train_progress_line(parts, sizeof parts / sizeof *parts, columns, line, sizeof line);
    assert_string_equal(line, wanted);
}

static void least_weight_goes_first(void **state) {
    (void)state;
    assert_line(0, "step 5/10  loss 1.5  scale 2  9 tok/s");
    assert_line(38, "step 5/10  loss 1.5  scale 2  9 tok/s");
    assert_line(37, "step 5/10  loss 1.5  9 tok/s");
    assert_line(29, "step 5/10  loss 1.5  9 tok/s");
    assert_line(28, "step 5/10  loss 1.5");
    assert_line(20, "step 5/10  loss 1.5");
    assert_line(19, "step 5/10");
    assert_line(10, "step 5/10");
    assert_line(9, "step 5/1");
    assert_line(1, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(least_weight_goes_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
