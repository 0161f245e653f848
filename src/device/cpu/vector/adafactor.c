#include "device/cpu/vector/adafactor.h"

#include <math.h>

#include "base/checked.h"
#include "device/cpu/cpu.h"
#include "device/cpu/vector/exact_squares.h"
#include "device/cpu/vector/vectors.h"

enum { FOLDED = 256 }; /* columns of a tile */

sifr_status cpu_run_adafactor_begin(device *dev, const device_call *call, sifr_error *error) {
    device_call squares = {.x = {call->w[0]}, .y = call->y};
    if (!call->step->update || !call->attributes.update.scaled) return SIFR_OK;
    return cpu_run_exact_squares(dev, &squares, error);
}

sifr_status cpu_prepare_adafactor(device *dev, device_call *call, sifr_error *error) {
    int64_t bands = adafactor_bands(call), rows = call->x[2].rows, columns = call->x[2].columns;
    (void)dev;
    (void)error;
    call->scratch_bytes =
        bands * (columns + 1) * (int64_t)sizeof(double) + (rows + columns) * (int64_t)sizeof(float);
    return SIFR_OK;
}

typedef struct band_job {
    const device_call *call;
    void (*kernel)(const cpu_part *part);
} band_job;

static void run_band(void *argument, int64_t band, int thread) {
    const band_job *job = argument;
    int64_t first = band * ADAFACTOR_BAND;
    cpu_part part = {job->call, first, base_min_i64(ADAFACTOR_BAND, job->call->x[2].rows - first),
                     NULL};
    (void)thread;
    job->kernel(&part);
}

static void run_bands(device *dev, const device_call *call, void (*kernel)(const cpu_part *part)) {
    band_job job = {call, kernel};
    host_parallel(dev->team, adafactor_bands(call), run_band, &job);
}

/* Moves C of a few columns, and leaves their factors. */
static void fold_columns(void *argument, int64_t tile, int thread) {
    const device_call *c = argument;
    adafactor_scratch scratch = adafactor_scratch_of(c);
    int64_t bands = adafactor_bands(c), columns = c->x[2].columns;
    int64_t first = tile * FOLDED, end = base_min_i64(first + FOLDED, columns);
    float *average = adafactor_averages(c)[1].data;
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        double sum = 0;
        for (int64_t b = 0; b < bands; b++) sum += scratch.columns[b * columns + i];
        float mean = (float)(sum / (double)c->x[2].rows) + c->attributes.update.epsilon;
        average[i] = c->step->beta2 * average[i] + c->step->share * mean;
        scratch.column[i] = 1.0f / sqrtf(average[i]);
    }
}

static void find_row_factors(const device_call *c) {
    adafactor_scratch scratch = adafactor_scratch_of(c);
    const float *average = adafactor_averages(c)->data;
    int64_t rows = c->x[2].rows;
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) sum += (double)average[r];
    double mean = sum / (double)rows;
    for (int64_t r = 0; r < rows; r++) scratch.row[r] = (float)sqrt(mean / (double)average[r]);
}

/* 1 / max(1, RMS(u) / clip). */
static float clipped(const device_call *c) {
    adafactor_scratch scratch = adafactor_scratch_of(c);
    double sum = 0, count = (double)c->x[2].rows * (double)c->x[2].columns;
    for (int64_t b = 0; b < adafactor_bands(c); b++) sum += scratch.bands[b];
    return (float)(1 / fmax(1, sqrt(sum / count) / (double)c->attributes.update.clip));
}

/* The rate of the weight, from the sums of its parts where it is scaled by its RMS. */
static float rate_of(const device_call *c) {
    float rate = c->step->learning_rate * c->attributes.update.lr_scale;
    if (!c->attributes.update.scaled) return rate;
    double count = (double)c->x[2].rows * (double)c->x[2].columns;
    double size =
        fmax((double)c->attributes.update.least_scale, sqrt(exact_total(&c->x[1], 0) / count));
    return (float)((double)rate * size);
}

sifr_status cpu_run_adafactor(device *dev, const device_call *call, sifr_error *error) {
    const cpu_kernels *kernels = cpu_of(dev)->set->vectors;
    device_call own = *call;
    if (call->step->update) {
        run_bands(dev, call, kernels->adafactor_sums);
        host_parallel(dev->team, (call->x[2].columns + FOLDED - 1) / FOLDED, fold_columns,
                      (void *)(uintptr_t)call);
        find_row_factors(call);
        run_bands(dev, call, kernels->adafactor_squares);
        own.attributes.update.trust = clipped(call);
        own.attributes.update.own_rate = rate_of(call);
    }
    return cpu_run_update(dev, &own, error);
}
