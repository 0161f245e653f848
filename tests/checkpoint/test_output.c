/* Two runs that find no output folder and then want it: the second gets nothing, and takes nothing
 * of the first one's away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "checkpoint/output.h"
#include "support/scratch.h"

static checkpoint_output open_new(const char *path) {
    checkpoint_output out;
    sifr_error error;
    if (checkpoint_output_open(path, NULL, false, 0, NULL, &out, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return out;
}

static void claim(checkpoint_output *output) {
    sifr_error error;
    if (checkpoint_output_claim(output, 0, NULL, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_false(output->others);
    scratch_text("out/" CHECKPOINT_OUTPUT_MARK, "{}");
}

static void refused(checkpoint_output *output, const char *why) {
    sifr_error error;
    assert_int_equal(checkpoint_output_claim(output, 0, NULL, &error), SIFR_FAILED);
    if (!strstr(error.message, why)) fail_msg("%s", error.message);
    checkpoint_output_undo(output);
    assert_true(base_has_file(scratch_path("out"), CHECKPOINT_OUTPUT_MARK));
}

static void test_second_is_refused(void **state) {
    (void)state;
    const char *path = scratch_fresh("out");
    checkpoint_output first = open_new(path), second = open_new(path), third = open_new(path);
    claim(&first);
    refused(&second, "in use by another sifr train"); /* while the first one runs */
    checkpoint_output_close(&first);
    refused(&third, "another sifr train began in it"); /* and after it has ended */
    checkpoint_output_close(&second);
    checkpoint_output_close(&third);
}

static void test_undo_of_the_first(void **state) {
    (void)state;
    const char *path = scratch_fresh("out");
    checkpoint_output first = open_new(path);
    claim(&first);
    checkpoint_output_undo(&first);
    checkpoint_output_close(&first);
    assert_false(base_is_directory(path));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_second_is_refused),
                                       cmocka_unit_test(test_undo_of_the_first)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
