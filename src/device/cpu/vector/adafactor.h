/* Adafactor on the CPU: its passes over a whole matrix before the update of elements. */
#ifndef CPU_ADAFACTOR_H
#define CPU_ADAFACTOR_H

#include "device/device.h"

/* Rows of a band. Sums of columns are made band by band, and added in the order of bands. */
enum { ADAFACTOR_BAND = 128 };

/* A call's scratch. */
typedef struct adafactor_scratch {
    double *columns;     /* bands x columns: sums of squares of the gradient */
    double *bands;       /* of each: the sum of squares of u, before it is clipped */
    float *row, *column; /* 1 / sqrt(R / mean(R)) and 1 / sqrt(C): u is g times both */
} adafactor_scratch;

static inline int64_t adafactor_bands(const device_call *call) {
    return (call->x[2].rows + ADAFACTOR_BAND - 1) / ADAFACTOR_BAND;
}

static inline adafactor_scratch adafactor_scratch_of(const device_call *call) {
    int64_t bands = adafactor_bands(call), columns = call->x[2].columns;
    adafactor_scratch scratch = {.columns = call->scratch};
    scratch.bands = scratch.columns + bands * columns;
    scratch.row = (float *)(scratch.bands + bands);
    scratch.column = scratch.row + call->x[2].rows;
    return scratch;
}

/* R, and C behind it. */
static inline const device_matrix *adafactor_averages(const device_call *call) {
    return &call->saved[call->kernel == DEVICE_ADAFACTOR_MOMENT];
}

sifr_status cpu_run_adafactor_begin(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_prepare_adafactor(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_run_adafactor(device *dev, const device_call *call, sifr_error *error);

#endif
