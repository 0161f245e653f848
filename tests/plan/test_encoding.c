/* How values are coded on their way between ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/encoding.h"
#include "plan/queries.h"

/* A type has the encoding in which ranks can add it up; others are bytes. */
static void types(void **state) {
    (void)state;
    static const base_dtype added[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        plan_code code = plan_code_of(added[i]);
        assert_int_equal(plan_encoding_of(code)->type, added[i]);
        assert_int_equal(plan_encoded_bytes(code, 12), 12 * base_dtype_bytes(added[i]));
        assert_int_equal(plan_code_of_weights(MODEL_UNCODED, added[i]), code);
    }
    assert_int_equal(plan_code_of(BASE_INT64), PLAN_CODE_BYTES);
    assert_int_equal(plan_code_of(BASE_NONE), PLAN_CODE_BYTES);
    assert_int_equal(plan_encoded_bytes(PLAN_CODE_BYTES, 12), 12);
}

/* Bytes and values are each other's inverse, and as many as a coded segment's slice takes. */
static void sizes(void **state) {
    (void)state;
    for (int code = 0; code < PLAN_CODES; code++) {
        const plan_encoding *of = plan_encoding_of((plan_code)code);
        int64_t bytes = plan_encoded_bytes((plan_code)code, 7 * of->values);
        assert_int_equal(bytes, 7 * of->bytes);
        assert_int_equal(plan_encoded_values((plan_code)code, bytes), 7 * of->values);
        bool decoded = of->decode != DEVICE_KERNELS, added = of->type != BASE_NONE;
        assert_false(decoded && added); /* what a kernel decodes is not added up as it is */
    }
    static const model_coding codings[] = {MODEL_UNCODED, MODEL_NF4, MODEL_NF4_DOUBLED};
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        int64_t values = 3 * model_piece(codings[i]);
        plan_code code = plan_code_of_weights(codings[i], BASE_BF16);
        assert_int_equal(plan_encoded_bytes(code, values), model_held_bytes(codings[i], values, 2));
    }
}

/* What sums of gradients are sent in: their own type, or a narrower one that a kernel makes. */
static void sums(void **state) {
    (void)state;
    plan_settings s = {.step.grad_accum_dtype = SIFR_FP32,
                       .step.communication_data_type = SIFR_FP32};
    assert_int_equal(plan_sent_sums(&s), PLAN_CODE_FP32);
    s.step.communication_data_type = SIFR_FP16;
    assert_int_equal(plan_sent_sums(&s), PLAN_CODE_FP16);
    assert_int_equal(plan_encoding_of(plan_sent_sums(&s))->encode, DEVICE_CONVERT);
    assert_int_equal(plan_sum_type(&s), BASE_FP32);
    s.step.grad_accum_dtype = SIFR_BF16; /* is sent as it is */
    assert_int_equal(plan_sent_sums(&s), PLAN_CODE_BF16);
    assert_int_equal(plan_sum_type(&s), BASE_BF16);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(types), cmocka_unit_test(sizes),
                                       cmocka_unit_test(sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
