/* Each type of elements has its size and a name of its own. */
#include "base/dtype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void sizes(void **state) {
    (void)state;
    static const struct {
        base_dtype dtype;
        int bits;
    } known[] = {{BASE_NONE, 0},   {BASE_FP32, 32}, {BASE_BF16, 16},     {BASE_FP16, 16},
                 {BASE_FP64, 64},  {BASE_INT8, 8},  {BASE_FP8_E4M3, 8},  {BASE_BOOL, 8},
                 {BASE_INT32, 32}, {BASE_FP4, 4},   {BASE_COMPLEX64, 64}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(base_dtype_bits(known[i].dtype), known[i].bits);
        assert_int_equal(base_dtype_bytes(known[i].dtype), known[i].bits / 8);
    }
}

static void names(void **state) {
    (void)state;
    for (int d = 0; d < BASE_DTYPES; d++) {
        assert_non_null(base_dtype_name((base_dtype)d));
        for (int other = 0; other < d; other++)
            assert_string_not_equal(base_dtype_name((base_dtype)d),
                                    base_dtype_name((base_dtype)other));
    }
    assert_string_equal(base_dtype_name(BASE_BF16), "bf16");
    assert_string_equal(base_dtype_name(BASE_INT32), "int32");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
