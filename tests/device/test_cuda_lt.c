/* Products by cuBLASLt, which a test plays on the fake driver: every layout beside double
 * precision, sums over chunks, parts of a matrix, and what happens where it is missing, has nothing
 * or fails. */
#include <stdio.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/product/cuda_products.h"
#include "device/matrix_case.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/fake_lt.h"

enum { IN = 24, OUT = 40, CHUNK = 1024, SLICE = 8, MOST_PLACED = 16 };

static cuda_driver driver;
static const fake_lt_trouble none;

static int start(void **state) {
    fake_driver_options options = {0};
    sifr_error error;
    (void)state;
    options.kernels = fake_shim_kernels(SHIM_UP, &options.kernel_count);
    fake_driver_open(&options, &driver);
    return cuda_driver_start(&driver, 0, &error);
}

static int stop(void **state) {
    fake_driver_counts counts = fake_driver_count();
    (void)state;
    fake_driver_close();
    return counts.blocks || counts.streams || counts.contexts || fake_lt_count().handles ||
           fake_lt_count().objects;
}

/* A GPU that is lost gives nothing back. */
static int stop_lost(void **state) {
    (void)state;
    fake_driver_close();
    return fake_lt_count().handles || fake_lt_count().objects;
}

static sifr_status open_with(const fake_lt_trouble *trouble, bool needed, bool check, device **dev,
                             sifr_error *error) {
    static const cuda_image image = {.name = "fake", .data = "fake"};
    cuda_lt lt;
    fake_lt_open(trouble, &lt);
    cuda_options options = {.driver = &driver,
                            .token_chunk = CHUNK,
                            .threads = 1,
                            .images = &image,
                            .image_count = 1,
                            .check = check,
                            .lt = &lt,
                            .lt_needed = needed};
    return cuda_device_open(&options, dev, error);
}

static device *open_lt(const fake_lt_trouble *trouble) {
    device *dev;
    sifr_error error;
    if (open_with(trouble, false, false, &dev, &error) != SIFR_OK) fail_msg("%s", error.message);
    return dev;
}

/* A call whose operands lie in host memory, and how it is cut. */
typedef struct linear_case {
    base_dtype type;
    bool transposed, biased, sliced, accumulate;
    int64_t rows;
} linear_case;

typedef struct linear_run {
    device_call call;
    device_matrix y, dx, dw, db; /* before the call */
} linear_run;

/* With `sliced`, columns of a wider matrix from the SLICEth on. */
static device_matrix make(int64_t rows, int64_t columns, base_dtype type, uint64_t seed,
                          bool sliced) {
    int64_t wide = columns + (sliced ? 2 * SLICE : 0);
    device_matrix m = case_matrix(rows, wide, type, seed, 1);
    m.columns = columns;
    if (sliced) m.data = (char *)m.data + SLICE * base_dtype_bytes(type);
    return m;
}

static void free_matrix(device_matrix *m) {
    bool sliced = m->stride > m->columns;
    if (m->data) free((char *)m->data - (sliced ? SLICE * base_dtype_bytes(m->dtype) : 0));
}

static linear_run forward_of(const linear_case *c) {
    linear_run run = {.call = {.kernel = DEVICE_LINEAR}};
    run.call.attributes.linear.transposed = c->transposed;
    run.call.x[0] = make(c->rows, IN, c->type, 1, c->sliced);
    run.call.w[0] = make(c->transposed ? IN : OUT, c->transposed ? OUT : IN, c->type, 2, false);
    if (c->biased) run.call.w[1] = make(1, OUT, c->type, 3, false);
    run.call.y = make(c->rows, OUT, c->type, 4, c->sliced);
    return run;
}

static linear_run backward_of(const linear_case *c) {
    linear_run run = {.call = {.kernel = DEVICE_LINEAR_BACKWARD}};
    int64_t rows = c->transposed ? IN : OUT, columns = c->transposed ? OUT : IN;
    run.call.attributes.linear.transposed = c->transposed;
    run.call.x[0] = make(c->rows, IN, c->type, 1, c->sliced);
    run.call.w[0] = make(rows, columns, c->type, 2, false);
    run.call.dy = make(c->rows, OUT, c->type, 5, c->sliced);
    run.call.dx[0] = make(c->rows, IN, c->type, 6, c->sliced);
    run.call.dw[0] = make(rows, columns, BASE_FP32, 7, false);
    run.call.accumulate[0] = run.call.accumulate_dw = c->accumulate;
    if (c->biased) run.call.dw[1] = make(1, OUT, BASE_FP32, 8, false);
    run.dx = case_copy(&run.call.dx[0]);
    run.dw = case_copy(&run.call.dw[0]);
    if (c->biased) run.db = case_copy(&run.call.dw[1]);
    return run;
}

static void matrices_of(device_call *call, device_matrix *out[MOST_PLACED], int *count) {
    device_matrix *all[] = {&call->x[0], &call->w[0],  &call->w[1],  &call->y,
                            &call->dy,   &call->dx[0], &call->dw[0], &call->dw[1]};
    *count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->dtype != BASE_NONE) out[(*count)++] = all[i];
}

static void free_linear(linear_run *run) {
    device_matrix *all[MOST_PLACED];
    int count;
    matrices_of(&run->call, all, &count);
    for (int i = 0; i < count; i++) free_matrix(all[i]);
    free(run->dx.data);
    free(run->dw.data);
    free(run->db.data);
}

/* From the start of a slice on. */
static int64_t span_of(const device_matrix *m) {
    return ((m->rows - 1) * m->stride + m->columns) * base_dtype_bytes(m->dtype);
}

/* Runs the call `times` times with its operands on the device, from what is in host memory, which
 * then has the last results. */
static sifr_status run_call(device *dev, device_call *host, int times, sifr_error *error) {
    device_call call = *host;
    device_matrix *from[MOST_PLACED], *to[MOST_PLACED];
    int count;
    int64_t offsets[MOST_PLACED], bytes = 0;
    char *block;
    matrices_of(host, from, &count);
    matrices_of(&call, to, &count);
    BASE_TRY(device_prepare(dev, &call, error));
    for (int i = 0; i < count; i++) {
        offsets[i] = bytes + (int64_t)((uintptr_t)from[i]->data % 64); /* as it is aligned here */
        bytes = (offsets[i] + span_of(from[i]) + 255) / 256 * 256;
    }
    /* Scratch begins as badly as it may. */
    BASE_TRY(device_take(dev, bytes + 64 + call.scratch_bytes, (void **)&block, error));
    call.scratch = block + bytes + 64;
    sifr_status status = SIFR_OK;
    for (int turn = 0; turn < times && status == SIFR_OK; turn++) {
        for (int i = 0; i < count; i++) {
            to[i]->data = block + offsets[i];
            assert_int_equal(device_copy(dev, to[i]->data, from[i]->data, span_of(from[i]), error),
                             SIFR_OK);
        }
        status = device_run(dev, &call, error);
    }
    for (int i = 0; i < count && status == SIFR_OK; i++)
        status = device_copy(dev, from[i]->data, to[i]->data, span_of(from[i]), error);
    device_give(dev, block, bytes + 64 + call.scratch_bytes);
    return status;
}

static void run_well(device *dev, device_call *call) {
    sifr_error error = {0};
    if (run_call(dev, call, 1, &error) != SIFR_OK) fail_msg("%s", error.message);
}

static double weight(const device_call *call, int64_t out, int64_t in) {
    return call->attributes.linear.transposed ? case_get(&call->w[0], in, out)
                                              : case_get(&call->w[0], out, in);
}

typedef struct reference {
    double sum, terms;
} reference;

static void add(reference *r, double a, double b) {
    r->sum += a * b;
    r->terms += fabs(a * b);
}

static void expect(const device_matrix *m, int64_t row, int64_t column, reference r,
                   const char *what) {
    double d = case_distance(case_get(m, row, column), r.sum, r.terms + 2, m->dtype);
    if (!(d <= 1.0))
        fail_msg("%s: element %lld, %lld is %g times too far off", what, (long long)row,
                 (long long)column, d);
}

static void expect_forward(const device_call *call) {
    for (int64_t r = 0; r < call->y.rows; r++)
        for (int64_t o = 0; o < OUT; o++) {
            reference want = {0};
            for (int64_t i = 0; i < IN; i++)
                add(&want, case_get(&call->x[0], r, i), weight(call, o, i));
            if (call->w[1].dtype != BASE_NONE) add(&want, case_get(&call->w[1], 0, o), 1);
            expect(&call->y, r, o, want, "y");
        }
}

static void expect_inputs(const linear_run *run) {
    const device_call *call = &run->call;
    for (int64_t r = 0; r < call->dy.rows; r++)
        for (int64_t i = 0; i < IN; i++) {
            reference want = {0};
            if (call->accumulate[0]) add(&want, case_get(&run->dx, r, i), 1);
            for (int64_t o = 0; o < OUT; o++)
                add(&want, case_get(&call->dy, r, o), weight(call, o, i));
            expect(&call->dx[0], r, i, want, "dx");
        }
}

static void expect_weights(const linear_run *run) {
    const device_call *call = &run->call;
    bool transposed = call->attributes.linear.transposed;
    for (int64_t o = 0; o < OUT; o++)
        for (int64_t i = 0; i < IN; i++) {
            reference want = {0};
            int64_t row = transposed ? i : o, column = transposed ? o : i;
            if (call->accumulate_dw) add(&want, case_get(&run->dw, row, column), 1);
            for (int64_t r = 0; r < call->dy.rows; r++)
                add(&want, case_get(&call->dy, r, o), case_get(&call->x[0], r, i));
            expect(&call->dw[0], row, column, want, "dw");
        }
}

/* Every row of cuda_products' table: both layouts of weights, both types, whole matrices and
 * slices, with and without a bias and what was there before. */
static void layouts(void **state) {
    (void)state;
    device *dev = open_lt(&none);
    for (int i = 0; i < 16; i++) {
        linear_case c = {.type = i & 1 ? BASE_BF16 : BASE_FP16,
                         .transposed = i & 2,
                         .biased = i & 4,
                         .sliced = i & 8,
                         .accumulate = (i ^ i >> 1) & 4,
                         .rows = 37 + i};
        linear_run forward = forward_of(&c), backward = backward_of(&c);
        int64_t before = fake_lt_count().products;
        run_well(dev, &forward.call);
        assert_int_equal(fake_lt_count().products, before + 1);
        run_well(dev, &backward.call);
        assert_int_equal(fake_lt_count().products, before + 3);
        expect_forward(&forward.call);
        expect_inputs(&backward);
        expect_weights(&backward);
        free_linear(&forward);
        free_linear(&backward);
    }
    assert_string_equal(device_notice(dev), "");
    device_close(dev);
}

/* Weight gradients add one chunk of tokens after the other. */
static void chunks(void **state) {
    (void)state;
    device *dev = open_lt(&none);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        linear_case c = {
            .type = BASE_BF16, .rows = 2 * CHUNK + 40, .accumulate = accumulate, .biased = true};
        linear_run run = backward_of(&c);
        int64_t before = fake_lt_count().products;
        run_well(dev, &run.call);
        assert_int_equal(fake_lt_count().products, before + 4); /* three chunks, and dx */
        expect_weights(&run);
        expect_inputs(&run);
        free_linear(&run);
    }
    device_close(dev);
}

/* Rows from `first` on of a call's operands; 0: all of them. */
static device_call part_of(const device_call *call, int64_t first, int64_t rows, int64_t whole) {
    device_call part = *call;
    device_matrix *cut[] = {&part.x[0], &part.y, &part.dy, &part.dx[0]};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        if (cut[i]->dtype == BASE_NONE) continue;
        cut[i]->data =
            (char *)cut[i]->data + first * cut[i]->stride * base_dtype_bytes(cut[i]->dtype);
        cut[i]->rows = rows;
    }
    part.attributes.linear.whole = whole;
    part.accumulate_dw = call->accumulate_dw || first > 0;
    return part;
}

static bool is_same(const device_matrix *a, const device_matrix *b) {
    return memcmp(a->data, b->data, (size_t)span_of(a)) == 0;
}

/* Parts have the bits of the whole, since they take its algorithm; without knowing of the whole
 * they would not. */
static void parts(void **state) {
    (void)state;
    enum { ROWS = CHUNK + 30 };
    linear_case c = {.type = BASE_FP16, .rows = ROWS}; /* whose bits show the order of a sum */
    device *dev = open_lt(&none);
    for (int known = 1; known >= 0; known--) {
        linear_run forward = forward_of(&c), forward_cut = forward_of(&c);
        linear_run backward = backward_of(&c), backward_cut = backward_of(&c);
        int64_t whole = known ? ROWS : 0;
        run_well(dev, &forward.call);
        run_well(dev, &backward.call);
        for (int64_t first = 0; first < ROWS; first += CHUNK) {
            int64_t rows = ROWS - first < CHUNK ? ROWS - first : CHUNK;
            device_call y = part_of(&forward_cut.call, first, rows, whole);
            device_call d = part_of(&backward_cut.call, first, rows, whole);
            run_well(dev, &y);
            run_well(dev, &d);
        }
        assert_int_equal(is_same(&forward.call.y, &forward_cut.call.y), known);
        assert_int_equal(is_same(&backward.call.dx[0], &backward_cut.call.dx[0]), known);
        assert_true(is_same(&backward.call.dw[0], &backward_cut.call.dw[0]));
        free_linear(&forward);
        free_linear(&forward_cut);
        free_linear(&backward);
        free_linear(&backward_cut);
    }
    device_close(dev);
}

/* Nothing is made when a call runs, and an algorithm is asked for once. */
static void kept(void **state) {
    (void)state;
    linear_case c = {.type = BASE_FP16, .rows = 50, .biased = true};
    device *dev = open_lt(&none);
    linear_run run = forward_of(&c), other = forward_of(&c);
    sifr_error error;
    char text[200];
    device_call prepared = run.call;
    assert_int_equal(device_prepare(dev, &prepared, &error), SIFR_OK);
    assert_int_equal(prepared.scratch_bytes, CUDA_PRODUCTS_WORKSPACE);
    fake_lt_counts before = fake_lt_count();
    assert_int_equal(before.asked, 0);
    assert_int_equal(run_call(dev, &run.call, 3, &error), SIFR_OK);
    assert_int_equal(run_call(dev, &other.call, 1, &error), SIFR_OK);
    assert_int_equal(fake_lt_count().made, before.made);
    assert_int_equal(fake_lt_count().asked, 1);
    assert_int_equal(fake_lt_count().products, 4);
    assert_true(is_same(&run.call.y, &other.call.y));
    device_describe(dev, text, sizeof text);
    assert_string_equal(text, "cuda 9.0, cuBLASLt 13.0.2 for 132 multiprocessors");
    size_t bytes = cuda_device_products(dev, text, sizeof text);
    assert_string_equal(text, "nt 50 x 40 x 24 in fp16: algorithm 66, tile 2, stages 36, "
                              "cluster 3\n");
    assert_int_equal(bytes, strlen(text));
    free_linear(&run);
    free_linear(&other);
    device_close(dev);
}

static void expect_own(device *dev, const linear_case *c) {
    linear_run forward = forward_of(c), backward = backward_of(c);
    int64_t before = fake_lt_count().products;
    run_well(dev, &forward.call);
    run_well(dev, &backward.call);
    assert_int_equal(fake_lt_count().products, before);
    expect_forward(&forward.call);
    expect_inputs(&backward);
    expect_weights(&backward);
    free_linear(&forward);
    free_linear(&backward);
}

/* What device_ran_of says of products. */
static void expect_ran(const device *dev, const char *products, int64_t library, int64_t own,
                       const char *own_why) {
    device_ran ran;
    device_ran_of(dev, &ran);
    assert_string_equal(ran.products, products);
    assert_int_equal(ran.library_products, library);
    assert_int_equal(ran.own_products, own);
    assert_string_equal(ran.own_why, own_why);
}

/* fp32 is never cut to tf32, and rows that are not on 16 bytes stay with the own kernels. */
static void others(void **state) {
    (void)state;
    linear_case c = {.type = BASE_FP32, .rows = 9};
    device *dev = open_lt(&none);
    expect_own(dev, &c);
    expect_ran(dev, "cuBLASLt 13.0.2", 0, 0, "");
    linear_case odd = {.type = BASE_BF16, .rows = 9};
    linear_run run = forward_of(&odd);
    sifr_error error;
    run.call.x[0].columns = run.call.w[0].columns = IN - 1;
    run.call.x[0].stride = run.call.w[0].stride = IN - 1;
    assert_int_equal(run_call(dev, &run.call, 1, &error), SIFR_OK);
    assert_int_equal(fake_lt_count().products, 0);
    free_linear(&run);
    odd.sliced = true; /* rows lie 16 bytes apart, and begin elsewhere */
    run = forward_of(&odd);
    uint16_t *x = run.call.x[0].data;
    run.call.x[0].data = x + 1;
    run_well(dev, &run.call);
    assert_int_equal(fake_lt_count().products, 0);
    expect_forward(&run.call);
    run.call.x[0].data = x;
    free_linear(&run);
    assert_string_equal(device_notice(dev), "");
    expect_ran(dev, "cuBLASLt 13.0.2", 0, 2,
               "those of a head with labels, or of rows that are not on 16 bytes");
    device_close(dev);
}

static void expect_notice(const device *dev, const char *part) {
    if (!strstr(device_notice(dev), part)) fail_msg("no \"%s\" in: %s", part, device_notice(dev));
}

static void nothing_proposed(void **state) {
    (void)state;
    const fake_lt_trouble troubles[] = {{.nothing = true}, {.cuts = true}};
    linear_case c = {.type = BASE_BF16, .rows = 9, .biased = true, .accumulate = true};
    for (int i = 0; i < 2; i++) {
        device *dev = open_lt(&troubles[i]);
        assert_string_equal(device_notice(dev), "");
        expect_own(dev, &c);
        expect_notice(dev, "cuBLASLt 13.0.2 has no algorithm for a product (nt 9 x 40 x 24 in "
                           "bf16)");
        int64_t asked = fake_lt_count().asked;
        expect_own(dev, &c);
        assert_int_equal(fake_lt_count().asked, asked);
        expect_ran(dev, "cuBLASLt 13.0.2", 0, 6, "no algorithm for nt 9 x 40 x 24 in bf16");
        device_close(dev);
    }
}

/* A part that the whole's algorithm does not take. */
static void no_parts(void **state) {
    (void)state;
    const fake_lt_trouble trouble = {.no_parts = true};
    linear_case c = {.type = BASE_BF16, .rows = CHUNK};
    device *dev = open_lt(&trouble);
    linear_run run = forward_of(&c);
    run.call.attributes.linear.whole = 2 * CHUNK;
    run_well(dev, &run.call);
    assert_int_equal(fake_lt_count().products, 0);
    expect_forward(&run.call);
    expect_notice(dev, "no algorithm");
    free_linear(&run);
    device_close(dev);
}

static void missing(void **state) {
    (void)state;
    static const cuda_image image = {.name = "fake", .data = "fake"};
    char text[100];
    device *dev;
    cuda_options options = {.driver = &driver,
                            .threads = 1,
                            .images = &image,
                            .image_count = 1,
                            .lt_missing = "cuBLASLt was not found"};
    assert_int_equal(cuda_device_open(&options, &dev, NULL), SIFR_OK);
    expect_notice(dev, "own kernels, which are slower than cuBLASLt's");
    expect_notice(dev, ": cuBLASLt was not found");
    device_describe(dev, text, sizeof text);
    assert_string_equal(text, "cuda 9.0, own products");
    assert_int_equal(cuda_device_products(dev, text, sizeof text), 0);
    assert_string_equal(text, "");
    expect_ran(dev, "own: cuBLASLt was not found", 0, 0, "");
    device_close(dev);
    options.lt_missing = NULL;
    assert_int_equal(cuda_device_open(&options, &dev, NULL), SIFR_OK);
    expect_ran(dev, "own: cuBLASLt was not asked for", 0, 0, "");
    device_close(dev);
}

/* A run that takes all of the room has its first product, for which cuBLASLt takes memory, too. */
static void capacity_for_kernels(void **state) {
    (void)state;
    enum { MEMORY = 64 << 20, KERNELS = 3 << 20 };
    const fake_lt_trouble takes = {.kernels = KERNELS};
    linear_case c = {.type = BASE_BF16, .rows = 9};
    linear_run run = forward_of(&c);
    sifr_error error;
    void *rest_of_it;
    fake_driver_limit(MEMORY);
    device *dev = open_lt(&takes);
    device_call prepared = run.call;
    assert_int_equal(device_prepare(dev, &prepared, &error), SIFR_OK);
    int64_t capacity = device_capacity(dev), block = prepared.scratch_bytes + (64 << 10);
    assert_true(capacity > MEMORY / 2 + KERNELS);
    assert_int_equal(device_take(dev, capacity - block, &rest_of_it, &error), SIFR_OK);
    run_well(dev, &run.call);
    expect_forward(&run.call);
    device_give(dev, rest_of_it, capacity - block);
    free_linear(&run);
    device_close(dev);
}

static void does_not_start(void **state) {
    (void)state;
    const fake_lt_trouble trouble = {.create = CUDA_LT_NOT_INITIALIZED};
    const fake_lt_trouble full = {.create = CUDA_LT_ALLOC_FAILED};
    linear_case c = {.type = BASE_BF16, .rows = 9};
    sifr_error error;
    device *dev = open_lt(&trouble);
    expect_notice(dev, "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED 1");
    expect_own(dev, &c);
    expect_ran(dev, "own: cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED 1", 0, 3, "");
    device_close(dev);
    assert_int_equal(open_with(&trouble, true, false, &dev, &error), SIFR_FAILED);
    assert_string_equal(error.message, "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED 1");
    assert_int_equal(open_with(&full, false, false, &dev, &error), SIFR_NO_MEMORY);
}

static void expect_failure(const fake_lt_trouble *trouble, bool check, sifr_status status,
                           const char *part) {
    linear_case c = {.type = BASE_BF16, .rows = 9};
    linear_run run = forward_of(&c);
    sifr_error error = {0};
    device *dev;
    assert_int_equal(open_with(trouble, false, check, &dev, &error), SIFR_OK);
    if (check) fake_driver_fail_launch(0, CUDA_ILLEGAL_ADDRESS);
    assert_int_equal(run_call(dev, &run.call, 1, &error), status);
    if (!strstr(error.message, part)) fail_msg("no \"%s\" in: %s", part, error.message);
    free_linear(&run);
    device_close(dev);
}

static void failures(void **state) {
    (void)state;
    const fake_lt_trouble heuristic = {.heuristic = CUDA_LT_INTERNAL_ERROR};
    const fake_lt_trouble multiply = {.multiply = CUDA_LT_EXECUTION_FAILED};
    const fake_lt_trouble full = {.multiply = CUDA_LT_ALLOC_FAILED};
    expect_failure(&heuristic, false, SIFR_FAILED,
                   "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_INTERNAL_ERROR 14");
    expect_failure(&multiply, false, SIFR_FAILED,
                   "cublasLtMatmul (nt 9 x 40 x 24 in bf16, algorithm 66, tile 3, stages 36, "
                   "cluster 3): CUBLAS_STATUS_EXECUTION_FAILED 13");
    expect_failure(&full, false, SIFR_NO_MEMORY, "CUBLAS_STATUS_ALLOC_FAILED");
}

static void checked(void **state) {
    (void)state;
    expect_failure(&none, true, SIFR_FAILED, "product by cuBLASLt, finished at once");
}

int main(void) {
    if (shim_skipped()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(layouts, start, stop),
        cmocka_unit_test_setup_teardown(chunks, start, stop),
        cmocka_unit_test_setup_teardown(parts, start, stop),
        cmocka_unit_test_setup_teardown(kept, start, stop),
        cmocka_unit_test_setup_teardown(others, start, stop),
        cmocka_unit_test_setup_teardown(nothing_proposed, start, stop),
        cmocka_unit_test_setup_teardown(no_parts, start, stop),
        cmocka_unit_test_setup_teardown(missing, start, stop),
        cmocka_unit_test_setup_teardown(capacity_for_kernels, start, stop),
        cmocka_unit_test_setup_teardown(does_not_start, start, stop),
        cmocka_unit_test_setup_teardown(failures, start, stop),
        cmocka_unit_test_setup_teardown(checked, start, stop_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
