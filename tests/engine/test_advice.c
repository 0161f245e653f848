/* What a refusal of memory, or of disk, tells a user of the library to do: by what there is too
 * little of, and not by the words of the message. */
#include "engine/engine_private.h"
#include "engine/small_model.h"

static const char *advised(plan_mode mode, engine_lack lack, sifr_status status, const char *text,
                           sifr_error *error) {
    *error = (sifr_error){.status = status};
    snprintf(error->message, sizeof error->message, "%s", text);
    assert_int_equal(engine_advise(mode, lack, status, error), status);
    return error->message;
}

static void test_kinds(void **state) {
    (void)state;
    sifr_error error;
    assert_string_equal(advised(PLAN_TRAIN, ENGINE_LACK_MEMORY, SIFR_NO_MEMORY, "too much", &error),
                        "too much; try a smaller micro batch or seq-length, or recompute");
    assert_string_equal(
        advised(PLAN_GENERATE, ENGINE_LACK_MEMORY, SIFR_NO_MEMORY, "too much", &error),
        "too much; ask for fewer tokens");
    assert_string_equal(
        advised(PLAN_EVALUATE, ENGINE_LACK_MEMORY, SIFR_NO_MEMORY, "too much", &error),
        "too much; try a smaller batch or seq-length");
    assert_string_equal(advised(PLAN_TRAIN, ENGINE_LACK_DISK, SIFR_NO_MEMORY, "too much", &error),
                        "too much");
    assert_string_equal(advised(PLAN_TRAIN, ENGINE_LACK_MEMORY, SIFR_FAILED, "broken", &error),
                        "broken");
    assert_int_equal(engine_advise(PLAN_TRAIN, ENGINE_LACK_MEMORY, SIFR_NO_MEMORY, NULL),
                     SIFR_NO_MEMORY);
}

/* As other ranks' messages come, and as a path may begin. */
static void test_words(void **state) {
    (void)state;
    sifr_error error;
    static const char *const texts[] = {"disk: a file", "rank 3: disk: the run puts 1 GiB there"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_string_equal(advised(PLAN_TRAIN, ENGINE_LACK_DISK, SIFR_NO_MEMORY, texts[i], &error),
                            texts[i]);
        advised(PLAN_TRAIN, ENGINE_LACK_MEMORY, SIFR_NO_MEMORY, texts[i], &error);
        assert_non_null(strstr(error.message, "; try a smaller micro batch"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
