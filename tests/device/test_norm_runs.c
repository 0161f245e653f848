/* Sums of a norm's weights' gradients over runs of rows: of ranks that have some rows each, folded,
 * they are the bits of one call on all rows, on every instruction set, in fp32, bf16 and fp16.
 * in test_asan */
#include "device/matrix_case.h"

enum { MOST_SPLITS = 4 };

typedef struct norm_case {
    int64_t rows, columns;
    int32_t groups;
    bool layer, own; /* own: of each group */
} norm_case;

static const norm_case cases[] = {{512, 72, 1, false, false},
                                  {512, 65, 1, true, false},
                                  {1024, 300, 1, true, false},
                                  {512, 96, 3, false, false},
                                  {512, 96, 4, true, true}};

typedef struct norm_operands {
    device_matrix x, w, dy, saved, dx, dw, db;
    device_attributes attributes;
} norm_operands;

static device_matrix rows_of(const device_matrix *m, int64_t first, int64_t rows) {
    device_matrix part = *m;
    part.data = (char *)m->data + first * m->stride * base_dtype_bytes(m->dtype);
    part.rows = rows;
    return part;
}

static norm_operands make(const norm_case *c, base_dtype type) {
    int64_t weights = c->own ? c->groups : 1, columns = c->columns / c->groups;
    int64_t statistics = c->groups * (c->layer ? 2 : 1);
    return (norm_operands){.x = case_matrix(c->rows, c->columns, type, 1, 1),
                           .w = case_matrix(weights, columns, type, 2, 1),
                           .dy = case_matrix(c->rows, c->columns, type, 3, 1),
                           .saved = case_matrix(c->rows, statistics, BASE_FP32, 4, 1),
                           .dx = case_matrix(c->rows, c->columns, type, 5, 1),
                           .dw = case_matrix(weights, columns, BASE_FP32, 6, 1),
                           .db = case_matrix(weights, columns, BASE_FP32, 7, 1),
                           .attributes.norm = {.epsilon = 1e-5f, .groups = c->groups}};
}

static void free_all(norm_operands *o) {
    void *const blocks[] = {o->x.data,  o->w.data,  o->dy.data, o->saved.data,
                            o->dx.data, o->dw.data, o->db.data};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

static void backward(device *dev, const norm_case *c, const norm_operands *o) {
    device_call call = {.kernel = c->layer ? DEVICE_LAYER_NORM_BACKWARD : DEVICE_RMS_NORM_BACKWARD,
                        .attributes = o->attributes,
                        .x = {o->x},
                        .w = {o->w},
                        .saved = {o->saved},
                        .dy = o->dy,
                        .dx = {o->dx},
                        .dw = {o->dw},
                        .accumulate = {true},
                        .accumulate_dw = true};
    if (c->layer) call.dw[1] = o->db;
    case_run(dev, &call);
}

/* The same on rows of so many ranks, one after the other. */
static void in_runs(device *dev, const norm_case *c, const norm_operands *o, int32_t ranks) {
    int64_t rows = c->rows / ranks, runs = rows / DEVICE_NORM_ROWS;
    int64_t numbers = o->w.rows * o->w.columns * (c->layer ? 2 : 1);
    device_matrix sums = case_matrix(runs * ranks, numbers, BASE_FP32, 8, 1);
    for (int32_t r = 0; r < ranks; r++) {
        device_call call = {
            .kernel = c->layer ? DEVICE_LAYER_NORM_SUMS : DEVICE_RMS_NORM_SUMS,
            .attributes = o->attributes,
            .x = {rows_of(&o->x, r * rows, rows), rows_of(&o->saved, r * rows, rows)},
            .w = {o->w},
            .y = rows_of(&sums, r * runs, runs),
            .dy = rows_of(&o->dy, r * rows, rows),
            .dx = {rows_of(&o->dx, r * rows, rows)},
            .accumulate = {true}};
        case_run(dev, &call);
    }
    device_call fold = {
        .kernel = DEVICE_NORM_FOLD, .x = {sums}, .dw = {o->dw}, .accumulate_dw = true};
    if (c->layer) fold.dw[1] = o->db;
    case_run(dev, &fold);
    free(sums.data);
}

static void same(const device_matrix *a, const device_matrix *b, const char *what) {
    size_t bytes = (size_t)(a->rows * a->columns * base_dtype_bytes(a->dtype));
    if (memcmp(a->data, b->data, bytes)) fail_msg("%s: other bits", what);
}

static void compare(device *dev, const norm_case *c, base_dtype type, int32_t ranks) {
    norm_operands want = make(c, type), have = make(c, type);
    backward(dev, c, &want);
    in_runs(dev, c, &have, ranks);
    same(&want.dx, &have.dx, "dx");
    same(&want.dw, &have.dw, "dw");
    same(&want.db, &have.db, "db");
    free_all(&want);
    free_all(&have);
}

static void runs_are_rows(void **state) {
    (void)state;
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t s = 0; s < sizeof case_isas / sizeof *case_isas; s++) {
            device *dev = case_device(1 + (int)i % 3, case_isas[s]);
            if (!dev) continue;
            for (int t = 0; t < 3; t++)
                for (int32_t ranks = 1; ranks <= MOST_SPLITS; ranks *= 2)
                    compare(dev, &cases[i], types[t], ranks);
            device_close(dev);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_are_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
