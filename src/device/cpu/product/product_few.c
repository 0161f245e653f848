#include "device/cpu/product/product_few.h"

#include <stdatomic.h>

#include "base/checked.h"
#include "device/cpu/product/kernels_matrix.h"
#include "device/cpu/product/product.h"

enum {
    RANGES = 64,           /* further threads share ranges */
    PART_BYTES = 96 << 10, /* of w, in one part */
    PART_ROWS = 16,        /* parts are multiples of these rows */
    /* If w is in x out, so that a thread reads contiguous runs: */
    PIECE_ROWS = 96, /* of w, summed in order, so independent of the number of threads */
    LEAST = 64,      /* elements of a row of y in a part, if threads outnumber pieces */
    FINISH = 256     /* elements of a row of y finished in one task */
};

/* The next part of a range; each range has a cache line of its own. */
typedef struct few_range {
    _Alignas(64) _Atomic int64_t next;
    int64_t last;
} few_range;

typedef struct few_run {
    const device_call *call;
    const cpu_matrix_kernels *kernels;
    bool transposed;
    int64_t out, part; /* elements of a row of y: all, and in a part */
    int64_t pieces;    /* of rows of w; else 1 */
    int ranges;
    few_range range[RANGES];
} few_run;

static int64_t count_pieces(const device_call *call) {
    if (!call->attributes.linear.transposed) return 1;
    return (call->x[0].columns + PIECE_ROWS - 1) / PIECE_ROWS;
}

static void make_part(const few_run *run, int64_t part) {
    const device_call *call = run->call;
    int64_t piece = part % run->pieces, row = piece * PIECE_ROWS;
    int64_t first = part / run->pieces * run->part;
    int64_t last = base_min_i64(run->out, first + run->part);
    if (run->transposed)
        run->kernels->vector_sums(&call->x[0], &call->w[0], row,
                                  base_min_i64(PIECE_ROWS, call->w[0].rows - row), first, last,
                                  (float *)call->scratch + piece * call->x[0].rows * run->out);
    else
        run->kernels->vector_product(&call->x[0], &call->w[0], &call->w[1], &call->y, first, last);
}

/* A thread reads a range from its beginning, so the next part is already prefetched when one ends.
 * Afterwards it helps with other ranges. */
static void range_task(void *context, int64_t task, int thread) {
    few_run *run = context;
    (void)task;
    for (int i = 0; i < run->ranges; i++) {
        few_range *range = &run->range[(thread + i) % run->ranges];
        for (;;) {
            int64_t part = atomic_fetch_add_explicit(&range->next, 1, memory_order_relaxed);
            if (part >= range->last) break;
            make_part(run, part);
        }
    }
}

static void finish_task(void *context, int64_t task, int thread) {
    const few_run *run = context;
    (void)thread;
    run->kernels->vector_finish(run->call->scratch, run->pieces, &run->call->w[1], &run->call->y,
                                task * FINISH, base_min_i64(run->out, (task + 1) * FINISH));
}

static int64_t choose_part(const few_run *run, int threads) {
    const device_matrix *w = &run->call->w[0];
    if (!run->transposed) {
        int64_t rows = PART_BYTES / (w->columns * base_dtype_bytes(w->dtype) + 1);
        return base_max_i64(rows / PART_ROWS, 1) * PART_ROWS;
    }
    int64_t parts = (threads + run->pieces - 1) / run->pieces;
    return base_ceil_to((run->out + parts - 1) / parts, LEAST);
}

/* Widening all of w takes longer than reading it, and few rows only read it. */
bool cpu_takes_few_rows(const device *dev, const device_call *call) {
    int64_t whole = call->attributes.linear.whole;
    if (whole <= 0) whole = call->x[0].rows;
    return whole == 1 || (!cpu_product_takes(dev, call->x[0].dtype) && whole <= CPU_FEW_ROWS);
}

sifr_status cpu_prepare_few_rows(device *dev, device_call *call, sifr_error *error) {
    (void)dev, (void)error;
    if (call->attributes.linear.transposed)
        call->scratch_bytes = count_pieces(call) * call->y.rows * call->y.columns * 4;
    return SIFR_OK;
}

sifr_status cpu_run_few_rows(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    int threads = device_threads(dev);
    few_run run = {.call = call,
                   .kernels = cpu_of(dev)->set->matrix,
                   .transposed = call->attributes.linear.transposed,
                   .out = call->y.columns,
                   .pieces = count_pieces(call)};
    run.part = choose_part(&run, threads);
    int64_t parts = (run.out + run.part - 1) / run.part * run.pieces;
    run.ranges = threads < RANGES ? threads : RANGES;
    for (int r = 0; r < run.ranges; r++) {
        atomic_init(&run.range[r].next, r * parts / run.ranges);
        run.range[r].last = (r + 1) * parts / run.ranges;
    }
    host_parallel(dev->team, base_min_i64(threads, parts), range_task, &run);
    if (run.transposed)
        host_parallel(dev->team, (run.out + FINISH - 1) / FINISH, finish_task, &run);
    return SIFR_OK;
}
