/* The gradient norm, and the table of a set's kernels. */
#include "device/cpu/kernels_sets.h"

/* Element i is added to sum i mod SQUARES. Uses the compiler's vector extension, since compilers do
 * not vectorise such a loop, or keep the sums in memory. Prefetches across pages, where the
 * processor does not. */
enum { SQUARES = 8, SQUARES_AHEAD = 4096 };
typedef float square_values __attribute__((vector_size(SQUARES / 2 * sizeof(float))));
typedef double square_sums __attribute__((vector_size(SQUARES / 2 * sizeof(double))));

/* Two vectors of four values: with one vector of eight, compilers make loads and stores if no
 * register holds eight. */
static inline void add_eight(const float *x, square_sums sums[2]) {
    for (int i = 0; i < 2; i++) {
        square_values values;
        memcpy(&values, x + i * (SQUARES / 2), sizeof values);
        square_sums wide = __builtin_convertvector(values, square_sums);
        sums[i] += wide * wide;
    }
}

static inline double add_squares(const float *x, int64_t n) {
    square_sums sums[2] = {{0}, {0}};
    int64_t whole = n - n % SQUARES;
    for (int64_t i = 0; i < whole; i += SQUARES) {
        __builtin_prefetch((const char *)((uintptr_t)(x + i) + SQUARES_AHEAD));
        add_eight(x + i, sums);
    }
    if (whole < n) {
        float rest[SQUARES] = {0};
        memcpy(rest, x + whole, (size_t)(n - whole) * sizeof *x);
        add_eight(rest, sums);
    }
    return ((sums[0][0] + sums[1][0]) + (sums[0][2] + sums[1][2])) +
           ((sums[0][1] + sums[1][1]) + (sums[0][3] + sums[1][3]));
}

void KERNEL(square_sums)(const cpu_part *part) {
    const device_call *c = part->call;
    double *y = c->y.data;
    for (int64_t b = part->first; b < part->first + part->count; b++) {
        int64_t start = b * DEVICE_BLOCK, end = start + DEVICE_BLOCK;
        if (end > c->x[0].columns) end = c->x[0].columns;
        float buffer[DEVICE_BLOCK];
        y[b] = add_squares(lanes_read(buffer, &c->x[0], 0, start, end - start), end - start);
    }
}

const cpu_kernels KERNEL(cpu_kernels) = {
    .norm = KERNEL(norm),
    .norm_backward = KERNEL(norm_backward),
    .rope = KERNEL(rope),
    .regroup = KERNEL(regroup),
    .neighbours = KERNEL(neighbours),
    .rows = KERNEL(rows),
    .elementwise = KERNEL(elementwise),
    .updates = {[DEVICE_UPDATE_NUMBER(DEVICE_ADAM)] = KERNEL(adam),
                [DEVICE_UPDATE_NUMBER(DEVICE_AMSGRAD)] = KERNEL(amsgrad),
                [DEVICE_UPDATE_NUMBER(DEVICE_SGD)] = KERNEL(sgd),
                [DEVICE_UPDATE_NUMBER(DEVICE_MOMENTUM)] = KERNEL(momentum),
                [DEVICE_UPDATE_NUMBER(DEVICE_ADAGRAD)] = KERNEL(adagrad),
                [DEVICE_UPDATE_NUMBER(DEVICE_LION)] = KERNEL(lion),
                [DEVICE_UPDATE_NUMBER(DEVICE_SCHEDULE_FREE)] = KERNEL(schedule_free)},
    .square_sums = KERNEL(square_sums),
    .exact_squares = KERNEL(exact_squares),
    .embedding = KERNEL(embedding),
    .embedding_backward = KERNEL(embedding_backward)};
