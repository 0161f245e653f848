/* Attention of context ranks' queries: each query's result, its statistics and its gradient have
 * the bits of a call with all queries, wherever the runs are cut; gradients of keys and values are
 * parts of theirs; and keys that no query reads may hold anything.
 * in test_asan */
#include "device/attention_case.h"
#include "support/thinned.h"

#include <math.h>

static const attention_case cases[] = {
    {SHAPE(1, 8, 2, 1, 8)},
    {SHAPE(2, 128, 2, 1, 16)},
    {SHAPE(1, 256, 2, 2, 24), .softcap = 2},
    {SHAPE(2, 312, 2, 1, 40), .window = 30},
    {SHAPE(1, 520, 1, 1, 16), .window = 100},
    {SHAPE(1, 264, 1, 1, 8), .window = 3},
    {SHAPE(1, 136, 2, 1, 16), .bidirectional = true},
    {SHAPE(2, 296, 1, 1, 24), .bidirectional = true, .window = 20},
    {SHAPE(2, 200, 2, 1, 16), .segments = DOCUMENTS},
    {SHAPE(1, 328, 2, 1, 8), .segments = SCATTERED, .window = 50},
    {SHAPE(2, 168, 20, 20, 8)},
};

static device_matrix with_rows(const device_matrix *like, int64_t rows) {
    device_matrix m = case_matrix(rows, like->columns, like->dtype, 1, 0);
    memset(m.data, 0, case_bytes(&m));
    return m;
}

/* The rank's rows of a value of all tokens; or, back, those put among all. */
static void move_rows(const attention_case *c, const device_attention_attributes *a,
                      device_matrix *all, device_matrix *own, bool back) {
    int64_t half = c->length / (2 * a->contexts);
    for (int64_t i = 0; i < 2 * c->sequences * half; i++) {
        int64_t run = i / half % 2, sequence = i / (2 * half);
        int64_t row = sequence * c->length + device_attention_run(a, (int)run) + i % half;
        for (int64_t column = 0; column < own->columns; column++) {
            if (back)
                case_set(all, row, column, case_get(own, i, column));
            else
                case_set(own, i, column, case_get(all, row, column));
        }
    }
}

/* Keys and values outside of what the rank's queries may read become NaN, or in fp32 huge. */
static void spoil(const attention_case *c, const device_attention_attributes *a,
                  device_matrix *keys) {
    int64_t half = c->length / (2 * a->contexts);
    for (int64_t row = 0; row < keys->rows; row++) {
        int64_t key = row % c->length;
        bool read = false;
        for (int run = 0; run < 2; run++) {
            int64_t from, to;
            device_attention_reach(a, device_attention_run(a, run), half, &from, &to);
            read |= key >= from && key < to;
        }
        int64_t bytes = keys->stride * base_dtype_bytes(keys->dtype);
        if (!read) memset((char *)keys->data + row * bytes, 0x7f, (size_t)bytes);
    }
}

static void run_rank(device *dev, const attention_operands *o, device_call *forward,
                     device_call *backward, int32_t ranks, int32_t rank, device_matrix *y,
                     device_matrix *dq, device_matrix *log_sums, double *sums[2]) {
    const attention_case *c = o->c;
    int64_t rows = c->sequences * c->length / ranks;
    device_call calls[2] = {*forward, *backward};
    device_attention_attributes *a = &calls[0].attributes.attention;
    a->contexts = ranks, a->context = rank;
    calls[1].attributes.attention = *a;
    device_matrix q = with_rows(&calls[0].x[0], rows), own_y = with_rows(&calls[0].y, rows),
                  dy = with_rows(&calls[1].dy, rows), own_dq = with_rows(&calls[1].dx[0], rows),
                  saved = case_matrix(c->heads, rows, BASE_FP32, 1, 0), keys[2], parts[2];
    move_rows(c, a, &calls[0].x[0], &q, false);
    move_rows(c, a, &calls[1].dy, &dy, false);
    for (int i = 0; i < 2; i++) {
        const device_matrix *whole = &forward->x[1 + i];
        keys[i] = with_rows(whole, whole->rows);
        for (int64_t r = 0; r < whole->rows; r++)
            for (int64_t column = 0; column < whole->columns; column++)
                case_set(&keys[i], r, column, case_get(whole, r, column));
        spoil(c, a, &keys[i]);
        parts[i] = case_matrix(whole->rows, whole->columns, BASE_FP32, 1, 0);
        memset(parts[i].data, 0, case_bytes(&parts[i]));
    }
    for (int i = 0; i < 2; i++) {
        calls[i].x[0] = q, calls[i].x[1] = keys[0], calls[i].x[2] = keys[1];
        calls[i].y = own_y, calls[i].saved[0] = saved;
    }
    calls[1].dy = dy, calls[1].dx[0] = own_dq;
    calls[1].dx[1] = parts[0], calls[1].dx[2] = parts[1];
    case_run(dev, &calls[0]);
    case_run(dev, &calls[1]);
    move_rows(c, a, y, &own_y, true);
    move_rows(c, a, dq, &own_dq, true);
    for (int64_t head = 0; head < c->heads; head++)
        for (int64_t i = 0; i < rows; i++) {
            int64_t half = c->length / (2 * ranks), sequence = i / (2 * half);
            int64_t row =
                sequence * c->length + device_attention_run(a, (int)(i / half % 2)) + i % half;
            case_set(log_sums, head, row, case_get(&saved, head, i));
        }
    for (int i = 0; i < 2; i++)
        for (int64_t r = 0; r < parts[i].rows; r++)
            for (int64_t column = 0; column < parts[i].columns; column++)
                sums[i][r * parts[i].columns + column] += case_get(&parts[i], r, column);
    device_matrix *made[] = {&q,       &own_y,   &dy,       &own_dq,  &saved,
                             &keys[0], &keys[1], &parts[0], &parts[1]};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) free(made[i]->data);
}

static void expect_equal(const char *what, const attention_case *c, int32_t ranks,
                         const device_matrix *have, const device_matrix *want) {
    for (int64_t r = 0; r < want->rows; r++)
        for (int64_t column = 0; column < want->columns; column++) {
            double is = case_get(have, r, column), wanted = case_get(want, r, column);
            if (is != wanted)
                fail_msg("%s, length %lld, window %lld, %d ranks: %.9g at %lld, %lld, not %.9g",
                         what, (long long)c->length, (long long)c->window, (int)ranks, is,
                         (long long)r, (long long)column, wanted);
        }
}

static void check_ranks(device *dev, const attention_operands *o, int32_t ranks) {
    device_call forward = describe_call(o, DEVICE_ATTENTION);
    device_call backward = describe_call(o, DEVICE_ATTENTION_BACKWARD);
    case_run(dev, &forward);
    case_run(dev, &backward);
    int64_t keys = forward.x[1].rows, columns = forward.x[1].columns;
    device_matrix y = with_rows(&o->y, o->y.rows), dq = with_rows(&backward.dx[0], o->y.rows);
    device_matrix log_sums = with_rows(&o->log_sums, o->log_sums.rows);
    double *sums[2];
    for (int i = 0; i < 2; i++) sums[i] = calloc((size_t)(keys * columns), sizeof(double));
    for (int32_t rank = 0; rank < ranks; rank++)
        run_rank(dev, o, &forward, &backward, ranks, rank, &y, &dq, &log_sums, sums);
    expect_equal("y", o->c, ranks, &y, &o->y);
    expect_equal("log sum", o->c, ranks, &log_sums, &o->log_sums);
    expect_equal("dq", o->c, ranks, &dq, &backward.dx[0]);
    double bound = o->qkv.dtype == BASE_FP32 ? 1e-5 : o->qkv.dtype == BASE_FP16 ? 2e-3 : 2e-2;
    for (int i = 0; i < 2; i++) {
        double off = 0, size = 0;
        for (int64_t r = 0; r < keys; r++)
            for (int64_t column = 0; column < columns; column++) {
                double want = case_get(&backward.dx[1 + i], r, column);
                off += fabs(sums[i][r * columns + column] - want), size += fabs(want);
            }
        if (!(off <= bound * size))
            fail_msg("d%c, length %lld, %d ranks: off by %g of %g", "kv"[i],
                     (long long)o -> c -> length, (int)ranks, off, size);
        free(sums[i]);
    }
    free(y.data);
    free(dq.data);
    free(log_sums.data);
}

static void check_isa(const char *isa) {
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    device *dev = case_device(2, isa);
    if (dev == NULL) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int type = 0; type < 3; type++) {
            if (thinned_out(i + (size_t)type)) continue;
            attention_operands o = make_operands(&cases[i], types[type], i % 2 ? 0.3f : 0.0f);
            for (int32_t ranks = 2; ranks <= 4 && cases[i].length % (2 * ranks) == 0; ranks *= 2)
                check_ranks(dev, &o, ranks);
            free_operands(&o);
        }
    device_close(dev);
}

static void contexts_avx512_bf16(void **state) {
    (void)state;
    check_isa("avx512_bf16");
}

static void contexts_avx512(void **state) {
    (void)state;
    check_isa("avx512");
}

static void contexts_avx2(void **state) {
    (void)state;
    check_isa("avx2");
}

static void contexts_plain(void **state) {
    (void)state;
    check_isa("plain");
}

static void contexts_refused(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    static const attention_case c = {SHAPE(1, 12, 2, 1, 8)};
    attention_operands o = make_operands(&c, BASE_FP32, 0);
    sifr_error error = {0};
    device_call call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.contexts = 4;
    call.x[0].rows = call.y.rows = call.saved[0].columns = 3;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "queries of context rank 0 of 4"));
    call.attributes.attention.contexts = 2;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "x1"));
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_avx512_bf16), cmocka_unit_test(contexts_avx512),
        cmocka_unit_test(contexts_avx2),        cmocka_unit_test(contexts_plain),
        cmocka_unit_test(contexts_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
