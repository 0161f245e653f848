/* Attention against double precision: forward, gradients (also against finite differences of the
 * reference), grouped heads, slices, dropout, and the same bits for any number of
 * threads.
 * in test_asan */
#include "device/attention_reference.h"
#include "support/thinned.h"

#include <math.h>
#include <stdio.h>

static const attention_case cases[] = {
    {SHAPE(1, 1, 1, 1, 1)},    {SHAPE(2, 5, 2, 1, 3)},    {SHAPE(1, 70, 2, 2, 16)},
    {SHAPE(2, 65, 4, 2, 64)},  {SHAPE(1, 130, 1, 1, 80)}, {SHAPE(1, 200, 3, 1, 128)},
    {SHAPE(1, 67, 2, 1, 256)}, {SHAPE(3, 64, 2, 2, 33)},  {SHAPE(1, 66, 1, 1, 96)},
    {SHAPE(1, 65, 2, 1, 72)},  {SHAPE(1, 97, 2, 1, 24)},  {SHAPE(1, 35, 4, 1, 256), .softcap = 4}};

/* The features, alone and together; blocks of queries have 16 to 64 rows, tiles 64 keys. */
static const attention_case features[] = {
    {SHAPE(2, 70, 2, 1, 16), .scale = 0.4},
    {SHAPE(1, 150, 2, 1, 24), .softcap = 1.5},
    {SHAPE(2, 9, 1, 1, 8), .window = 1},
    {SHAPE(1, 210, 2, 2, 16), .window = 7},
    {SHAPE(2, 201, 2, 1, 40), .window = 64, .softcap = 3},
    {SHAPE(1, 333, 1, 1, 33), .window = 100, .scale = 0.3},
    {SHAPE(1, 300, 1, 1, 8), .window = 300},
    {SHAPE(1, 131, 2, 1, 256), .window = 65, .softcap = 0.7, .scale = 0.1},
    {SHAPE(2, 75, 2, 1, 16), .bidirectional = true},
    {SHAPE(1, 203, 2, 2, 24), .bidirectional = true, .softcap = 1},
    {SHAPE(1, 310, 1, 1, 40), .bidirectional = true, .window = 65},
    {SHAPE(2, 3, 1, 1, 8), .bidirectional = true, .window = 2},
    {SHAPE(1, 257, 2, 1, 8), .bidirectional = true, .window = 9},
    {SHAPE(1, 1, 1, 1, 4), .bidirectional = true},
    {SHAPE(2, 150, 2, 1, 16), .segments = PADDED, .bidirectional = true},
    {SHAPE(1, 333, 2, 2, 24), .segments = DOCUMENTS},
    {SHAPE(2, 301, 1, 1, 40), .segments = DOCUMENTS, .window = 70, .softcap = 2},
    {SHAPE(1, 210, 2, 1, 8), .segments = SCATTERED},
    {SHAPE(2, 170, 1, 1, 16), .segments = SCATTERED, .window = 20, .bidirectional = true},
    {SHAPE(1, 130, 1, 1, 8), .segments = ALONE, .bidirectional = true},
    {SHAPE(1, 257, 2, 1, 33), .segments = PADDED, .window = 65},
    {SHAPE(2, 70, 3, 3, 16), .alibi = 1},
    {SHAPE(1, 201, 6, 2, 8), .alibi = 0.5, .scale = 0.3, .window = 90},
    {SHAPE(1, 150, 4, 4, 24), .alibi = 1, .segments = DOCUMENTS},
};

static void run_attention(device *dev, attention_operands *o) {
    device_call forward = describe_call(o, DEVICE_ATTENTION);
    case_run(dev, &forward);
    device_call backward = describe_call(o, DEVICE_ATTENTION_BACKWARD);
    case_run(dev, &backward);
}

static void check_threads(const char *isa, const attention_operands *first) {
    for (int t = 1; t < CASE_THREADS; t++) {
        attention_operands other = *first;
        other.y = case_copy(&first->y), other.dqkv = case_copy(&first->dqkv);
        other.log_sums = case_copy(&first->log_sums);
        memset(other.y.data, 0, case_bytes(&other.y));
        memset(other.dqkv.data, 0, case_bytes(&other.dqkv));
        device *dev = case_device(case_threads[t], isa);
        run_attention(dev, &other);
        device_close(dev);
        assert_memory_equal(other.y.data, first->y.data, case_bytes(&first->y));
        assert_memory_equal(other.dqkv.data, first->dqkv.data, case_bytes(&first->dqkv));
        assert_memory_equal(other.log_sums.data, first->log_sums.data,
                            case_bytes(&first->log_sums));
        free(other.y.data);
        free(other.dqkv.data);
        free(other.log_sums.data);
    }
}

static void check_cases(device *dev, const char *isa, const attention_case *list, size_t count) {
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (size_t i = 0; i < count; i++)
        for (int type = 0; type < (i % 2 ? 2 : 3); type++) {
            if (i % 2 == 0 && thinned_out(i / 2 + (size_t)type)) continue;
            attention_operands o = make_operands(&list[i], types[type], 0);
            run_attention(dev, &o);
            check_forward(&o);
            check_backward(&o);
            check_threads(isa, &o);
            free_operands(&o);
        }
}

static void check_isa(const char *isa) {
    device *dev = case_device(1, isa);
    if (dev == NULL) skip();
    check_cases(dev, isa, cases, sizeof cases / sizeof *cases);
    check_cases(dev, isa, features, sizeof features / sizeof *features);
    device_close(dev);
}

static void attention_avx512_bf16(void **state) {
    (void)state;
    check_isa("avx512_bf16");
}

static void attention_avx512(void **state) {
    (void)state;
    check_isa("avx512");
}

static void attention_avx2(void **state) {
    (void)state;
    check_isa("avx2");
}

static void attention_plain(void **state) {
    (void)state;
    check_isa("plain");
}

static double weighted_output(device *dev, attention_operands *o) {
    device_call call = describe_call(o, DEVICE_ATTENTION);
    case_run(dev, &call);
    double sum = 0;
    for (int64_t r = 0; r < o->y.rows; r++)
        for (int64_t c = 0; c < o->y.columns; c++)
            sum += case_get(&o->y, r, c) * case_get(&o->dy, r, c);
    return sum;
}

/* With dropout the numbers come back in the backward pass: differences of the forward kernel. */
static void attention_differences(void **state) {
    (void)state;
    static const attention_case plain = {SHAPE(2, 9, 2, 1, 6)},
                                both = {SHAPE(2, 9, 2, 1, 6), .bidirectional = true},
                                all = {SHAPE(2, 9, 2, 1, 6), .scale = 0.5, .softcap = 1.2,
                                       .segments = SCATTERED, .window = 4};
    for (int isa = 0; isa < CASE_ISAS; isa++)
        for (int variant = 0; variant < 6; variant++) {
            device *dev = case_device(2, case_isas[isa]);
            if (dev == NULL) continue;
            bool dropout = variant % 2;
            const attention_case c = variant < 2 ? plain : variant < 4 ? both : all;
            attention_operands o = make_operands(&c, BASE_FP32, dropout ? 0.4f : 0.0f);
            run_attention(dev, &o);
            for (int64_t r = 0; r < o.qkv.rows; r += 2)
                for (int64_t column = r % 5; column < o.qkv.columns; column += 5) {
                    double at = case_get(&o.qkv, r, column), delta = 0x1p-7;
                    case_set(&o.qkv, r, column, at + delta);
                    double high = weighted_output(dev, &o);
                    case_set(&o.qkv, r, column, at - delta);
                    double low = weighted_output(dev, &o);
                    case_set(&o.qkv, r, column, at);
                    double want = (high - low) / (2 * delta);
                    double got = case_get(&o.dqkv, r, column);
                    if (!(fabs(got - want) <= 2e-3 * (0.1 + fabs(want))))
                        fail_msg("%s variant %d: gradient (%lld, %lld) is %g, difference %g",
                                 case_isas[isa], variant, (long long)r, (long long)column, got,
                                 want);
                }
            free_operands(&o);
            device_close(dev);
        }
}

/* Values of ones: each output is the sum of what dropout leaves of the probabilities. Its mean is
 * 1; with equal scores over n keys its variance is p / (1 - p) / n. */
static void attention_dropout(void **state) {
    (void)state;
    static const attention_case c = {SHAPE(2, 256, 4, 2, 8)};
    static const char *const sets[] = {"avx512_bf16", "avx512", "avx2", "plain"};
    device_matrix before = {0};
    for (int isa = 0; isa < 4; isa++) {
        device *dev = case_device(1, sets[isa]);
        if (dev == NULL) continue;
        attention_operands o = make_operands(&c, BASE_FP32, 0.25f);
        for (int64_t r = 0; r < o.qkv.rows; r++)
            for (int64_t i = 0; i < o.qkv.columns; i++)
                case_set(&o.qkv, r, i, i < q_width(&c) + kv_width(&c) ? 0 : 1);
        weighted_output(dev, &o);
        double mean = 0, variance = 0;
        int64_t count = 0;
        for (int64_t r = 0; r < o.y.rows; r++)
            for (int h = 0; h < c.heads; h++) {
                double y = case_get(&o.y, r, (int64_t)h * c.head_dim);
                assert_true(fabs(y - case_get(&o.y, r, (int64_t)h * c.head_dim + 5)) < 1e-5);
                double n = (double)(r % c.length + 1);
                mean += y, variance += (y - 1) * (y - 1) * n, count++;
            }
        mean /= (double)count, variance /= (double)count;
        if (fabs(mean - 1) > 0.01) fail_msg("%s: mean %g", sets[isa], mean);
        if (fabs(variance - 1.0 / 3) > 0.04) fail_msg("%s: variance %g", sets[isa], variance);
        device_matrix again = case_copy(&o.y);
        for (int64_t r = 0; before.data != NULL && r < o.y.rows; r++) /* every set drops alike */
            for (int64_t i = 0; i < o.y.columns; i++)
                assert_true(fabs(case_get(&before, r, i) - case_get(&o.y, r, i)) < 1e-5);
        free(before.data);
        before = case_copy(&o.y);
        weighted_output(dev, &o);
        assert_memory_equal(again.data, o.y.data, case_bytes(&o.y));
        step.step++;
        weighted_output(dev, &o);
        assert_memory_not_equal(again.data, o.y.data, case_bytes(&o.y));
        step.step--, step.training = false;
        weighted_output(dev, &o);
        assert_true(fabs(case_get(&o.y, 100, 0) - 1) < 1e-5);
        step.training = true;
        free(again.data);
        free_operands(&o);
        device_close(dev);
    }
    free(before.data);
}

static void attention_refuses(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    static const attention_case c = {SHAPE(1, 4, 4, 2, 8)};
    attention_operands o = make_operands(&c, BASE_FP32, 0);
    sifr_error error = {0};
    device_call call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.kv_heads = 3;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "4 heads over 3 kv heads"));
    call = describe_call(&o, DEVICE_ATTENTION_BACKWARD);
    call.dx[1].columns--;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "dx1"));
    call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.window = -1;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "window -1"));
    call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.softcap = NAN;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "softcap"));
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_avx512_bf16), cmocka_unit_test(attention_avx512),
        cmocka_unit_test(attention_avx2),        cmocka_unit_test(attention_plain),
        cmocka_unit_test(attention_differences), cmocka_unit_test(attention_dropout),
        cmocka_unit_test(attention_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
