/* The rows of kernels.def: names, and implementations that end with one for all calls. */
#include "device/matrix_case.h"

static void test_names_differ(void **state) {
    (void)state;
    for (int i = 0; i < DEVICE_KERNELS; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(device_kernel_name((device_kernel)i),
                                    device_kernel_name((device_kernel)j));
}

/* How a list of implementations reads: w: WHERE, a: all calls, n: none. */
#define WHERE(takes, prepare, run) 'w'
#define PREPARE_RUN(prepare, run) 'a'
#define RUN(run) 'a'
#define NONE 'n'
#define LIST(...)                                                                                  \
    { __VA_ARGS__ }

static void check_list(const char *kernel, const char *list, bool may_be_none) {
    size_t last = strlen(list) - 1;
    if (strspn(list, "w") == last && list[last] == 'a') return;
    if (!may_be_none || strcmp(list, "n") != 0) fail_msg("%s: %s", kernel, list);
}

static void test_last_takes_all(void **state) {
    (void)state;
    static const struct {
        const char *name, cpu[8], gpu[8];
    } rows[] = {
#define DEVICE_KERNEL(NAME, name, check, access, cpu, gpu) {#name, LIST cpu, LIST gpu},
#include "device/kernels.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_list(rows[i].name, rows[i].cpu, false);
        check_list(rows[i].name, rows[i].gpu, true);
    }
}

/* DEVICE_LINEAR has an implementation for pieces, one for few rows, and one for all. */
static void test_first_that_takes(void **state) {
    (void)state;
    sifr_error error = {0};
    device *dev = NULL;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    for (int64_t rows = 1; rows <= 64; rows *= 64) {
        device_call call = {.kernel = DEVICE_LINEAR,
                            .x[0] = {NULL, rows, 32, 32, BASE_FP32},
                            .w[0] = {NULL, 16, 32, 32, BASE_FP32},
                            .y = {NULL, rows, 16, 16, BASE_FP32}};
        assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
        assert_int_equal(call.implementation, rows == 1 ? 1 : 2);
        call.attributes.linear =
            (device_linear_attributes){.pieces = 2, .runs = 1, .run_end = {16}};
        assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
        assert_int_equal(call.implementation, 0);
    }
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_differ),
        cmocka_unit_test(test_last_takes_all),
        cmocka_unit_test(test_first_that_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
