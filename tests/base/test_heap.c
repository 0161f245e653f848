/* Blocks with checked sizes: zeroed, grown without loss, and refused with the bytes. */
#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* More than any machine has, and few enough that the product fits. */
#define FAR_TOO_MANY (SIZE_MAX / 4)

static void test_alloc(void **state) {
    (void)state;
    sifr_error error = {0};
    uint32_t *block = NULL;
    for (int round = 0; round < 8; round++) { /* also where something was given back before */
        assert_int_equal(base_alloc(1000, sizeof *block, &block, &error), SIFR_OK);
        for (int i = 0; i < 1000; i++) assert_int_equal(block[i], 0);
        for (int i = 0; i < 1000; i++) ((volatile uint32_t *)block)[i] = ~0U;
        free(block);
    }
    block = (uint32_t *)&error;
    assert_int_equal(base_alloc(0, 8, &block, &error), SIFR_OK);
    assert_null(block);
    assert_int_equal(base_alloc(FAR_TOO_MANY, 2, &block, &error), SIFR_NO_MEMORY);
    assert_non_null(strstr(error.message, "9223372036854775806 bytes"));
    assert_int_equal(base_alloc(SIZE_MAX / 2, 3, &block, &error), SIFR_NO_MEMORY);
    assert_int_equal(base_alloc(SIZE_MAX / 2, 3, &block, NULL), SIFR_NO_MEMORY);
    assert_int_equal(error.status, SIFR_NO_MEMORY);
}

static void test_grow(void **state) {
    (void)state;
    sifr_error error = {0};
    uint64_t *array = NULL;
    size_t capacity = 0;
    int moves = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        size_t before = capacity;
        assert_int_equal(base_grow(&array, &capacity, i + 1, sizeof *array, &error), SIFR_OK);
        assert_true(capacity > i);
        moves += capacity != before;
        array[i] = i * i;
    }
    assert_int_equal(moves, 11); /* it doubles, from 16 */
    assert_int_equal(capacity, 16384);
    assert_int_equal(base_grow(&array, &capacity, 5, sizeof *array, &error), SIFR_OK);
    assert_int_equal(capacity, 16384); /* and never shrinks */
    const uint64_t *kept = array;
    assert_int_equal(base_grow(&array, &capacity, FAR_TOO_MANY / 8, sizeof *array, &error),
                     SIFR_NO_MEMORY);
    assert_int_equal(base_grow(&array, &capacity, SIZE_MAX, sizeof *array, &error), SIFR_NO_MEMORY);
    assert_int_equal(base_grow(&array, &capacity, SIZE_MAX / 2, sizeof *array, &error),
                     SIFR_NO_MEMORY);
    assert_ptr_equal(array, kept); /* as it was, after all of these */
    assert_int_equal(capacity, 16384);
    for (uint64_t i = 0; i < 10000; i++) assert_int_equal(array[i], i * i);
    free(array);
}

static void test_copy_text(void **state) {
    (void)state;
    sifr_error error = {0};
    char *copy = NULL;
    assert_int_equal(base_copy_text("some text", 4, &copy, &error), SIFR_OK);
    assert_string_equal(copy, "some");
    free(copy);
    assert_int_equal(base_copy_text("a\0b", 3, &copy, &error), SIFR_OK);
    assert_memory_equal(copy, "a\0b", 4);
    free(copy);
    assert_int_equal(base_copy_text("", 0, &copy, &error), SIFR_OK);
    assert_string_equal(copy, "");
    free(copy);
    copy = NULL;
    assert_int_equal(base_copy_text("", SIZE_MAX, &copy, &error), SIFR_NO_MEMORY);
    assert_null(copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_copy_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
