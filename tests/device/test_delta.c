/* The gated delta rule: against a recurrence in double precision, whose gradients are compared with
 * central differences; the same bits for any number of threads; a document packed behind others has
 * the bits that it has alone, forward and backward; and generation token by token, in pieces and of
 * several sequences has the bits of one piece, and the recurrence's values.
 * in test_asan */
#include "device/matrix_case.h"
#include "support/delta_reference.h"

/* --- cases --- */

typedef struct delta_case {
    int64_t sequences, length, key_heads, value_heads, key_dim, value_dim;
    int64_t document; /* rows of the first one, then always 3 more; 0: not packed */
    double low, high; /* of time: e^g is between these two of softplus, times e^rate */
    double share;     /* -share to share */
} delta_case;

/* Of softplus(time + bias), times e^rate, is -g. */
static const delta_case cases[] = {
    {1, 1, 1, 1, 3, 5, 0, -2, 2, 2},        {2, 63, 1, 2, 16, 16, 0, -4, 1, 2},
    {1, 64, 2, 2, 24, 17, 0, -4, 1, 2},     {2, 65, 1, 3, 7, 33, 0, -4, 1, 2},
    {1, 200, 1, 1, 128, 128, 0, -4, 0, 3},  {1, 200, 1, 2, 32, 48, 0, 0, 40, 3},
    {1, 150, 1, 2, 40, 24, 0, -9, -6, 12},  {1, 300, 2, 4, 20, 36, 1, -4, 30, 4},
    {2, 260, 1, 1, 64, 64, 62, -5, -1, 3},  {1, 2150, 1, 1, 8, 6, 0, -6, -3, 1},
    {1, 4500, 1, 2, 4, 5, 2100, -6, -3, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct delta_run {
    const delta_case *c;
    delta_problem p;
    base_dtype type;
    device_call forward, backward;
    device_matrix wide; /* q, k and v are columns of it */
    delta_values values, wanted;
    double *y, *dy;
} delta_run;

static void fill(const device_matrix *m, uint64_t seed, double low, double high) {
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t c = 0; c < m->columns; c++) {
            double part = base_uniform(base_philox(seed, (uint64_t)(r * m->columns + c), 0).v[0]);
            case_set(m, r, c, low + (high - low) * part);
        }
}

static device_matrix slice_of(const device_matrix *wide, int64_t first, int64_t columns) {
    device_matrix m = *wide;
    m.data = (char *)wide->data + first * base_dtype_bytes(wide->dtype);
    m.columns = columns;
    return m;
}

static void make_inputs(delta_run *run) {
    const delta_case *c = run->c;
    int64_t rows = c->sequences * c->length, at = 0;
    device_call *call = &run->forward;
    int64_t all = 2 * delta_columns(&run->p, 0) + delta_columns(&run->p, 2);
    run->wide = case_matrix(rows, all, run->type, 1, 2);
    for (int i = 0; i < 3; at += delta_columns(&run->p, i++))
        call->x[i] = slice_of(&run->wide, at, delta_columns(&run->p, i));
    for (int i = 3; i < 5; i++) call->x[i] = case_matrix(rows, c->value_heads, run->type, 2, 1);
    fill(&call->x[3], 3, c->low, c->high);
    fill(&call->x[4], 4, -c->share, c->share);
    for (int i = 0; i < 2; i++) {
        call->w[i] = case_matrix(1, c->value_heads, run->type, 5, 1);
        fill(&call->w[i], (uint64_t)(5 + i), i ? -1 : -2, i ? 1 : 0.5);
    }
    call->y = case_matrix(rows, delta_columns(&run->p, 2), run->type, 7, 0);
    if (!c->document) return;
    call->x[5] = case_matrix(rows, 1, BASE_INT32, 8, 0);
    int64_t end = c->document, size = c->document;
    for (int64_t r = 0, of = 1; r < rows; r++) {
        if (r == end) of++, size += 3, end += size;
        case_set(&call->x[5], r, 0, (double)of);
    }
}

static void make_gradients(delta_run *run) {
    const delta_case *c = run->c;
    int64_t rows = c->sequences * c->length;
    device_call *call = &run->backward;
    *call = run->forward;
    call->kernel = DEVICE_DELTA_BACKWARD;
    call->y = (device_matrix){0};
    call->dy = case_matrix(rows, delta_columns(&run->p, 2), run->type, 9, 1);
    for (int i = 0; i < DELTA_X; i++)
        call->dx[i] = case_matrix(rows, delta_columns(&run->p, i), run->type, 10, 0);
    for (int i = 0; i < DELTA_W; i++)
        call->dw[i] = case_matrix(1, c->value_heads, BASE_FP32, 11, 0);
}

static void make_values(delta_run *run) {
    int64_t rows = run->forward.y.rows;
    for (int i = 0; i < DELTA_X; i++) {
        run->values.x[i] = case_doubles(&run->forward.x[i]);
        run->wanted.x[i] = calloc((size_t)(rows * delta_columns(&run->p, i)), sizeof(double));
    }
    for (int i = 0; i < DELTA_W; i++) {
        run->values.w[i] = case_doubles(&run->forward.w[i]);
        run->wanted.w[i] = calloc((size_t)run->c->value_heads, sizeof(double));
    }
    run->dy = case_doubles(&run->backward.dy);
    run->y = calloc((size_t)(rows * run->forward.y.columns), sizeof(double));
    delta_reference(&run->p, &run->values, run->y);
    delta_reference_gradients(&run->p, &run->values, run->dy, &run->wanted);
}

static void make_run(delta_run *run, const delta_case *c, base_dtype type) {
    *run = (delta_run){.c = c, .type = type};
    run->p = (delta_problem){c->sequences, c->length,    c->key_heads, c->value_heads,
                             c->key_dim,   c->value_dim, NULL};
    run->forward.kernel = DEVICE_DELTA;
    run->forward.attributes.delta = (device_delta_attributes){
        (int32_t)c->key_heads, (int32_t)c->value_heads, c->sequences, c->length};
    make_inputs(run);
    run->p.segments = run->forward.x[5].data;
    make_gradients(run);
    make_values(run);
}

static void free_run(delta_run *run) {
    free(run->wide.data), free(run->y), free(run->dy);
    free(run->forward.y.data), free(run->backward.dy.data), free(run->forward.x[5].data);
    for (int i = 3; i < DELTA_X; i++) free(run->forward.x[i].data);
    for (int i = 0; i < DELTA_X; i++)
        free(run->values.x[i]), free(run->wanted.x[i]), free(run->backward.dx[i].data);
    for (int i = 0; i < DELTA_W; i++) {
        free(run->values.w[i]), free(run->wanted.w[i]);
        free(run->forward.w[i].data), free(run->backward.dw[i].data);
    }
}

/* The largest difference in units of `most` or, of 0, of the largest value that is wanted; beside
 * what 16 bits round. */
static double difference(const device_matrix *got, const double *want, double most) {
    double worst = 0;
    bool given = most > 0;
    double rounding = got->dtype == BASE_BF16   ? case_power(-8)
                      : got->dtype == BASE_FP16 ? case_power(-11)
                                                : 0;
    double tiny = got->dtype == BASE_FP16 ? case_power(-25) : 0;
    for (int64_t i = 0; i < got->rows * got->columns; i++) {
        double value = case_get(got, i / got->columns, i % got->columns);
        double off = fabs(value - want[i]) - rounding * fabs(want[i]) - tiny;
        if (!(off <= worst)) worst = off; /* NaN too */
        if (!given) most = fmax(most, fabs(want[i]));
    }
    return most > 0 ? worst / most : worst;
}

/* A head's gradient in bias is the sum of those in time, and in rate that of the same times another
 * factor: sizes of these terms together, for each head. */
static double terms_of(const delta_run *run, int w) {
    double most = 0;
    int64_t heads = run->c->value_heads;
    for (int64_t h = 0; h < heads; h++) {
        double sum = 0;
        for (int64_t r = 0; r < run->forward.y.rows; r++) {
            double x = run->values.x[3][r * heads + h] + run->values.w[1][h];
            double factor = w ? 1 : log1p(exp(x)) * (1 + exp(-x));
            sum += fabs(run->wanted.x[3][r * heads + h]) * factor;
        }
        most = fmax(most, sum);
    }
    return most;
}

/* Measured: at most 7e-7 and 1.1e-6. */
static const double most_forward = 2e-6, most_gradient = 2e-6;

static void check_run(const delta_run *run, const char *isa) {
    static const char *const names[] = {"dq", "dk", "dv", "dtime", "dshare", "drate", "dbias"};
    int at = (int)(run->c - cases);
    double off = difference(&run->forward.y, run->y, 0);
    if (!(off <= most_forward))
        fail_msg("case %d, %s, %s: y is off by %.3g", at, base_dtype_name(run->type), isa, off);
    for (int i = 0; i < DELTA_X + DELTA_W; i++) {
        bool input = i < DELTA_X;
        off = difference(input ? &run->backward.dx[i] : &run->backward.dw[i - DELTA_X],
                         input ? run->wanted.x[i] : run->wanted.w[i - DELTA_X],
                         input ? 0 : terms_of(run, i - DELTA_X));
        if (!(off <= most_gradient))
            fail_msg("case %d, %s, %s: %s is off by %.3g", at, base_dtype_name(run->type), isa,
                     names[i], off);
    }
}

/* All results in one run of bytes. */
static uint8_t *results_of(const delta_run *run, size_t *size) {
    const device_matrix *all[1 + DELTA_X + DELTA_W] = {&run->forward.y};
    for (int i = 0; i < DELTA_X; i++) all[1 + i] = &run->backward.dx[i];
    for (int i = 0; i < DELTA_W; i++) all[1 + DELTA_X + i] = &run->backward.dw[i];
    *size = 0;
    for (int i = 0; i < 8; i++) *size += case_bytes(all[i]);
    uint8_t *out = malloc(*size), *to = out;
    assert_non_null(out);
    for (int i = 0; i < 8; i++) {
        memcpy(to, all[i]->data, case_bytes(all[i]));
        to += case_bytes(all[i]);
    }
    return out;
}

static void run_threads(delta_run *run, const char *isa) {
    uint8_t *first = NULL;
    size_t size;
    for (int t = 0; t < CASE_THREADS; t++) {
        device *dev = case_device(case_threads[t], isa);
        if (!dev) return;
        case_run(dev, &run->forward);
        case_run(dev, &run->backward);
        device_close(dev);
        uint8_t *now = results_of(run, &size);
        if (first && memcmp(first, now, size) != 0)
            fail_msg("case %d, %s: other bits with %d threads", (int)(run->c - cases), isa,
                     case_threads[t]);
        free(t == 0 ? NULL : now);
        if (t == 0) first = now;
    }
    free(first);
    check_run(run, isa);
}

static void against_reference(void **state) {
    (void)state;
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (int i = 0; i < CASES; i++) {
        for (int t = 0; t < (i < 8 ? 3 : 1); t++) {
            delta_run run;
            make_run(&run, &cases[i], types[t]);
            for (int isa = 0; isa < CASE_ISAS; isa++) run_threads(&run, case_isas[isa]);
            free_run(&run);
        }
    }
}

/* --- the reference itself --- */

static double loss(const delta_run *run, double *y) {
    double sum = 0;
    delta_reference(&run->p, &run->values, y);
    for (int64_t i = 0; i < run->forward.y.rows * run->forward.y.columns; i++)
        sum += y[i] * run->dy[i];
    return sum;
}

static void check_slopes(const delta_run *run, double *values, const double *gradient,
                         int64_t count, const char *name, double *y) {
    enum { SAMPLES = 12 };
    double most = 1e-3;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(gradient[i]));
    for (int64_t s = 0; s < SAMPLES && s < count; s++) {
        int64_t at = count > SAMPLES ? s * (count - 1) / (SAMPLES - 1) : s;
        double kept = values[at], step = 1e-5, sums[2];
        for (int side = 0; side < 2; side++) {
            values[at] = kept + (side ? step : -step);
            sums[side] = loss(run, y);
        }
        values[at] = kept;
        double slope = (sums[1] - sums[0]) / (2 * step);
        if (!(fabs(slope - gradient[at]) <= 2e-7 * most))
            fail_msg("%s[%d]: slope %.9g, gradient %.9g", name, (int)at, slope, gradient[at]);
    }
}

static void differences(void **state) {
    (void)state;
    static const int some[] = {0, 3, 6, 7};
    static const char *const names[] = {"q", "k", "v", "time", "share"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        delta_run run;
        make_run(&run, &cases[some[i]], BASE_FP32);
        int64_t rows = run.forward.y.rows;
        double *y = calloc((size_t)(rows * run.forward.y.columns), sizeof *y);
        for (int x = 0; x < DELTA_X; x++)
            check_slopes(&run, run.values.x[x], run.wanted.x[x], rows * delta_columns(&run.p, x),
                         names[x], y);
        for (int w = 0; w < DELTA_W; w++)
            check_slopes(&run, run.values.w[w], run.wanted.w[w], run.c->value_heads,
                         w ? "bias" : "rate", y);
        free(y);
        free_run(&run);
    }
}

/* --- documents --- */

static device_matrix rows_of(const device_matrix *m, int64_t first, int64_t rows) {
    device_matrix part = *m;
    part.data = (char *)m->data + first * m->stride * base_dtype_bytes(m->dtype);
    part.rows = rows;
    return part;
}

static bool same_rows(const device_matrix *a, const device_matrix *b) {
    return !memcmp(a->data, b->data, (size_t)(a->rows * a->columns * base_dtype_bytes(a->dtype)));
}

/* Rows first … end - 1 as a sequence of their own. */
static void check_alone(device *dev, const delta_run *run, int64_t first, int64_t end) {
    int64_t rows = end - first;
    device_call forward = run->forward, backward = run->backward;
    device_matrix y = case_copy(&run->forward.y), dx[DELTA_X];
    forward.attributes.delta.sequences = backward.attributes.delta.sequences = 1;
    forward.attributes.delta.length = backward.attributes.delta.length = rows;
    for (int i = 0; i < DELTA_X; i++) {
        forward.x[i] = backward.x[i] = rows_of(&run->forward.x[i], first, rows);
        dx[i] = case_copy(&run->backward.dx[i]);
        backward.dx[i] = rows_of(&dx[i], 0, rows);
    }
    forward.x[5] = backward.x[5] = (device_matrix){0};
    forward.y = rows_of(&y, 0, rows);
    backward.dy = rows_of(&run->backward.dy, first, rows);
    for (int i = 0; i < DELTA_W; i++) backward.dw[i] = (device_matrix){0};
    case_run(dev, &forward);
    case_run(dev, &backward);
    device_matrix wanted = rows_of(&run->forward.y, first, rows);
    if (!same_rows(&forward.y, &wanted))
        fail_msg("rows %d to %d alone have other bits", (int)first, (int)end);
    for (int i = 0; i < DELTA_X; i++) {
        wanted = rows_of(&run->backward.dx[i], first, rows);
        if (!same_rows(&backward.dx[i], &wanted))
            fail_msg("rows %d to %d alone have other bits in dx[%d]", (int)first, (int)end, i);
        free(dx[i].data);
    }
    free(y.data);
}

static void packed(void **state) {
    (void)state;
    static const int some[] = {7, 8, 10};
    for (int isa = 0; isa < CASE_ISAS; isa++) {
        device *dev = case_device(2, case_isas[isa]);
        if (!dev) continue;
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            delta_run run;
            make_run(&run, &cases[some[i]], i == 1 ? BASE_BF16 : BASE_FP32);
            case_run(dev, &run.forward);
            case_run(dev, &run.backward);
            int64_t first = 0, size = run.c->document, rows = run.forward.y.rows, most = 12;
            for (; first < rows && most; first += size, size += 3, most--) {
                int64_t next = (first / run.c->length + 1) * run.c->length; /* of the sequence */
                int64_t end = first + size < next ? first + size : next;
                check_alone(dev, &run, first, end);
                if (end < first + size && first + size < rows)
                    check_alone(dev, &run, end, first + size);
            }
            free_run(&run);
        }
        device_close(dev);
    }
}

/* --- generation --- */

static device_call cached_call(const delta_run *run, int64_t sequences) {
    device_call call = run->forward;
    call.kernel = DEVICE_DELTA_CACHED;
    call.attributes.delta.sequences = sequences;
    call.saved[0] = case_matrix(sequences * run->c->value_heads * run->c->key_dim,
                                run->c->value_dim, BASE_FP32, 12, 1);
    return call;
}

static device_matrix positions_of(int64_t rows) {
    device_matrix positions = case_matrix(rows, 1, BASE_INT32, 13, 0);
    for (int64_t r = 0; r < rows; r++) case_set(&positions, r, 0, (double)r);
    return positions;
}

/* The whole in one call, then in pieces. */
static void check_pieces(device *dev, const delta_run *run, const char *isa) {
    static const int64_t pieces[] = {1, 1, 2, 64, 5, 3, 40, 1, 1000};
    int64_t rows = run->c->length;
    device_call call = cached_call(run, 1);
    device_matrix positions = positions_of(rows), y = case_copy(&run->forward.y);
    call.x[5] = positions, call.y = y;
    case_run(dev, &call);
    double off = difference(&y, run->y, 0);
    if (!(off <= 3e-7))
        fail_msg("case %d, %s: row by row off by %.3g", (int)(run->c - cases), isa, off);
    device_matrix got = case_copy(&y);
    memset(got.data, 0, case_bytes(&got));
    for (int64_t first = 0, i = 0; first < rows; first += pieces[i++]) {
        int64_t count = pieces[i] < rows - first ? pieces[i] : rows - first;
        for (int x = 0; x < DELTA_X; x++) call.x[x] = rows_of(&run->forward.x[x], first, count);
        call.x[5] = rows_of(&positions, first, count);
        call.y = rows_of(&got, first, count);
        case_run(dev, &call);
    }
    if (!same_rows(&got, &y)) fail_msg("%s: pieces have other bits", isa);
    free(call.saved[0].data), free(positions.data), free(y.data), free(got.data);
}

/* Token t of sequence s is row t of the run's, once s tokens have gone by. */
static void check_beside(device *dev, const delta_run *run) {
    enum { SEQUENCES = 3, TOKENS = 9 };
    device_call alone = cached_call(run, 1), call = cached_call(run, SEQUENCES);
    device_matrix positions = positions_of(TOKENS), y = case_copy(&run->forward.y), x[DELTA_X];
    device_matrix got = case_matrix(SEQUENCES, y.columns, run->type, 14, 0);
    for (int i = 0; i < DELTA_X; i++) {
        alone.x[i] = rows_of(&run->forward.x[i], 0, TOKENS);
        x[i] = case_matrix(SEQUENCES, run->forward.x[i].columns, run->type, 15, 0);
        call.x[i] = x[i];
    }
    alone.x[5] = positions, alone.y = rows_of(&y, 0, TOKENS);
    case_run(dev, &alone);
    call.x[5] = rows_of(&positions, 0, SEQUENCES), call.y = got;
    device_matrix at = case_matrix(SEQUENCES, 1, BASE_INT32, 16, 0);
    call.x[5] = at;
    for (int64_t t = 0; t < TOKENS; t++) {
        for (int64_t s = 0; s < SEQUENCES; s++) {
            int64_t row = t >= s ? t - s : 0;
            case_set(&at, s, 0, (double)row);
            for (int i = 0; i < DELTA_X; i++)
                for (int64_t c = 0; c < x[i].columns; c++)
                    case_set(&x[i], s, c, case_get(&run->forward.x[i], row, c));
        }
        case_run(dev, &call);
        for (int64_t s = 0; s <= t && s < SEQUENCES; s++) {
            device_matrix mine = rows_of(&got, s, 1), wanted = rows_of(&y, t - s, 1);
            if (!same_rows(&mine, &wanted)) fail_msg("sequence %d has other bits", (int)s);
        }
    }
    free(alone.saved[0].data), free(call.saved[0].data), free(positions.data), free(at.data);
    for (int i = 0; i < DELTA_X; i++) free(x[i].data);
    free(y.data), free(got.data);
}

static void generation(void **state) {
    (void)state;
    static const int some[] = {0, 2, 4, 5, 6};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        delta_run run;
        make_run(&run, &cases[some[i]], BASE_FP32);
        for (int isa = 0; isa < CASE_ISAS; isa++) {
            device *dev = case_device(2, case_isas[isa]);
            if (!dev) continue;
            check_pieces(dev, &run, case_isas[isa]);
            if (run.c->length > 9) check_beside(dev, &run);
            device_close(dev);
        }
        free_run(&run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences),
                                       cmocka_unit_test(against_reference),
                                       cmocka_unit_test(packed), cmocka_unit_test(generation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
