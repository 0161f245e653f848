/* Attention with a cache: fed piece by piece it gives what attention gives for the whole, and one
 * token of each of several sequences what each gives alone.
 * in test_asan */
#include "device/attention_case.h"

static device_matrix rows_of(const device_matrix *m, int64_t first, int64_t rows) {
    device_matrix slice = *m;
    slice.data = (char *)m->data + first * m->stride * base_dtype_bytes(m->dtype);
    slice.rows = rows;
    return slice;
}

/* A sequence fed to the cache piece by piece gives what attention gives for the whole. */
static void check_cached(const char *isa, const attention_case *c, base_dtype type) {
    static const int64_t pieces[] = {1, 5, 60, 1, 8, 7, 1000, 3, 1000, 5, 3000};
    device *dev = case_device(2, isa);
    if (dev == NULL) return;
    attention_operands o = make_operands(c, type, 0);
    device_call whole = describe_call(&o, DEVICE_ATTENTION);
    case_run(dev, &whole);
    device_matrix got = case_matrix(c->length, q_width(c), type, 8, 1);
    device_matrix positions = case_matrix(c->length, 1, BASE_INT32, 9, 0);
    device_matrix caches[2];
    for (int i = 0; i < 2; i++) caches[i] = case_matrix(c->length + 3, kv_width(c), type, 10, 1);
    for (int64_t r = 0; r < c->length; r++) case_set(&positions, r, 0, (double)r);
    int64_t first = 0;
    for (int i = 0; first < c->length; i++) {
        int64_t rows = pieces[i] < c->length - first ? pieces[i] : c->length - first;
        device_call call = whole;
        call.kernel = DEVICE_ATTENTION_CACHED;
        for (int j = 0; j < 3; j++) call.x[j] = rows_of(&whole.x[j], first, rows);
        call.x[3] = rows_of(&positions, first, rows);
        call.w[0] = caches[0], call.w[1] = caches[1];
        call.y = rows_of(&got, first, rows);
        call.saved[0] = (device_matrix){0};
        call.attributes.attention.sequences = 1;
        call.attributes.attention.length = c->length + 3;
        case_run(dev, &call);
        first += rows;
    }
    for (int64_t r = 0; r < c->length; r++)
        for (int64_t i = 0; i < got.columns; i++)
            check_value("cached y", c, type, case_get(&got, r, i), case_get(&o.y, r, i), 1.5);
    for (int i = 0; i < 2; i++) free(caches[i].data);
    free(positions.data);
    free(got.data);
    free_operands(&o);
    device_close(dev);
}

static void attention_cached(void **state) {
    (void)state;
    static const attention_case some[] = {
        {SHAPE(1, 90, 4, 2, 24)},
        {SHAPE(1, 1100, 2, 1, 16)},
        {SHAPE(1, 81, 2, 1, 256), .softcap = 4, .window = 40},
        {SHAPE(1, 79, 2, 2, 96)},
        {SHAPE(1, 75, 1, 1, 33)},
        {SHAPE(1, 90, 6, 3, 16), .alibi = 1, .window = 30},
        {SHAPE(1, 90, 4, 2, 40), .scale = 0.3, .softcap = 1.5, .window = 13},
        {SHAPE(1, 2150, 2, 1, 8), .softcap = 2, .window = 1030},
        {SHAPE(1, 1100, 3, 1, 8), .alibi = 1}}; /* three ranges of keys */
    for (int isa = 0; isa < CASE_ISAS; isa++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            check_cached(case_isas[isa], &some[i], BASE_FP32);
            check_cached(case_isas[isa], &some[i], BASE_BF16);
            check_cached(case_isas[isa], &some[i], BASE_FP16);
        }
}

/* One token of each of several sequences: the same bits as each alone, and caches alike. */
static void check_batch(const char *isa, const attention_case *c, base_dtype type) {
    enum { SEQUENCES = 11 };
    device *dev = case_device(2, isa);
    if (dev == NULL) return;
    attention_case tokens = *c;
    tokens.length = SEQUENCES; /* as rows of one sequence: the operands are the same */
    attention_operands o = make_operands(&tokens, type, 0);
    device_matrix got = case_matrix(SEQUENCES, q_width(c), type, 8, 1);
    device_matrix positions = case_matrix(SEQUENCES, 1, BASE_INT32, 9, 0);
    device_matrix together[2], alone[2];
    for (int i = 0; i < 2; i++) {
        together[i] = case_matrix(SEQUENCES * c->length, kv_width(c), type, 10 + (uint64_t)i, 1);
        alone[i] = case_copy(&together[i]);
    }
    for (int64_t r = 0; r < SEQUENCES; r++)
        case_set(&positions, r, 0, (double)(r * 977 % c->length));
    case_set(&positions, 3, 0, (double)(c->length - 1));
    device_call call = describe_call(&o, DEVICE_ATTENTION);
    call.kernel = DEVICE_ATTENTION_CACHED;
    call.x[3] = positions, call.w[0] = together[0], call.w[1] = together[1], call.y = got;
    call.saved[0] = (device_matrix){0};
    call.attributes.attention.sequences = SEQUENCES;
    call.attributes.attention.length = c->length;
    case_run(dev, &call);
    for (int64_t r = 0; r < SEQUENCES; r++) {
        device_call one = call;
        for (int j = 0; j < 4; j++) one.x[j] = rows_of(&call.x[j], r, 1);
        for (int j = 0; j < 2; j++) one.w[j] = rows_of(&alone[j], r * c->length, c->length);
        one.y = rows_of(&o.y, r, 1);
        one.attributes.attention.sequences = 1;
        case_run(dev, &one);
        for (int64_t i = 0; i < got.columns; i++)
            assert_true(case_get(&got, r, i) == case_get(&o.y, r, i));
    }
    for (int i = 0; i < 2; i++)
        assert_memory_equal(together[i].data, alone[i].data, case_bytes(&alone[i]));
    for (int i = 0; i < 2; i++) free(together[i].data), free(alone[i].data);
    free(positions.data);
    free(got.data);
    free_operands(&o);
    device_close(dev);
}

static void attention_batch(void **state) {
    (void)state;
    static const attention_case some[] = {
        {SHAPE(1, 90, 4, 2, 24)},
        {SHAPE(1, 90, 4, 2, 40), .scale = 0.3, .softcap = 1.5, .window = 13},
        {SHAPE(1, 2150, 2, 1, 8), .softcap = 2, .window = 1030},
        {SHAPE(1, 1100, 3, 1, 8), .alibi = 1}}; /* three ranges of keys */
    for (int isa = 0; isa < CASE_ISAS; isa++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            check_batch(case_isas[isa], &some[i], BASE_FP32);
            check_batch(case_isas[isa], &some[i], BASE_BF16);
        }
}

static void cached_refuses(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    static const attention_case c = {SHAPE(1, 4, 4, 2, 8)};
    attention_operands o = make_operands(&c, BASE_FP32, 0);
    sifr_error error = {0};
    device_call call = describe_call(&o, DEVICE_ATTENTION);
    call.kernel = DEVICE_ATTENTION_CACHED, call.attributes.attention.bidirectional = true;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "does not generate"));
    call = describe_call(&o, DEVICE_ATTENTION);
    call.kernel = DEVICE_ATTENTION_CACHED, call.attributes.attention.sequences = 3;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "4 rows are not one of each of 3 sequences"));
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_cached),
        cmocka_unit_test(attention_batch),
        cmocka_unit_test(cached_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
