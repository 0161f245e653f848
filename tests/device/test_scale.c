/* A factor that is rounded to the activations' type, to the bit: the bounds of test_flat_ops are
 * too wide to tell.
 * in test_asan */
#include "device/matrix_case.h"

enum { COUNT = 250 };

static double rounded(base_dtype type, double value) {
    if (type == BASE_BF16) return case_from_bf16(case_to_bf16((float)value));
    return type == BASE_FP16 ? case_from_fp16(case_to_fp16(value)) : (double)(float)value;
}

/* y of 1, 2 ... COUNT; how many differ from those of the factor as it is. */
static int check(device *dev, base_dtype type, bool round_factor) {
    static const device_step step = {.training = true};
    const double factor = (double)33.9558537f; /* sqrt(1153) */
    int differ = 0;
    device_matrix x = case_matrix(1, COUNT, type, 1, 1), y = case_matrix(1, COUNT, type, 2, 1);
    for (int64_t i = 0; i < COUNT; i++) case_set(&x, 0, i, (double)(i + 1));
    device_call call = {.kernel = DEVICE_SCALE, .x = {x}, .y = y, .step = &step};
    call.attributes.scale.factor = (float)factor;
    call.attributes.scale.round_factor = round_factor;
    case_run(dev, &call);
    double taken = round_factor ? rounded(type, factor) : factor;
    for (int64_t i = 0; i < COUNT; i++) {
        double want = rounded(type, taken * (double)(i + 1)), got = case_get(&y, 0, i);
        if (got < want || got > want)
            fail_msg("%s: %lld times the factor is %g, expected %g", base_dtype_name(type),
                     (long long)(i + 1), got, want);
        double other = rounded(type, factor * (double)(i + 1));
        differ += got < other || got > other;
    }
    free(x.data);
    free(y.data);
    return differ;
}

static void factors(void **state) {
    (void)state;
    for (int s = 0; s < CASE_ISAS; s++) {
        device *dev = case_device(1, case_isas[s]);
        if (!dev) continue;
        assert_int_equal(check(dev, BASE_FP32, true), 0);
        assert_true(check(dev, BASE_BF16, true) > 0);
        assert_true(check(dev, BASE_FP16, true) > 0);
        for (int t = 0; t < 3; t++)
            check(dev, (base_dtype[]){BASE_FP32, BASE_BF16, BASE_FP16}[t], false);
        device_close(dev);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(factors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
