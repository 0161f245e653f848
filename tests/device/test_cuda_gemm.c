/* Products of matrices with the kernels of GPUs, over the shim: against double precision, and the
 * same bits for each size of tiles, each alignment, each order of threads and each cut of rows. */
#include "device/cuda/product/cuda_gemm.h"
#include "device/matrix_case.h"
#include "support/cuda/mirror.h"
#include "support/cuda/op_gpu.h"
#include "support/cuda/shim_run.h"

#include <stdio.h>

typedef struct gemm_case {
    int64_t m, n, k;
} gemm_case;

static const gemm_case cases[] = {{1, 1, 1},    {3, 5, 7},      {16, 8, 16},   {64, 64, 32},
                                  {65, 33, 47}, {130, 70, 100}, {17, 129, 33}, {40, 66, 290}};
static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
enum { CASES = sizeof cases / sizeof *cases, TYPES = 3, FORMS = 3, GAP = 3 };

/* Exactly as large as its elements. A slice begins one element behind a multiple of 16 bytes and
 * has gaps between its rows. */
typedef struct block {
    device_matrix m;
    void *memory;
} block;

static block make_block(int64_t rows, int64_t columns, base_dtype dtype, uint64_t seed,
                        bool sliced) {
    int64_t stride = columns + (sliced ? GAP : 0), size = base_dtype_bytes(dtype);
    int64_t bytes = ((rows - 1) * stride + columns + sliced) * size;
    block b = {.memory = malloc((size_t)bytes)};
    assert_non_null(b.memory);
    memset(b.memory, 0xff, (size_t)bytes);
    b.m = (device_matrix){(char *)b.memory + sliced * size, rows, columns, stride, dtype};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            base_random4 random = base_philox(seed, (uint64_t)(r * columns + c), 0);
            case_set(&b.m, r, c, 2.0 * base_uniform(random.v[0]) - 1.0);
        }
    return b;
}

typedef struct gemm_run {
    block a, b, c, bias, before;
    cuda_gemm gemm;
} gemm_run;

enum { SLICED = 1, LARGE = 2, WIDE_SUMS = 4, ACCUMULATE = 8, BIASED = 16 };

static gemm_run make_run(const gemm_case *s, int form, base_dtype type, int options) {
    bool sliced = options & SLICED, a_by_k = form == CUDA_GEMM_TN, b_by_k = form != CUDA_GEMM_NT;
    gemm_run run = {.a = make_block(a_by_k ? s->k : s->m, a_by_k ? s->m : s->k, type, 1, sliced),
                    .b = make_block(b_by_k ? s->k : s->n, b_by_k ? s->n : s->k, type, 2, sliced),
                    .c = make_block(s->m, s->n, options & WIDE_SUMS ? BASE_FP32 : type, 3, sliced),
                    .bias = make_block(1, s->n, type, 4, false)};
    run.before = make_block(s->m, s->n, run.c.m.dtype, 3, false);
    run.gemm = (cuda_gemm){.form = (cuda_gemm_form)form,
                           .a = run.a.m,
                           .b = run.b.m,
                           .c = run.c.m,
                           .accumulate = options & ACCUMULATE,
                           .whole = options & LARGE ? 1 << 20 : 0};
    if (options & BIASED) run.gemm.bias = run.bias.m;
    return run;
}

static void free_run(gemm_run *run) {
    free(run->a.memory);
    free(run->b.memory);
    free(run->c.memory);
    free(run->bias.memory);
    free(run->before.memory);
}

static void show(device *dev, const cuda_gemm *gemm) {
    const device_matrix *all[] = {&gemm->a, &gemm->b, &gemm->c, &gemm->bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mirror_show_matrix(dev, all[i]);
    if (gemm->parts) mirror_show(dev, gemm->parts, cuda_gemm_parts_bytes(gemm));
    mirror_show(dev, gemm->count, sizeof *gemm->count);
    mirror_show(dev, gemm->c_rows, gemm->c.rows * (int64_t)sizeof *gemm->c_rows);
    mirror_show(dev, gemm->factor_pointer, sizeof *gemm->factor_pointer);
}

static void compute(cuda_gemm *gemm, int order) {
    device *dev = NULL;
    sifr_error error = {0};
    if (op_gpu_open(order, &dev, &error) != SIFR_OK) fail_msg("%s", error.message);
    show(dev, gemm);
    if (cuda_gemm_run(dev, gemm, &error) != SIFR_OK) fail_msg("%s", error.message);
    device_close(dev);
}

/* How far element (r, column) is off, in units of what rounding allows. */
static double distance(const gemm_run *run, int64_t r, int64_t column, int64_t row_of_c) {
    const cuda_gemm *g = &run->gemm;
    int64_t k = g->form == CUDA_GEMM_TN ? g->a.rows : g->a.columns;
    double sum = 0, terms = 0, factor = g->factor != 0 ? g->factor : 1;
    for (int64_t i = 0; i < k; i++) {
        double left = g->form == CUDA_GEMM_TN ? case_get(&g->a, i, r) : case_get(&g->a, r, i);
        double right =
            g->form == CUDA_GEMM_NT ? case_get(&g->b, column, i) : case_get(&g->b, i, column);
        sum += left * right, terms += fabs(left * right);
    }
    sum *= factor, terms *= fabs(factor);
    if (g->bias.dtype != BASE_NONE) sum += case_get(&g->bias, 0, column);
    if (g->accumulate) sum += case_get(&run->before.m, row_of_c, column);
    return case_distance(case_get(&g->c, row_of_c, column), sum, terms + 2, g->c.dtype);
}

static void check_run(const gemm_run *run, int64_t rows, const int32_t *c_rows, const char *what) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < run->c.m.columns; c++) {
            double d = distance(run, r, c, c_rows ? c_rows[r] : r);
            if (!(d <= 1.0))
                fail_msg("%s: element %lld, %lld is %g times too far off", what, (long long)r,
                         (long long)c, d);
        }
}

static void gemm_is_right(void **state) {
    (void)state;
    for (int i = 0; i < CASES * FORMS * TYPES * 4; i++) {
        const gemm_case *s = &cases[i % CASES];
        int form = i / CASES % FORMS, type = i / CASES / FORMS % TYPES;
        int options = i / CASES / FORMS / TYPES, turn = i % CASES + form + type + options;
        if ((options & LARGE) && type == 0) continue;
        options |= turn % 2 ? WIDE_SUMS : ACCUMULATE;
        if (turn % 3 == 0) options |= BIASED | ACCUMULATE;
        gemm_run run = make_run(s, form, types[type], options);
        compute(&run.gemm, turn % 4);
        char what[100];
        snprintf(what, sizeof what, "form %d, %s, %lld x %lld x %lld, options %d", form,
                 base_dtype_name(types[type]), (long long)s->m, (long long)s->n, (long long)s->k,
                 options);
        check_run(&run, s->m, NULL, what);
        free_run(&run);
    }
}

static void same_elements(const device_matrix *a, const device_matrix *b, const char *what) {
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t c = 0; c < a->columns; c++) {
            double left = case_get(a, r, c), right = case_get(b, r, c);
            if (memcmp(&left, &right, sizeof left) != 0)
                fail_msg("%s: %lld, %lld is %.9g and %.9g", what, (long long)r, (long long)c, left,
                         right);
        }
}

/* Tiles, alignment and threads do not change an element. */
static void gemm_is_one_chain(void **state) {
    (void)state;
    const gemm_case s = {70, 72, 136};
    for (int i = 0; i < FORMS * TYPES; i++) {
        int form = i % FORMS;
        base_dtype type = types[i / FORMS];
        gemm_run first = make_run(&s, form, type, WIDE_SUMS | ACCUMULATE);
        compute(&first.gemm, SHIM_UP);
        for (int other = 1; other < 4; other++) {
            gemm_run run = make_run(&s, form, type, WIDE_SUMS | ACCUMULATE | other);
            compute(&run.gemm, other);
            same_elements(&first.c.m, &run.c.m, "tiles, slices or threads");
            free_run(&run);
        }
        free_run(&first);
    }
}

/* A row of the product is the same without the other rows. */
static void gemm_rows_are_alone(void **state) {
    (void)state;
    const gemm_case s = {67, 40, 90};
    for (int type = 0; type < TYPES; type++) {
        gemm_run all = make_run(&s, CUDA_GEMM_NT, types[type], BIASED);
        compute(&all.gemm, SHIM_UP);
        gemm_run alone = make_run(&s, CUDA_GEMM_NT, types[type], BIASED);
        for (int64_t r = 0; r < s.m; r += 13) {
            cuda_gemm one = alone.gemm;
            int64_t size = base_dtype_bytes(types[type]);
            one.a.rows = one.c.rows = 1;
            one.a.data = (char *)one.a.data + r * one.a.stride * size;
            one.c.data = (char *)one.c.data + r * one.c.stride * size;
            compute(&one, SHIM_DOWN);
            for (int64_t c = 0; c < s.n; c++)
                assert_true(case_get(&all.c.m, r, c) == case_get(&alone.c.m, r, c));
        }
        free_run(&all);
        free_run(&alone);
    }
}

/* Chunks of k beside each other, and one after the other, and calls for one chunk each. */
static void gemm_adds_chunks(void **state) {
    (void)state;
    enum { CHUNK = 64 };
    const gemm_case s = {30, 20, 5 * CHUNK + 9};
    for (int i = 0; i < TYPES * 2; i++) {
        base_dtype type = types[i / 2];
        int options = WIDE_SUMS | (i % 2 ? ACCUMULATE : 0);
        gemm_run one = make_run(&s, CUDA_GEMM_TN, type, options);
        gemm_run beside = make_run(&s, CUDA_GEMM_TN, type, options | SLICED);
        gemm_run calls = make_run(&s, CUDA_GEMM_TN, type, options);
        one.gemm.chunk = beside.gemm.chunk = CHUNK;
        compute(&one.gemm, SHIM_UP);
        int64_t bytes = cuda_gemm_parts_bytes(&beside.gemm);
        assert_int_equal(bytes, 6 * s.m * s.n * 4);
        beside.gemm.parts = malloc((size_t)bytes);
        compute(&beside.gemm, SHIM_DOWN);
        same_elements(&one.c.m, &beside.c.m, "chunks beside each other");
        for (int64_t first = 0; first < s.k; first += CHUNK) {
            cuda_gemm call = calls.gemm;
            int64_t size = base_dtype_bytes(type);
            call.a.rows = call.b.rows = s.k - first < CHUNK ? s.k - first : CHUNK;
            call.a.data = (char *)call.a.data + first * call.a.stride * size;
            call.b.data = (char *)call.b.data + first * call.b.stride * size;
            if (first > 0) call.accumulate = true;
            compute(&call, SHIM_UP);
        }
        same_elements(&one.c.m, &calls.c.m, "a call a chunk");
        check_run(&one, s.m, NULL, "chunks");
        free(beside.gemm.parts);
        free_run(&one);
        free_run(&beside);
        free_run(&calls);
    }
}

/* Only rows that are there are read and written, where the index says, times a factor. */
static void gemm_counts_rows(void **state) {
    (void)state;
    enum { ROWS = 70, THERE = 41, FIRST = 1000 };
    const gemm_case s = {ROWS, 34, 50};
    const int32_t count = FIRST + THERE;
    const float factor = 0.5f;
    int32_t c_rows[ROWS];
    for (int i = 0; i < ROWS; i++) c_rows[i] = i < THERE ? (i * 9 + 5) % ROWS : 1 << 30;
    for (int type = 0; type < TYPES; type++) {
        gemm_run run = make_run(&s, CUDA_GEMM_NN, types[type], ACCUMULATE);
        run.gemm.count = &count, run.gemm.first = FIRST, run.gemm.c_rows = c_rows;
        run.gemm.factor_pointer = &factor, run.gemm.factor = 3;
        compute(&run.gemm, type);
        run.gemm.factor = 1.5f;
        check_run(&run, THERE, c_rows, "counted rows");
        bool written[ROWS] = {false};
        for (int i = 0; i < THERE; i++) written[c_rows[i]] = true;
        for (int r = 0; r < ROWS; r++)
            for (int64_t c = 0; c < s.n && !written[r]; c++)
                assert_true(case_get(&run.c.m, r, c) == case_get(&run.before.m, r, c));
        free_run(&run);
    }
}

/* A sum over rows of which some, or all, are not there. */
static void gemm_counts_terms(void **state) {
    (void)state;
    enum { THERE = 41 };
    const gemm_case s = {20, 34, 70}, shorter = {20, 34, THERE};
    const int32_t count = THERE;
    for (int type = 0; type < TYPES; type++) {
        gemm_run run = make_run(&s, CUDA_GEMM_TN, types[type], WIDE_SUMS);
        gemm_run want = make_run(&shorter, CUDA_GEMM_TN, types[type], WIDE_SUMS);
        run.gemm.count = &count;
        compute(&run.gemm, type);
        compute(&want.gemm, SHIM_UP);
        same_elements(&want.c.m, &run.c.m, "counted terms");
        run.gemm.first = THERE + 3; /* none are left: adds nothing, or makes zeros */
        run.gemm.accumulate = true;
        compute(&run.gemm, type);
        same_elements(&want.c.m, &run.c.m, "no terms are added");
        run.gemm.accumulate = false;
        compute(&run.gemm, type);
        for (int64_t r = 0; r < s.m; r++)
            for (int64_t c = 0; c < s.n; c++) assert_true(case_get(&run.c.m, r, c) == 0);
        free_run(&run);
        free_run(&want);
    }
}

/* One argument: the test to run, else all. */
int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_is_right),       cmocka_unit_test(gemm_is_one_chain),
        cmocka_unit_test(gemm_rows_are_alone), cmocka_unit_test(gemm_adds_chunks),
        cmocka_unit_test(gemm_counts_rows),    cmocka_unit_test(gemm_counts_terms),
    };
    if (shim_skipped()) return 77;
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
