/* Cuts element-wise, norm, table and optimizer calls into tiles. */
#include "device/cpu/vector/vectors.h"

#include <string.h>

#include "base/block4.h"
#include "base/checked.h"

static const cpu_kernels *kernels_of(const device *dev) {
    return cpu_of(dev)->set->vectors;
}

typedef struct tiles_job {
    void (*kernel)(const cpu_part *part);
    const device_call *call;
    int64_t total, step;
    float *sums; /* sums of tile t at t x sums_length */
    int64_t sums_length;
} tiles_job;

static void run_tile(void *argument, int64_t tile, int thread) {
    const tiles_job *job = argument;
    int64_t first = tile * job->step;
    cpu_part part = {job->call, first, base_min_i64(job->step, job->total - first), NULL};
    (void)thread;
    if (job->sums) {
        part.sums = job->sums + tile * job->sums_length;
        for (int64_t i = 0; i < job->sums_length; i++) part.sums[i] = 0;
    }
    job->kernel(&part);
}

static void run_tiles(device *dev, tiles_job job) {
    host_parallel(dev->team, (job.total + job.step - 1) / job.step, run_tile, &job);
}

enum { ROWS = 32, ELEMENTS = 1 << 15, FEW_ELEMENTS = 512 };

/* Elements per tile of a call of one row: work for all threads, if the row is long enough. */
static int64_t flat_step(const device *dev, int64_t elements) {
    int64_t step = base_ceil_to(elements / device_threads(dev), FEW_ELEMENTS);
    return base_min_i64(base_max_i64(step, 2 * FEW_ELEMENTS), ELEMENTS);
}

sifr_status cpu_run_elementwise(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *shape = cpu_elementwise_shape(call);
    bool flat = shape->rows == 1;
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->elementwise,
                               .call = call,
                               .total = flat ? shape->columns : shape->rows,
                               .step = flat ? flat_step(dev, shape->columns) : ROWS});
    return SIFR_OK;
}

sifr_status cpu_run_rope(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->rope,
                               .call = call,
                               .total = call->x[1].rows,
                               .step = ROWS});
    return SIFR_OK;
}

sifr_status cpu_run_split_qkv(device *dev, const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_SPLIT_QKV_BACKWARD;
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->split_qkv,
                               .call = call,
                               .total = backward ? call->dy.rows : call->y.rows,
                               .step = ROWS});
    return SIFR_OK;
}

sifr_status cpu_run_join(device *dev, const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_JOIN_BACKWARD;
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->join,
                               .call = call,
                               .total = backward ? call->dy.rows : call->y.rows,
                               .step = ROWS});
    return SIFR_OK;
}

sifr_status cpu_run_unfold(device *dev, const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_UNFOLD_BACKWARD;
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->unfold,
                               .call = call,
                               .total = backward ? call->dy.rows : call->y.rows,
                               .step = ROWS});
    return SIFR_OK;
}

sifr_status cpu_run_blocks8(device *dev, const device_call *call, sifr_error *error) {
    enum { BLOCKS = 8 };
    bool encodes = call->kernel == DEVICE_ENCODE_BLOCKS8;
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->blocks8,
                               .call = call,
                               .total = encodes ? call->y.rows : call->x[0].rows,
                               .step = BLOCKS});
    return SIFR_OK;
}

sifr_status cpu_run_blocks4(device *dev, const device_call *call, sifr_error *error) {
    enum { BLOCKS = 32 };
    bool encodes = call->kernel == DEVICE_ENCODE_BLOCKS4;
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->blocks4,
                               .call = call,
                               .total = encodes ? call->y.rows : call->y.columns / BASE_BLOCK4,
                               .step = BLOCKS});
    return SIFR_OK;
}

/* A tile has rows of M for a left factor and columns of it for a right one; a base is one tile. */
sifr_status cpu_run_power(device *dev, const device_call *call, sifr_error *error) {
    tiles_job job = {
        .kernel = kernels_of(dev)->power, .call = call, .total = call->y.columns, .step = ELEMENTS};
    (void)error;
    if (call->kernel == DEVICE_POWER_KEEP && !call->step->update) return SIFR_OK;
    if (call->kernel == DEVICE_POWER_KEEP && call->saved[1].dtype != BASE_NONE)
        memcpy(call->saved[1].data, call->x[1].data,
               (size_t)(call->x[1].rows * call->x[1].columns) * sizeof(float));
    if (call->kernel == DEVICE_POWER_LEFT) job.step = ROWS;
    if (call->kernel == DEVICE_POWER_RIGHT) job.step = 256;
    if (call->kernel == DEVICE_POWER_BASE) job.total = job.step = 1;
    run_tiles(dev, job);
    return SIFR_OK;
}

sifr_status cpu_run_rows(device *dev, const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_ROWS_BACKWARD;
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->rows,
                               .call = call,
                               .total = backward ? call->dy.rows : call->y.rows,
                               .step = ROWS});
    return SIFR_OK;
}

sifr_status cpu_run_norm(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->norm,
                               .call = call,
                               .total = call->x[0].rows,
                               .step = ROWS});
    return SIFR_OK;
}

static int64_t run_count(int64_t rows) {
    return (rows + DEVICE_NORM_ROWS - 1) / DEVICE_NORM_ROWS;
}

sifr_status cpu_prepare_norm_backward(device *dev, device_call *call, sifr_error *error) {
    (void)dev;
    (void)error;
    call->scratch_bytes =
        run_count(call->x[0].rows) * 2 * device_norm_weights(call) * (int64_t)sizeof(float);
    return SIFR_OK;
}

typedef struct fold_job {
    const device_call *call;
    const float *sums;
    int64_t tiles, length, weights;
} fold_job;

static float *gradient_at(const device_matrix *dw, int64_t element) {
    int64_t row = dw->rows > 1 ? element / dw->columns : 0;
    return (float *)dw->data + row * dw->stride + (element - row * dw->columns);
}

/* Adds the sums of all tiles, in order, for a range of weights. */
static void fold_sums(void *argument, int64_t tile, int thread) {
    enum { COLUMNS = 256 };
    const fold_job *job = argument;
    const device_call *c = job->call;
    int64_t weights = job->weights, first = tile * COLUMNS;
    int64_t end = base_min_i64(weights, first + COLUMNS);
    (void)thread;
    for (int w = 0; w < 2; w++) {
        if (c->dw[w].dtype == BASE_NONE) continue;
        for (int64_t i = first; i < end; i++) {
            float *dw = gradient_at(&c->dw[w], i), sum = c->accumulate_dw ? *dw : 0.0f;
            for (int64_t t = 0; t < job->tiles; t++) {
                sum += job->sums[t * job->length + w * weights + i];
            }
            *dw = sum;
        }
    }
}

static void fold_norm(device *dev, fold_job fold) {
    host_parallel(dev->team, (fold.weights + 255) / 256, fold_sums, &fold);
}

sifr_status cpu_run_norm_backward(device *dev, const device_call *call, sifr_error *error) {
    int64_t weights = device_norm_weights(call), rows = call->x[0].rows;
    (void)error;
    tiles_job job = {.kernel = kernels_of(dev)->norm_backward,
                     .call = call,
                     .total = rows,
                     .step = DEVICE_NORM_ROWS,
                     .sums = call->scratch,
                     .sums_length = 2 * weights};
    run_tiles(dev, job);
    fold_norm(dev, (fold_job){call, call->scratch, run_count(rows), 2 * weights, weights});
    return SIFR_OK;
}

sifr_status cpu_run_norm_sums(device *dev, const device_call *call, sifr_error *error) {
    device_call whole = *call;
    bool layer = call->kernel == DEVICE_LAYER_NORM_SUMS;
    (void)error;
    whole.kernel = layer ? DEVICE_LAYER_NORM_BACKWARD : DEVICE_RMS_NORM_BACKWARD;
    whole.saved[0] = call->x[1];
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->norm_backward,
                               .call = &whole,
                               .total = call->x[0].rows,
                               .step = DEVICE_NORM_ROWS,
                               .sums = call->y.data,
                               .sums_length = call->y.columns});
    return SIFR_OK;
}

sifr_status cpu_run_norm_fold(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *sums = &call->x[0];
    const device_matrix *dw = &call->dw[call->dw[0].dtype == BASE_NONE];
    (void)error;
    fold_norm(dev, (fold_job){call, sums->data, sums->rows, sums->columns, dw->rows * dw->columns});
    return SIFR_OK;
}

sifr_status cpu_run_embedding(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->embedding,
                               .call = call,
                               .total = call->y.rows,
                               .step = ROWS});
    return SIFR_OK;
}

/* Clears rows of words. Columns follow, each through all tokens in order. */
static void clear_words(void *argument, int64_t tile, int thread) {
    const device_matrix *dw = argument;
    int64_t first = tile * ROWS, end = base_min_i64(dw->rows, first + ROWS);
    (void)thread;
    for (int64_t r = first; r < end; r++)
        memset((float *)dw->data + r * dw->stride, 0, (size_t)dw->columns * sizeof(float));
}

sifr_status cpu_run_embedding_backward(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    device_matrix dw = call->dw[0];
    if (!call->accumulate_dw)
        host_parallel(dev->team, (dw.rows + ROWS - 1) / ROWS, clear_words, &dw);
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->embedding_backward,
                               .call = call,
                               .total = call->dw[0].columns,
                               .step = 64});
    return SIFR_OK;
}

sifr_status cpu_run_update(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    bool copies = call->attributes.update.keeps && call->w[1].dtype != BASE_NONE;
    if (!call->step->update && !copies) return SIFR_OK;
    int number = DEVICE_UPDATE_NUMBER(call->kernel);
    run_tiles(dev, (tiles_job){.kernel = kernels_of(dev)->updates[number],
                               .call = call,
                               .total = call->x[0].columns,
                               .step = ELEMENTS});
    return SIFR_OK;
}
