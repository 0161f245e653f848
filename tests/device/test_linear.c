/* Linear layers against sums in double precision, on every instruction set, and the same bits for
 * any number of threads.
 * in test_asan */
#include "device/matrix_case.h"
#include "support/thinned.h"

#include <math.h>
#include <stdio.h>

typedef struct linear_case {
    int64_t rows, in, out;
} linear_case;

/* Chunk edges, odd sizes, one row, tiles that do and do not fill up; groups of pieces that are not
 * of one size; few rows. */
static const linear_case cases[] = {
    {1, 7, 5},       {1, 300, 768},   {3, 64, 48},     {65, 33, 17},   {1023, 40, 128},
    {1024, 64, 256}, {1025, 128, 64}, {2100, 40, 130}, {520, 64, 576}, {9, 1100, 320},
    {32, 128, 704},  {33, 128, 192},  {8200, 8, 6}};

typedef struct linear_operands {
    device_matrix x, w, bias, y, dy, dx, dw, db;
    device_matrix dx_before, dw_before, db_before;
    bool transposed, accumulate, accumulate_dw;
    int64_t whole; /* of which x is a part; 0: x is all */
} linear_operands;

static linear_operands make_operands(const linear_case *c, base_dtype type, bool transposed,
                                     bool accumulate) {
    int64_t w_rows = transposed ? c->in : c->out, w_columns = transposed ? c->out : c->in;
    return (linear_operands){.x = case_matrix(c->rows, c->in, type, 1, 1),
                             .w = case_matrix(w_rows, w_columns, type, 2, 1),
                             .bias = case_matrix(1, c->out, type, 3, 1),
                             .y = case_matrix(c->rows, c->out, type, 4, 1),
                             .dy = case_matrix(c->rows, c->out, type, 5, 1),
                             .dx_before = case_matrix(c->rows, c->in, type, 6, 1),
                             .dw_before = case_matrix(w_rows, w_columns, BASE_FP32, 7, 1),
                             .db_before = case_matrix(1, c->out, BASE_FP32, 8, 1),
                             .transposed = transposed,
                             .accumulate = accumulate,
                             .accumulate_dw = accumulate};
}

static void free_operands(linear_operands *o) {
    void *blocks[] = {o->x.data,  o->w.data,         o->bias.data,      o->y.data,
                      o->dy.data, o->dx_before.data, o->dw_before.data, o->db_before.data};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

static void run_linear(device *dev, linear_operands *o) {
    device_call forward = {.kernel = DEVICE_LINEAR, .x = {o->x}, .w = {o->w, o->bias}, .y = o->y};
    forward.attributes.linear.transposed = o->transposed;
    forward.attributes.linear.whole = o->whole;
    case_run(dev, &forward);
    device_call backward = {.kernel = DEVICE_LINEAR_BACKWARD,
                            .x = {o->x},
                            .w = {o->w},
                            .dy = o->dy,
                            .dx = {o->dx},
                            .dw = {o->dw, o->db},
                            .accumulate = {o->accumulate},
                            .accumulate_dw = o->accumulate_dw};
    backward.attributes.linear.transposed = o->transposed;
    backward.attributes.linear.whole = o->whole;
    case_run(dev, &backward);
}

/* Of all weights: case_doubles. */
static double w_at(const linear_operands *o, const double *w, int64_t out, int64_t in) {
    return o->transposed ? w[in * o->w.columns + out] : w[out * o->w.columns + in];
}

/* Every element would take long: each `step`th row. */
static int64_t row_step(int64_t rows) {
    return rows > 100 ? 37 : thinned_out(1) ? 5 : 1;
}

static double forward_distance(const linear_operands *o) {
    double worst = 0, *w = case_doubles(&o->w), *x = case_doubles(&o->x);
    for (int64_t r = 0; r < o->x.rows; r += row_step(o->x.rows))
        for (int64_t c = 0; c < o->y.columns; c++) {
            double sum = case_get(&o->bias, 0, c), terms = fabs(sum);
            for (int64_t i = 0; i < o->x.columns; i++) {
                double term = x[r * o->x.columns + i] * w_at(o, w, c, i);
                sum += term, terms += fabs(term);
            }
            worst = fmax(worst, case_distance(case_get(&o->y, r, c), sum, terms, o->y.dtype));
        }
    free(x);
    free(w);
    return worst;
}

static double input_distance(const linear_operands *o) {
    double worst = 0, *w = case_doubles(&o->w), *dy = case_doubles(&o->dy);
    for (int64_t r = 0; r < o->x.rows; r += row_step(o->x.rows))
        for (int64_t i = 0; i < o->x.columns; i++) {
            double sum = o->accumulate ? case_get(&o->dx_before, r, i) : 0, terms = fabs(sum);
            for (int64_t c = 0; c < o->dy.columns; c++) {
                double term = dy[r * o->dy.columns + c] * w_at(o, w, c, i);
                sum += term, terms += fabs(term);
            }
            worst = fmax(worst, case_distance(case_get(&o->dx, r, i), sum, terms, o->dx.dtype));
        }
    free(dy);
    free(w);
    return worst;
}

static double weight_distance(const linear_operands *o) {
    double worst = 0, *x = case_doubles(&o->x), *dy = case_doubles(&o->dy);
    for (int64_t c = 0; c < o->dy.columns; c += thinned_out(1) ? 15 : 3)
        for (int64_t i = 0; i < o->x.columns; i++) {
            int64_t row = o->transposed ? i : c, column = o->transposed ? c : i;
            double sum = o->accumulate ? case_get(&o->dw_before, row, column) : 0;
            double terms = fabs(sum);
            for (int64_t r = 0; r < o->x.rows; r++) {
                double term = dy[r * o->dy.columns + c] * x[r * o->x.columns + i];
                sum += term, terms += fabs(term);
            }
            worst =
                fmax(worst, case_distance(case_get(&o->dw, row, column), sum, terms, BASE_FP32));
        }
    free(x);
    free(dy);
    return worst;
}

static double bias_distance(const linear_operands *o) {
    double worst = 0;
    for (int64_t c = 0; c < o->dy.columns; c++) {
        double sum = o->accumulate ? case_get(&o->db_before, 0, c) : 0, terms = fabs(sum);
        for (int64_t r = 0; r < o->dy.rows; r++) {
            sum += case_get(&o->dy, r, c);
            terms += fabs(case_get(&o->dy, r, c));
        }
        worst = fmax(worst, case_distance(case_get(&o->db, 0, c), sum, terms, BASE_FP32));
    }
    return worst;
}

static void begin_results(linear_operands *o) {
    o->dx = case_copy(&o->dx_before);
    o->dw = case_copy(&o->dw_before);
    o->db = case_copy(&o->db_before);
}

static void end_results(linear_operands *o) {
    free(o->dx.data);
    free(o->dw.data);
    free(o->db.data);
}

/* The same operands with results of their own, for expect_same. */
static linear_operands begin_again(const linear_operands *of) {
    linear_operands other = *of;
    begin_results(&other);
    other.y = case_copy(&of->y);
    memset(other.y.data, 0, case_bytes(&other.y));
    return other;
}

/* The same bits; frees `other`'s. */
static void expect_same(linear_operands *other, const linear_operands *want) {
    assert_memory_equal(other->y.data, want->y.data, case_bytes(&want->y));
    assert_memory_equal(other->dx.data, want->dx.data, case_bytes(&want->dx));
    assert_memory_equal(other->dw.data, want->dw.data, case_bytes(&want->dw));
    assert_memory_equal(other->db.data, want->db.data, case_bytes(&want->db));
    free(other->y.data);
    end_results(other);
}

/* `counts`: how many of case_threads to try. */
static void check_case(const char *isa, const linear_case *c, base_dtype type, int form,
                       int counts) {
    linear_operands first = make_operands(c, type, form & 1, form & 2);
    begin_results(&first);
    device *dev = case_device(1, isa);
    run_linear(dev, &first);
    device_close(dev);
    double distances[] = {forward_distance(&first), input_distance(&first), weight_distance(&first),
                          bias_distance(&first)};
    for (int i = 0; i < 4; i++)
        if (distances[i] > 1.0)
            fail_msg("%s %s %lldx%lldx%lld form %d: result %d is %g times too far off", isa,
                     base_dtype_name(type), (long long)c->rows, (long long)c->in, (long long)c->out,
                     form, i, distances[i]);
    for (int t = 1; t < counts; t++) {
        linear_operands other = begin_again(&first);
        dev = case_device(case_threads[t], isa);
        run_linear(dev, &other);
        device_close(dev);
        expect_same(&other, &first);
    }
    end_results(&first);
    free_operands(&first);
}

enum { LARGE = 4000000 };

static int64_t multiplications(const linear_case *c) {
    return c->rows * c->in * c->out;
}

static void check_isa(const char *isa) {
    device *dev = case_device(1, isa);
    if (dev == NULL) skip();
    device_close(dev);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int form = 0; form < 4; form++) {
            size_t turn = i + (size_t)form;
            if (!strcmp(isa, "plain") && thinned_large(multiplications(&cases[i]), LARGE)) continue;
            if (!thinned_out(turn)) check_case(isa, &cases[i], BASE_FP32, form, CASE_THREADS);
            if (!thinned_out(turn + 1)) check_case(isa, &cases[i], BASE_BF16, form, CASE_THREADS);
            if (!thinned_out(turn + 2)) check_case(isa, &cases[i], BASE_FP16, form, CASE_THREADS);
        }
}

static void linear_avx512_bf16(void **state) {
    (void)state;
    check_isa("avx512_bf16");
}

static void linear_avx512(void **state) {
    (void)state;
    check_isa("avx512");
}

static void linear_avx2(void **state) {
    (void)state;
    check_isa("avx2");
}

static void linear_plain(void **state) {
    (void)state;
    check_isa("plain");
}

/* Each case in two forms and types, one of them in short chunks, small ones in four orders of
 * threads: fibres take their time. */
static void linear_cuda(void **state) {
    (void)state;
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    device *dev = case_device(1, case_cuda);
    if (dev == NULL) skip();
    device_close(dev);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t turn = i; turn < i + 2; turn++)
            if (!thinned_out(i) && !thinned_large(multiplications(&cases[i]), LARGE))
                check_case(turn == i ? case_cuda_shortest() : case_cuda, &cases[i], types[turn % 3],
                           (int)(turn % 4), cases[i].rows < 100 ? CASE_THREADS : 1);
}

/* Operands that are slices of columns give what dense ones give, to rounding. */
static void check_slices(const char *isa) {
    device *dev = case_device(2, isa);
    if (dev == NULL) return;
    for (int type = 0; type < 3; type++) {
        base_dtype dtype = type == 0 ? BASE_FP32 : type == 1 ? BASE_BF16 : BASE_FP16;
        linear_case c = {300, 48, 64};
        linear_operands o = make_operands(&c, dtype, false, false);
        device_matrix wide_x = case_matrix(300, 100, dtype, 1, 1), slice_x = wide_x;
        slice_x.data = (char *)wide_x.data + 3 * base_dtype_bytes(dtype), slice_x.columns = 48;
        free(o.x.data);
        o.x = slice_x;
        begin_results(&o);
        run_linear(dev, &o);
        assert_true(forward_distance(&o) <= 1.0);
        assert_true(weight_distance(&o) <= 1.0);
        o.x.data = NULL;
        end_results(&o);
        free_operands(&o);
        free(wide_x.data);
    }
    device_close(dev);
}

static void linear_slices(void **state) {
    (void)state;
    check_slices(NULL);
    check_slices(case_cuda);
}

static device_matrix rows_of(device_matrix m, int64_t first, int64_t rows) {
    m.data = (char *)m.data + first * m.stride * base_dtype_bytes(m.dtype);
    m.rows = rows;
    return m;
}

/* A tile of a sequence at a time, the last one of few rows, gives the bits of all rows at once,
 * where the calls say how many these are. */
static void check_tiles(const char *isa) {
    enum { TILE = 1024 };
    static const linear_case all[] = {{TILE + 100, 64, 576}, {2 * TILE + 1, 40, 130}};
    device *dev = case_device(2, isa);
    if (dev == NULL) return;
    for (int i = 0; i < 2 * 3 * 2; i++) {
        const linear_case *c = &all[i % 2];
        if (isa && i % 4 != 1) continue; /* fibres take their time */
        base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
        linear_operands o = make_operands(c, types[i / 2 % 3], i / 6, false);
        begin_results(&o);
        run_linear(dev, &o);
        linear_operands other = begin_again(&o);
        for (int64_t first = 0; first < c->rows; first += TILE) {
            int64_t rows = c->rows - first < TILE ? c->rows - first : TILE;
            linear_operands part = other;
            part.x = rows_of(o.x, first, rows);
            part.dy = rows_of(o.dy, first, rows);
            part.y = rows_of(other.y, first, rows);
            part.dx = rows_of(other.dx, first, rows);
            part.whole = c->rows;
            part.accumulate_dw = first > 0;
            run_linear(dev, &part);
        }
        expect_same(&other, &o);
        end_results(&o);
        free_operands(&o);
    }
    device_close(dev);
}

static void linear_tiles(void **state) {
    (void)state;
    check_tiles(NULL);
    check_tiles(case_cuda_short);
}

/* Where products widen their operands, few rows have the bits that each has alone, whatever the
 * tiles. Outputs beyond a block of 1,024, and rests of all kinds. */
static void linear_few_rows(void **state) {
    enum { FEW = 7 };
    static const linear_case all[] = {{FEW, 300, 768}, {FEW, 77, 2309}, {FEW, 16, 45}};
    (void)state;
    for (int run = 0; run < 3 * CASE_ISAS * 4; run++) {
        const linear_case *c = &all[run % 3];
        const char *isa = case_isas[run / 3 % CASE_ISAS];
        base_dtype type = run / (3 * CASE_ISAS) % 2 ? BASE_BF16 : BASE_FP16;
        device *one = case_device(1, isa), *dev = case_device(3, isa);
        bool widens = strcmp(isa, "avx512_bf16") != 0 || type == BASE_FP16;
        if (one != NULL && widens) {
            linear_operands o = make_operands(c, type, run / (6 * CASE_ISAS), false);
            device_matrix alone = case_copy(&o.y);
            device_call call = {.kernel = DEVICE_LINEAR, .x = {o.x}, .w = {o.w, o.bias}, .y = o.y};
            call.attributes.linear.transposed = o.transposed;
            case_run(dev, &call);
            for (int64_t r = 0; r < FEW; r++) {
                call.x[0] = rows_of(o.x, r, 1), call.y = rows_of(alone, r, 1);
                case_run(one, &call);
            }
            assert_memory_equal(o.y.data, alone.data, case_bytes(&alone));
            assert_true(forward_distance(&o) <= 1.0);
            free(alone.data);
            free_operands(&o);
        }
        device_close(one);
        device_close(dev);
    }
}

/* Every fp16 number comes through a product as it is, and what lies half way between two of them
 * goes to the even one. `rows` 1 and 8 take different kernels. */
static void linear_every_fp16(void **state) {
    (void)state;
    enum { ALL = 0x10000, MANY = 8 };
    device_matrix w = case_matrix(ALL, 2, BASE_FP16, 1, 1);
    device_matrix x = case_matrix(MANY, 2, BASE_FP16, 2, 1);
    device_matrix y = case_matrix(MANY, ALL, BASE_FP16, 3, 1);
    uint16_t *to = w.data;
    for (int i = 0; i < ALL; i++) to[2 * i] = (uint16_t)i, to[2 * i + 1] = (uint16_t)(i + 1);
    for (int run = 0; run < (CASE_ISAS + 1) * 4; run++) {
        const char *isa = run / 4 < CASE_ISAS ? case_isas[run / 4] : case_cuda;
        device *dev = case_device(2, isa);
        bool middle = run % 2 != 0;
        if (dev == NULL) continue;
        x.rows = y.rows = run / 2 % 2 ? MANY : 1;
        for (int r = 0; r < MANY; r++) {
            case_set(&x, r, 0, middle ? 0.5 : 1);
            case_set(&x, r, 1, middle ? 0.5 : 0);
        }
        device_call call = {.kernel = DEVICE_LINEAR, .x = {x}, .w = {w}, .y = y};
        case_run(dev, &call);
        for (int i = 0; i < ALL; i++) {
            double low = case_get(&w, i, 0), high = case_get(&w, i, 1);
            double want = middle ? (low + high) / 2 : low + 0 * high;
            for (int64_t r = 0; r < y.rows; r++) {
                double got = case_get(&y, r, i);
                double nearest = isfinite(want) ? case_from_fp16(case_to_fp16(want)) : want;
                if (isnan(want) ? isnan(got) : got == nearest) continue;
                fail_msg("%s: %04x became %.9g, expected %.9g", isa, i, got, want);
            }
        }
        device_close(dev);
    }
    free(w.data);
    free(x.data);
    free(y.data);
}

static void linear_refuses_shapes(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    linear_case c = {4, 8, 6};
    linear_operands o = make_operands(&c, BASE_FP32, false, false);
    device_call call = {.kernel = DEVICE_LINEAR, .x = {o.x}, .w = {o.w, o.bias}, .y = o.y};
    call.y.columns = 5;
    sifr_error error = {0};
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "linear: y"));
    call.y = o.y, call.w[1].dtype = BASE_BF16;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "w1"));
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_avx512_bf16), cmocka_unit_test(linear_avx512),
        cmocka_unit_test(linear_avx2),        cmocka_unit_test(linear_plain),
        cmocka_unit_test(linear_cuda),        cmocka_unit_test(linear_slices),
        cmocka_unit_test(linear_tiles),       cmocka_unit_test(linear_few_rows),
        cmocka_unit_test(linear_every_fp16),  cmocka_unit_test(linear_refuses_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
