/* Attention of GPUs, over the shim, against double precision: shapes, features and dropout, the
 * same bits in any order of threads, slices that are aligned to nothing, and what it refuses. in
 * test_asan */
#include "device/attention_reference.h"
#include "support/cuda/op_gpu.h"
#include "support/cuda/shim_run.h"
#include "support/thinned.h"

/* Lengths around the tiles of 64, 32 and 16 rows; widths that are padded to 64, 128 and 256. */
static const attention_case cases[] = {
    {SHAPE(1, 1, 1, 1, 1)},
    {SHAPE(2, 17, 2, 1, 24)},
    {SHAPE(1, 65, 4, 2, 64)},
    {SHAPE(1, 70, 2, 1, 80)},
    {SHAPE(1, 130, 1, 1, 128)},
    {SHAPE(1, 35, 2, 1, 256), .softcap = 4},
    {SHAPE(1, 67, 1, 1, 200)},
    {SHAPE(3, 64, 2, 2, 33)},
    {SHAPE(2, 75, 2, 1, 16), .bidirectional = true},
    {SHAPE(1, 150, 2, 2, 24), .softcap = 1.5, .scale = 0.4},
    {SHAPE(2, 9, 1, 1, 8), .window = 1},
    {SHAPE(1, 210, 2, 1, 16), .window = 7},
    {SHAPE(1, 203, 1, 1, 40), .window = 100, .softcap = 3},
    {SHAPE(1, 161, 2, 1, 130), .window = 33},
    {SHAPE(2, 3, 1, 1, 8), .bidirectional = true, .window = 2},
    {SHAPE(1, 257, 1, 1, 8), .bidirectional = true, .window = 9},
    {SHAPE(2, 150, 2, 1, 16), .segments = PADDED, .bidirectional = true},
    {SHAPE(2, 201, 1, 1, 40), .segments = DOCUMENTS, .window = 70},
    {SHAPE(1, 130, 2, 1, 72), .segments = SCATTERED},
    {SHAPE(1, 170, 1, 1, 16), .segments = SCATTERED, .window = 20, .bidirectional = true},
    {SHAPE(1, 130, 1, 1, 8), .segments = ALONE, .bidirectional = true},
};

static const attention_case dropped[] = {
    {SHAPE(2, 41, 2, 1, 24)},
    {SHAPE(1, 75, 4, 2, 16), .bidirectional = true},
    {SHAPE(1, 70, 2, 1, 130), .window = 40, .softcap = 2},
    {SHAPE(1, 97, 1, 1, 72), .segments = DOCUMENTS},
};

static device *open_gpu(int order) {
    device *dev = NULL;
    sifr_error error = {0};
    if (shim_skipped()) skip();
    if (op_gpu_open(order, &dev, &error) != SIFR_OK) fail_msg("%s", error.message);
    return dev;
}

static void run_attention(device *dev, attention_operands *o) {
    device_call forward = describe_call(o, DEVICE_ATTENTION);
    case_run(dev, &forward);
    device_call backward = describe_call(o, DEVICE_ATTENTION_BACKWARD);
    case_run(dev, &backward);
}

/* Everything that is written, filled with bytes of 0xff: NaN. */
static attention_operands fresh_results(const attention_operands *o) {
    attention_operands other = *o;
    device_matrix *results[] = {&other.y, &other.dqkv, &other.log_sums};
    for (int i = 0; i < 3; i++) {
        *results[i] = case_copy(results[i]);
        memset(results[i]->data, 0xff, case_bytes(results[i]));
    }
    return other;
}

static void free_results(attention_operands *o) {
    free(o->y.data);
    free(o->dqkv.data);
    free(o->log_sums.data);
}

static void check_order(const attention_operands *first, int order) {
    attention_operands other = fresh_results(first);
    device *dev = open_gpu(order);
    run_attention(dev, &other);
    device_close(dev);
    assert_memory_equal(other.y.data, first->y.data, case_bytes(&first->y));
    assert_memory_equal(other.dqkv.data, first->dqkv.data, case_bytes(&first->dqkv));
    assert_memory_equal(other.log_sums.data, first->log_sums.data, case_bytes(&first->log_sums));
    free_results(&other);
}

/* Each case runs in one more order, the next case in the next one. */
static void check_cases(const attention_case *list, size_t count, base_dtype type, float dropout) {
    static const int orders[] = {SHIM_DOWN, 2, 3};
    device *dev = open_gpu(SHIM_UP);
    for (size_t i = 0; i < count; i++) {
        bool half = type == BASE_FP16 && i % 2; /* the same source as bf16 */
        if (half || thinned_out(i + (size_t)type)) continue;
        attention_operands o = make_operands(&list[i], type, dropout);
        attention_operands results = fresh_results(&o);
        run_attention(dev, &results);
        check_forward(&results);
        check_backward(&results);
        if (i < 3 || !thinned_out(1)) check_order(&results, orders[(i + (size_t)type) % 3]);
        free_results(&results);
        free_operands(&o);
    }
    device_close(dev);
}

static void check_type(base_dtype type) {
    check_cases(cases, sizeof cases / sizeof *cases, type, 0);
    check_cases(dropped, sizeof dropped / sizeof *dropped, type, 0.3f);
}

static void cuda_attention_bf16(void **state) {
    (void)state;
    check_type(BASE_BF16);
}

static void cuda_attention_fp16(void **state) {
    (void)state;
    check_type(BASE_FP16);
}

static void cuda_attention_fp32(void **state) {
    (void)state;
    check_type(BASE_FP32);
}

/* Dropout does nothing outside of training. */
static void cuda_attention_evaluates(void **state) {
    (void)state;
    step.training = false;
    check_cases(dropped, 1, BASE_BF16, 0.3f);
    check_cases(dropped, 1, BASE_FP32, 0.3f);
    step.training = true;
}

/* A slice of columns of a matrix that begins `shift` elements after a multiple of 16 bytes and has
 * not a byte more than it needs; a sanitizer sees what reads beyond it. */
static device_matrix shifted(const device_matrix *m, int64_t shift) {
    device_matrix out = *m;
    size_t size = (size_t)base_dtype_bytes(m->dtype);
    out.stride = m->columns + 2 * shift + 1;
    size_t bytes = size * (size_t)((m->rows - 1) * out.stride + shift + m->columns);
    char *memory = malloc(bytes);
    assert_non_null(memory);
    memset(memory, 0x5a, bytes);
    out.data = memory + size * (size_t)shift;
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t c = 0; c < m->columns; c++) case_set(&out, r, c, case_get(m, r, c));
    return out;
}

static void check_between(const device_matrix *m) {
    size_t size = (size_t)base_dtype_bytes(m->dtype);
    for (int64_t r = 0; r + 1 < m->rows; r++) {
        const uint8_t *gap = (const uint8_t *)m->data + (size_t)(r * m->stride + m->columns) * size;
        for (size_t i = 0; i < (size_t)(m->stride - m->columns) * size; i++)
            assert_int_equal(gap[i], 0x5a);
    }
}

static void check_slices(const attention_case *c, base_dtype type, int64_t shift) {
    size_t before = (size_t)(shift * base_dtype_bytes(type));
    attention_operands o = make_operands(c, type, 0), s = o;
    s.qkv = shifted(&o.qkv, shift), s.dqkv = shifted(&o.dqkv, shift);
    s.y = shifted(&o.y, shift), s.dy = shifted(&o.dy, shift);
    s.log_sums = shifted(&o.log_sums, 0);
    device *dev = open_gpu(2);
    run_attention(dev, &s);
    device_close(dev);
    check_forward(&s);
    check_backward(&s);
    device_matrix *all[] = {&s.qkv, &s.dqkv, &s.y, &s.dy};
    for (int i = 0; i < 4; i++) {
        check_between(all[i]);
        free((char *)all[i]->data - before);
    }
    free(s.log_sums.data);
    free_operands(&o);
}

static void cuda_attention_slices(void **state) {
    (void)state;
    static const base_dtype types[] = {BASE_BF16, BASE_FP16, BASE_FP32};
    static const attention_case c = {SHAPE(2, 19, 2, 1, 64)}, wide = {SHAPE(1, 37, 2, 1, 136)};
    for (int i = 0; i < 3; i++) {
        check_slices(&c, types[i], 1);
        check_slices(&wide, types[i], 3);
    }
}

/* No log-sum-exp is asked for when nothing is trained. */
static void cuda_attention_without_sums(void **state) {
    (void)state;
    static const attention_case c = {SHAPE(1, 20, 2, 1, 16)};
    static const base_dtype types[] = {BASE_BF16, BASE_FP32};
    for (int i = 0; i < 2; i++) {
        attention_operands o = make_operands(&c, types[i], 0);
        device *dev = open_gpu(SHIM_UP);
        device_call call = describe_call(&o, DEVICE_ATTENTION);
        case_run(dev, &call);
        device_matrix with = case_copy(&o.y);
        memset(o.y.data, 0xff, case_bytes(&o.y));
        call.saved[0] = (device_matrix){0};
        case_run(dev, &call);
        assert_memory_equal(with.data, o.y.data, case_bytes(&o.y));
        free(with.data);
        free_operands(&o);
        device_close(dev);
    }
}

static void cuda_attention_refuses(void **state) {
    (void)state;
    device *dev = open_gpu(SHIM_UP);
    static const attention_case wide = {SHAPE(1, 4, 1, 1, 257), .bidirectional = true};
    static const attention_case c = {SHAPE(1, 4, 1, 1, 129), .bidirectional = true};
    attention_operands o = make_operands(&wide, BASE_BF16, 0);
    sifr_error error = {0};
    device_call call = describe_call(&o, DEVICE_ATTENTION);
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(
        strstr(error.message,
               "heads of 257 values: on CUDA they have at most 256; --device cpu has no limit"));
    free_operands(&o);
    o = make_operands(&c, BASE_BF16, 0);
    call = describe_call(&o, DEVICE_ATTENTION);
    call.x[4] = case_matrix(8, 129, BASE_BF16, 9, 1);
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "at most 128 with relative positions"));
    free(call.x[4].data);
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuda_attention_bf16),    cmocka_unit_test(cuda_attention_fp16),
        cmocka_unit_test(cuda_attention_fp32),    cmocka_unit_test(cuda_attention_evaluates),
        cmocka_unit_test(cuda_attention_slices),  cmocka_unit_test(cuda_attention_without_sums),
        cmocka_unit_test(cuda_attention_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
