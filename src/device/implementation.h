/* What a device runs for each kernel: the columns cpu and gpu of kernels.def. */
#ifndef DEVICE_IMPLEMENTATION_H
#define DEVICE_IMPLEMENTATION_H

#include "device/backend.h"

/* prepare (may be NULL) sets scratch_bytes and prepared, by shapes and types alone. */
typedef struct device_implementation {
    sifr_status (*prepare)(device *dev, device_call *call, sifr_error *error);
    sifr_status (*run)(device *dev, const device_call *call, sifr_error *error);
} device_implementation;

/* A column as an initialiser. */
#define DEVICE_IMPLEMENTATIONS(...)                                                                \
    { __VA_ARGS__ }
#define RUN(run) NULL, run
#define PREPARE_RUN(prepare, run) prepare, run
#define NONE NULL, NULL

#endif
