#include "device/cpu/product/orthogonalise.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/exact_sum.h"
#include "device/check/operands.h"
#include "device/cpu/product/product.h"
#include "device/cpu/product/transpose.h"

enum {
    STEPS = 5,
    RESTART = 2, /* of the Gram iteration: behind this many steps */
    ELEMENTS = 1 << 15,
    TRANSPOSE_ROWS = 64
};

static const float A = 3.4445f, B = -4.7750f, C = 2.0315f;

/* X has k <= m: rows and columns, or columns and rows of the matrix. Offsets in scratch; `buffer`
 * is as large as the matrix: X is in one of the two, and goes to the other when it changes. */
typedef struct orthogonal_plan {
    int64_t rows, columns, k, m;
    bool transposed, gram;
    /* DEVICE_LINEAR: X X^T, a product of two k x k, one of k x k by X. */
    device_call outer, square, apply;
    int64_t at_buffer, at_squares[4], at_products;
} orthogonal_plan;

typedef struct orthogonal_run {
    device *dev;
    const orthogonal_plan *plan;
    float *x, *other, *buffer, *squares[4];
    char *scratch; /* of products */
} orthogonal_run;

static device_matrix dense(float *data, int64_t rows, int64_t columns) {
    return (device_matrix){data, rows, columns, columns, BASE_FP32};
}

/* y, rows x columns, = x w, or x w^T unless w is `plain`. */
static sifr_status prepare_product(device *dev, int64_t rows, int64_t inner, int64_t columns,
                                   bool plain, device_call *call, sifr_error *error) {
    memset(call, 0, sizeof *call);
    call->kernel = DEVICE_LINEAR;
    call->attributes.linear.transposed = plain;
    call->x[0] = dense(NULL, rows, inner);
    call->w[0] = plain ? dense(NULL, inner, columns) : dense(NULL, columns, inner);
    call->y = dense(NULL, rows, columns);
    return cpu_prepare(dev, call, error);
}

sifr_status cpu_prepare_orthogonalise(device *dev, device_call *call, sifr_error *error) {
    orthogonal_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.rows = call->y.rows / call->attributes.update.matrices;
    plan.columns = call->y.columns;
    plan.k = base_min_i64(plan.rows, plan.columns);
    plan.m = base_max_i64(plan.rows, plan.columns);
    plan.transposed = plan.rows > plan.columns;
    plan.gram = call->attributes.update.gram && plan.k < plan.m;
    int64_t total = 0, k = plan.k, m = plan.m;
    BASE_TRY(prepare_product(dev, k, m, k, false, &plan.outer, error));
    BASE_TRY(prepare_product(dev, k, k, k, true, &plan.square, error));
    BASE_TRY(prepare_product(dev, k, k, m, true, &plan.apply, error));
    plan.at_buffer = device_reserve(&total, k * m * 4);
    for (int i = 0; i < (plan.gram ? 4 : 2); i++)
        plan.at_squares[i] = device_reserve(&total, k * k * 4);
    int64_t products = base_max_i64(plan.outer.scratch_bytes, plan.square.scratch_bytes);
    plan.at_products = device_reserve(&total, base_max_i64(products, plan.apply.scratch_bytes));
    call->scratch_bytes = total;
    return cpu_products_keep(cpu_of(dev)->products, &plan, sizeof plan, &call->prepared, error);
}

static sifr_status multiply(const orthogonal_run *run, const device_call *prepared, float *x,
                            float *w, float *y, sifr_error *error) {
    device_call call = *prepared;
    call.x[0].data = x;
    call.w[0].data = w;
    call.y.data = y;
    call.scratch = run->scratch;
    return cpu_run(run->dev, &call, error);
}

/* y = a x + b y over `count` elements, in tiles; x may be NULL: y = b y. */
typedef struct combination {
    const float *x;
    float *y, a, b;
    int64_t count;
} combination;

static void combine_tile(void *argument, int64_t tile, int thread) {
    const combination *c = argument;
    int64_t first = tile * ELEMENTS, end = base_min_i64(first + ELEMENTS, c->count);
    (void)thread;
    if (!c->x)
        for (int64_t i = first; i < end; i++) c->y[i] = c->b * c->y[i];
    else
        for (int64_t i = first; i < end; i++) c->y[i] = c->a * c->x[i] + c->b * c->y[i];
}

static void combine(const orthogonal_run *run, float a, const float *x, float b, float *y,
                    int64_t count) {
    combination c = {.x = x, .y = y, .a = a, .b = b, .count = count};
    host_parallel(run->dev->team, (count + ELEMENTS - 1) / ELEMENTS, combine_tile, &c);
}

/* A transposition of rows x columns, in tiles of rows. */
typedef struct transposition {
    const float *from;
    float *to;
    int64_t rows, columns;
} transposition;

static void transpose_tile(void *argument, int64_t tile, int thread) {
    const transposition *t = argument;
    int64_t first = tile * TRANSPOSE_ROWS, rows = base_min_i64(TRANSPOSE_ROWS, t->rows - first);
    (void)thread;
    cpu_transpose32((const uint32_t *)(const void *)(t->from + first * t->columns), rows,
                    t->columns, t->columns, (uint32_t *)(void *)(t->to + first), t->rows);
}

static void transpose(const orthogonal_run *run, const float *from, int64_t rows, int64_t columns,
                      float *to) {
    transposition t = {from, to, rows, columns};
    host_parallel(run->dev->team, (rows + TRANSPOSE_ROWS - 1) / TRANSPOSE_ROWS, transpose_tile, &t);
}

/* x becomes x / (|x| + 1e-7). The sum of squares is exact, so nothing moves its bits. */
static sifr_status normalise(const orthogonal_run *run, float *x, sifr_error *error) {
    int64_t count = run->plan->k * run->plan->m;
    base_exact_sum sum = {0};
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_EXACT_SQUARES;
    call.x[0] = dense(x, 1, count);
    call.y = (device_matrix){&sum, 1, EXACT_WORDS, EXACT_WORDS, BASE_INT64};
    BASE_TRY(cpu_run(run->dev, &call, error));
    float norm = (float)sqrt(base_exact_round(&sum));
    combine(run, 0, NULL, 1.0f / (norm + 1e-7f), x, count);
    return SIFR_OK;
}

/* X = M X, with M k x k. */
static sifr_status apply(orthogonal_run *run, float *matrix, sifr_error *error) {
    BASE_TRY(multiply(run, &run->plan->apply, matrix, run->x, run->other, error));
    float *x = run->x;
    run->x = run->other;
    run->other = x;
    return SIFR_OK;
}

/* z = b r + c r r */
static sifr_status polynomial(const orthogonal_run *run, float *r, float *z, sifr_error *error) {
    BASE_TRY(multiply(run, &run->plan->square, r, r, z, error));
    combine(run, B, r, C, z, run->plan->k * run->plan->k);
    return SIFR_OK;
}

static sifr_status iterate_plain(orthogonal_run *run, sifr_error *error) {
    const orthogonal_plan *p = run->plan;
    float *r = run->squares[0], *z = run->squares[1];
    for (int i = 0; i < STEPS; i++) {
        BASE_TRY(multiply(run, &p->outer, run->x, run->x, r, error));
        BASE_TRY(polynomial(run, r, z, error));
        float *x = run->x;
        BASE_TRY(apply(run, z, error));
        combine(run, A, x, 1.0f, run->x, p->k * p->m);
    }
    return SIFR_OK;
}

/* q = a q + z q, or z + a of the identity as the first; p is room for products. */
static sifr_status extend(const orthogonal_run *run, float *z, float *q, float *p, bool first,
                          sifr_error *error) {
    int64_t k = run->plan->k;
    if (first) {
        memcpy(q, z, (size_t)(k * k) * sizeof *q);
        for (int64_t i = 0; i < k; i++) q[i * k + i] += A;
        return SIFR_OK;
    }
    BASE_TRY(multiply(run, &run->plan->square, z, q, p, error));
    combine(run, 1.0f, p, A, q, k * k);
    return SIFR_OK;
}

/* Gram matrix of the next X: p = a r + z r, then r = a p + z p. */
static sifr_status advance(const orthogonal_run *run, float *r, float *z, float *p,
                           sifr_error *error) {
    int64_t count = run->plan->k * run->plan->k;
    BASE_TRY(multiply(run, &run->plan->square, z, r, p, error));
    combine(run, A, r, 1.0f, p, count);
    BASE_TRY(multiply(run, &run->plan->square, z, p, r, error));
    combine(run, A, p, 1.0f, r, count);
    return SIFR_OK;
}

/* r = X X^T and q, the product of all polynomials since then. */
static sifr_status iterate_gram(orthogonal_run *run, sifr_error *error) {
    float *r = run->squares[0], *z = run->squares[1], *q = run->squares[2], *p = run->squares[3];
    for (int i = 0; i < STEPS; i++) {
        bool first = i == 0 || i == RESTART;
        if (i == RESTART) BASE_TRY(apply(run, q, error));
        if (first) BASE_TRY(multiply(run, &run->plan->outer, run->x, run->x, r, error));
        BASE_TRY(polynomial(run, r, z, error));
        BASE_TRY(extend(run, z, q, p, first, error));
        if (i < STEPS - 1 && i + 1 != RESTART) BASE_TRY(advance(run, r, z, p, error));
    }
    return apply(run, q, error);
}

/* X, transposed back where it was transposed, into the matrix. */
static void put_back(const orthogonal_run *run, float *y) {
    const orthogonal_plan *p = run->plan;
    const float *from = run->x;
    if (p->transposed) {
        float *to = from == y ? run->buffer : y;
        transpose(run, from, p->k, p->m, to);
        from = to;
    }
    if (from != y) memcpy(y, from, (size_t)(p->k * p->m) * sizeof *y);
}

/* One matrix, in place. */
static sifr_status run_matrix(orthogonal_run *run, float *y, sifr_error *error) {
    const orthogonal_plan *p = run->plan;
    int64_t count = p->k * p->m;
    if (p->transposed) transpose(run, y, p->rows, p->columns, run->buffer);
    run->x = p->transposed ? run->buffer : y;
    run->other = p->transposed ? y : run->buffer;
    BASE_TRY(normalise(run, run->x, error));
    BASE_TRY(p->gram ? iterate_gram(run, error) : iterate_plain(run, error));
    put_back(run, y);
    if (p->transposed)
        combine(run, 0, NULL, (float)sqrt((double)p->rows / (double)p->columns), y, count);
    return SIFR_OK;
}

sifr_status cpu_run_orthogonalise(device *dev, const device_call *call, sifr_error *error) {
    const orthogonal_plan *plan = call->prepared;
    char *scratch = call->scratch;
    orthogonal_run run = {.dev = dev, .plan = plan, .scratch = scratch + plan->at_products};
    if (!call->step->update) return SIFR_OK;
    run.buffer = (float *)(void *)(scratch + plan->at_buffer);
    for (int i = 0; i < (plan->gram ? 4 : 2); i++)
        run.squares[i] = (float *)(void *)(scratch + plan->at_squares[i]);
    for (int32_t i = 0; i < call->attributes.update.matrices; i++)
        BASE_TRY(run_matrix(&run, (float *)call->y.data + i * plan->rows * plan->columns, error));
    return SIFR_OK;
}
