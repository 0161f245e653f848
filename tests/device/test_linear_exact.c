/* Linear layers in pieces: the same bits whatever number of tensor ranks has the pieces, forward
 * and backward, on every instruction set, in fp32, bf16 and fp16; the same for rows that are part
 * of more; and near the layer without pieces. in test_asan */
#include "device/matrix_case.h"

enum { MOST = DEVICE_LINEAR_PIECES };

/* What a rank has: 1/t of a layer; all of it at t 1. */
typedef struct exact_case {
    int64_t rows, in, out;
    int32_t runs; /* of outputs, three of them not of one width: as fused q, k and v */
    bool cut_inputs, transposed;
} exact_case;

/* Pieces that pack and that do not, chunks of tokens with a rest, runs. */
static const exact_case cases[] = {{40, 1024, 64, 1, true, false},  {300, 512, 192, 1, true, true},
                                   {1100, 128, 40, 1, true, false}, {70, 96, 512, 1, false, false},
                                   {300, 64, 1536, 3, false, true}, {33, 128, 160, 3, false, false},
                                   {65, 1408, 96, 1, true, false},  {520, 40, 640, 1, false, true}};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct exact_operands {
    device_matrix x, w, bias, dy, dx, dw, db, y; /* of the whole layer; those behind dy are made */
} exact_operands;

static void run_ends(const exact_case *c, int64_t parts, device_linear_attributes *linear) {
    int64_t out = c->out / parts;
    linear->runs = c->cut_inputs ? 1 : c->runs;
    linear->run_end[0] = c->cut_inputs ? c->in / parts : out;
    if (linear->runs == 1) return;
    linear->run_end[0] = out / 2;
    linear->run_end[1] = out * 3 / 4;
    linear->run_end[2] = out;
}

/* Columns or rows of m that the rank has, of each run its part, as a matrix of its own. */
static device_matrix part_of(const device_matrix *m, bool rows, const exact_case *c, bool outputs,
                             int32_t ranks, int32_t rank) {
    device_linear_attributes whole;
    bool cut = outputs != c->cut_inputs;
    if (!cut || ranks == 1) return case_copy(m);
    run_ends(c, 1, &whole);
    int64_t size = rows ? m->rows : m->columns, at = 0, begin = 0;
    device_matrix part = rows ? case_matrix(size / ranks, m->columns, m->dtype, 1, 1)
                              : case_matrix(m->rows, size / ranks, m->dtype, 1, 1);
    for (int32_t r = 0; r < whole.runs; r++) {
        int64_t width = (whole.run_end[r] - begin) / ranks, first = begin + rank * width;
        for (int64_t i = 0; i < width; i++, at++)
            for (int64_t j = 0; j < (rows ? m->columns : m->rows); j++)
                case_set(&part, rows ? at : j, rows ? j : at,
                         case_get(m, rows ? first + i : j, rows ? j : first + i));
        begin = whole.run_end[r];
    }
    return part;
}

/* The other way. */
static void put_part(const device_matrix *part, const device_matrix *m, bool rows,
                     const exact_case *c, bool outputs, int32_t ranks, int32_t rank) {
    device_linear_attributes whole;
    bool cut = outputs != c->cut_inputs;
    run_ends(c, 1, &whole);
    int64_t at = 0, begin = 0, other = rows ? m->columns : m->rows;
    int32_t runs = cut ? whole.runs : 1;
    for (int32_t r = 0; r < runs; r++) {
        int64_t end = cut ? whole.run_end[r] : (rows ? m->rows : m->columns);
        int64_t width = cut ? (end - begin) / ranks : end;
        int64_t first = begin + (cut ? rank * width : 0);
        for (int64_t i = 0; i < width; i++, at++)
            for (int64_t j = 0; j < other; j++)
                case_set(m, rows ? first + i : j, rows ? j : first + i,
                         case_get(part, rows ? at : j, rows ? j : at));
        begin = end;
    }
}

/* All ranks' sums, left in the first one's, in tree order. */
static void add_up(device_matrix *parts, int32_t ranks) {
    for (int32_t step = 1; step < ranks; step *= 2)
        for (int32_t r = 0; r < ranks; r += 2 * step)
            for (int64_t i = 0; i < parts[r].rows * parts[r].columns; i++)
                ((float *)parts[r].data)[i] += ((float *)parts[r + step].data)[i];
}

static void finish(device *dev, const device_matrix *sum, const device_matrix *bias,
                   const device_matrix *y, bool add) {
    device_call call = {
        .kernel = add ? DEVICE_FINISH_INTO : DEVICE_FINISH_SUM, .x = {*sum}, .y = *y};
    if (bias) call.w[1] = *bias;
    case_run(dev, &call);
}

typedef struct rank_results {
    device_matrix y[MOST], dx[MOST];
} rank_results;

/* What one of `ranks` makes of 8 / ranks pieces; results that are parts of sums are left. */
static void run_rank(device *dev, const exact_case *c, const exact_operands *o, int32_t pieces,
                     int32_t ranks, int32_t rank, rank_results *left) {
    bool parts = ranks > 1, t = c->transposed;
    device_matrix x = part_of(&o->x, false, c, false, ranks, rank);
    device_matrix dy = part_of(&o->dy, false, c, true, ranks, rank);
    device_matrix w = part_of(&o->w, !c->cut_inputs != t, c, !c->cut_inputs, ranks, rank);
    device_matrix bias = part_of(&o->bias, false, c, true, ranks, rank);
    device_matrix y = case_matrix(x.rows, dy.columns, x.dtype, 1, 1);
    device_matrix dx = part_of(&o->dx, false, c, false, ranks, rank);
    device_matrix dw = part_of(&o->dw, !c->cut_inputs != t, c, !c->cut_inputs, ranks, rank);
    device_matrix db = part_of(&o->db, false, c, true, ranks, rank);
    if (parts && c->cut_inputs) free(y.data), y = case_matrix(x.rows, dy.columns, BASE_FP32, 1, 1);
    if (parts && !c->cut_inputs)
        free(dx.data), dx = case_matrix(x.rows, x.columns, BASE_FP32, 1, 1);
    device_linear_attributes linear = {
        .transposed = t, .cut_inputs = c->cut_inputs, .pieces = pieces / ranks};
    run_ends(c, ranks, &linear);
    device_call forward = {.kernel = DEVICE_LINEAR, .x = {x}, .w = {w}, .y = y};
    forward.attributes.linear = linear;
    if (!parts || !c->cut_inputs) forward.w[1] = bias;
    case_run(dev, &forward);
    device_call backward = {.kernel = DEVICE_LINEAR_BACKWARD,
                            .x = {x},
                            .w = {w},
                            .dy = dy,
                            .dx = {dx},
                            .dw = {dw, db},
                            .accumulate = {!parts || c->cut_inputs},
                            .accumulate_dw = true};
    backward.attributes.linear = linear;
    case_run(dev, &backward);
    if (parts && c->cut_inputs)
        left->y[rank] = y;
    else
        put_part(&y, &o->y, false, c, true, ranks, rank), free(y.data);
    if (parts && !c->cut_inputs)
        left->dx[rank] = dx;
    else
        put_part(&dx, &o->dx, false, c, false, ranks, rank), free(dx.data);
    put_part(&dw, &o->dw, !c->cut_inputs != t, c, !c->cut_inputs, ranks, rank);
    put_part(&db, &o->db, false, c, true, ranks, rank);
    void *done[] = {x.data, dy.data, w.data, bias.data, dw.data, db.data};
    for (size_t i = 0; i < sizeof done / sizeof *done; i++) free(done[i]);
}

static exact_operands make_operands(const exact_case *c, base_dtype type) {
    bool t = c->transposed;
    int64_t rows = t ? c->in : c->out, columns = t ? c->out : c->in;
    return (exact_operands){.x = case_matrix(c->rows, c->in, type, 1, 1),
                            .w = case_matrix(rows, columns, type, 2, 1),
                            .bias = case_matrix(1, c->out, type, 3, 1),
                            .dy = case_matrix(c->rows, c->out, type, 5, 1),
                            .dx = case_matrix(c->rows, c->in, type, 6, 1),
                            .dw = case_matrix(rows, columns, BASE_FP32, 7, 1),
                            .db = case_matrix(1, c->out, BASE_FP32, 8, 1),
                            .y = case_matrix(c->rows, c->out, type, 9, 1)};
}

static void free_operands(exact_operands *o) {
    void *data[] = {o->x.data,  o->w.data,  o->bias.data, o->dy.data,
                    o->dx.data, o->dw.data, o->db.data,   o->y.data};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) free(data[i]);
}

/* The layer over so many ranks. */
static exact_operands run_ranks(device *dev, const exact_case *c, base_dtype type, int32_t pieces,
                                int32_t ranks) {
    exact_operands o = make_operands(c, type);
    rank_results left = {0};
    /* A rank's own gradients are added to those that are there, once: put_part writes them back. */
    for (int32_t r = 0; r < ranks; r++) {
        device_matrix db = case_copy(&o.db);
        run_rank(dev, c, &o, pieces, ranks, r, &left);
        if (c->cut_inputs && r + 1 < ranks) memcpy(o.db.data, db.data, case_bytes(&db));
        free(db.data);
    }
    if (ranks == 1) return o;
    device_matrix *sums = c->cut_inputs ? left.y : left.dx;
    add_up(sums, ranks);
    finish(dev, &sums[0], c->cut_inputs ? &o.bias : NULL, c->cut_inputs ? &o.y : &o.dx,
           !c->cut_inputs);
    for (int32_t r = 0; r < ranks; r++) free(sums[r].data);
    return o;
}

static void expect_same(const device_matrix *a, const device_matrix *b, const char *what,
                        int32_t ranks, const char *isa) {
    const char *x = a->data, *y = b->data;
    for (size_t i = 0; i < case_bytes(a); i++)
        if (x[i] != y[i]) fail_msg("%s: %s at %d ranks has other bits", isa, what, (int)ranks);
}

/* Within the rounding of a sum of `terms` products of numbers up to 1. */
static void expect_near(const device_matrix *a, const device_matrix *b, int64_t terms,
                        const char *what, const char *isa) {
    double unit = a->dtype == BASE_FP32 ? 1e-6 : a->dtype == BASE_FP16 ? 1e-3 : 8e-3;
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t c = 0; c < a->columns; c++) {
            double x = case_get(a, r, c), y = case_get(b, r, c);
            if (fabs(x - y) > unit * (fabs(y) + 1) + 3e-7 * (double)terms)
                fail_msg("%s: %s of %lld terms in %s is %.9g, expected %.9g", isa, what,
                         (long long)terms, base_dtype_name(a->dtype), x, y);
        }
}

static exact_operands run_plain(device *dev, const exact_case *c, base_dtype type) {
    exact_operands o = make_operands(c, type);
    device_call forward = {.kernel = DEVICE_LINEAR, .x = {o.x}, .w = {o.w, o.bias}, .y = o.y};
    forward.attributes.linear.transposed = c->transposed;
    case_run(dev, &forward);
    device_call backward = {.kernel = DEVICE_LINEAR_BACKWARD,
                            .x = {o.x},
                            .w = {o.w},
                            .dy = o.dy,
                            .dx = {o.dx},
                            .dw = {o.dw, o.db},
                            .accumulate = {true},
                            .accumulate_dw = true};
    backward.attributes.linear.transposed = c->transposed;
    case_run(dev, &backward);
    return o;
}

static void check_case(device *dev, const exact_case *c, base_dtype type, int32_t pieces,
                       const char *isa) {
    exact_operands one = run_ranks(dev, c, type, pieces, 1), plain = run_plain(dev, c, type);
    expect_near(&one.y, &plain.y, c->in, "y", isa);
    expect_near(&one.dx, &plain.dx, c->out, "dx", isa);
    expect_near(&one.dw, &plain.dw, c->rows, "dw", isa);
    expect_near(&one.db, &plain.db, c->rows, "db", isa);
    for (int32_t ranks = 2; ranks <= pieces; ranks *= 2) {
        exact_operands all = run_ranks(dev, c, type, pieces, ranks);
        expect_same(&one.y, &all.y, "y", ranks, isa);
        expect_same(&one.dx, &all.dx, "dx", ranks, isa);
        expect_same(&one.dw, &all.dw, "dw", ranks, isa);
        expect_same(&one.db, &all.db, "db", ranks, isa);
        free_operands(&all);
    }
    free_operands(&one);
    free_operands(&plain);
}

static void same_bits(void **state) {
    (void)state;
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (int s = 0; s < CASE_ISAS; s++) {
        device *dev = case_device(2, case_isas[s]);
        if (!dev) continue;
        for (size_t i = 0; i < CASES; i++)
            for (int t = 0; t < 3; t++) check_case(dev, &cases[i], types[t], 8, case_isas[s]);
        check_case(dev, &cases[0], BASE_FP32, 4, case_isas[s]);
        check_case(dev, &cases[3], BASE_BF16, 2, case_isas[s]);
        device_close(dev);
    }
}

/* Chunks of tokens, as tiles have them, have the bits of the whole; and so has any number of
 * threads. */
static void part_of_rows(void **state) {
    (void)state;
    exact_case c = {2148, 256, 64, 1, true, false};
    for (int s = 0; s < CASE_ISAS; s++) {
        device *dev = case_device(3, case_isas[s]), *one = case_device(1, case_isas[s]);
        for (int t = 0; t < 2 && dev; t++) {
            exact_operands o = make_operands(&c, t ? BASE_BF16 : BASE_FP32);
            device_matrix whole = case_copy(&o.y);
            device_call call = {.kernel = DEVICE_LINEAR, .x = {o.x}, .w = {o.w}, .y = whole};
            call.attributes.linear = (device_linear_attributes){
                .cut_inputs = true, .pieces = 8, .runs = 1, .run_end = {c.in}};
            case_run(one, &call);
            call.attributes.linear.whole = c.rows;
            for (int64_t first = 0; first < c.rows; first += 1024) {
                int64_t rows = c.rows - first < 1024 ? c.rows - first : 1024;
                int64_t bytes = base_dtype_bytes(o.x.dtype);
                call.x[0].data = (char *)o.x.data + first * c.in * bytes;
                call.y.data = (char *)o.y.data + first * c.out * bytes;
                call.x[0].rows = call.y.rows = rows;
                case_run(dev, &call);
            }
            expect_same(&whole, &o.y, "a chunk", 1, case_isas[s]);
            free(whole.data);
            free_operands(&o);
        }
        device_close(dev);
        device_close(one);
    }
}

static void refuses_pieces(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    exact_operands o = make_operands(&cases[0], BASE_FP32);
    device_call call = {.kernel = DEVICE_LINEAR, .x = {o.x}, .w = {o.w}, .y = o.y};
    sifr_error error = {0};
    static const device_linear_attributes wrong[] = {
        {.cut_inputs = true, .pieces = 3, .runs = 1, .run_end = {1024}},
        {.cut_inputs = true, .pieces = 8, .runs = 1, .run_end = {1000}},
        {.cut_inputs = true, .pieces = 8, .runs = 4, .run_end = {1024}},
        {.cut_inputs = false, .pieces = 8, .runs = 2, .run_end = {4, 64}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        call.attributes.linear = wrong[i];
        assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, "pieces in"));
    }
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(part_of_rows),
                                       cmocka_unit_test(refuses_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
