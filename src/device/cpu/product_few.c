#include "device/cpu/product_few.h"

#include <stdatomic.h>

#include "base/checked.h"
#include "device/cpu/kernels_matrix.h"

enum {
    RANGES = 64,           /* threads beyond them share ranges */
    PART_BYTES = 96 << 10, /* of w, that a thread takes at a time */
    PART_ROWS = 16,        /* a multiple of them */
    /* Elements of a row of y in a part where w is read across its rows: */
    RUN = 512, /* if threads allow it */
    LEAST = 64,
    MOST = 1024
};

/* Where a range goes on; each in a cache line of its own. */
typedef struct few_range {
    _Alignas(64) _Atomic int64_t next;
    int64_t last;
} few_range;

typedef struct few_run {
    const device_call *call;
    const cpu_matrix_kernels *kernels;
    bool transposed;
    int64_t out, part; /* elements of a row of y, in all and in a part */
    int ranges;
    few_range range[RANGES];
} few_run;

static void make_part(const few_run *run, int64_t part) {
    const device_call *call = run->call;
    int64_t first = part * run->part;
    run->kernels->vector_product(&call->x[0], &call->w[0], &call->w[1], &call->y, run->transposed,
                                 first, base_min_i64(run->out, first + run->part));
}

/* A thread reads a range from its beginning, so that what follows is on its way when a part ends;
 * then it helps with the others. */
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

/* Of rows as they lie, some whole ones make a part. Across rows, memory gives long runs quicker:
 * two parts a thread where they are wide, or one. */
static int64_t choose_part(const few_run *run, int threads) {
    const device_matrix *w = &run->call->w[0];
    if (!run->transposed) {
        int64_t rows = PART_BYTES / (w->columns * device_dtype_bytes(w->dtype) + 1);
        return base_max_i64(rows / PART_ROWS, 1) * PART_ROWS;
    }
    int64_t each = run->out / threads;
    int64_t part = base_max_i64(each / 2, base_min_i64(each, RUN));
    return base_min_i64(base_ceil_to(base_max_i64(part, 1), LEAST), MOST);
}

void cpu_product_few_run(device *dev, const device_call *call) {
    int threads = device_threads(dev);
    few_run run = {.call = call,
                   .kernels = dev->set->matrix,
                   .transposed = call->attributes.linear.transposed,
                   .out = call->y.columns};
    run.part = choose_part(&run, threads);
    int64_t parts = (run.out + run.part - 1) / run.part;
    run.ranges = threads < RANGES ? threads : RANGES;
    for (int r = 0; r < run.ranges; r++) {
        atomic_init(&run.range[r].next, r * parts / run.ranges);
        run.range[r].last = (r + 1) * parts / run.ranges;
    }
    cpu_parallel(dev->team, base_min_i64(threads, parts), range_task, &run);
}
