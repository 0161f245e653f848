/* What a device runs for each kernel: the columns cpu and gpu of kernels.def. */
#ifndef DEVICE_IMPLEMENTATION_H
#define DEVICE_IMPLEMENTATION_H

#include "device/backend.h"

typedef struct device_implementation {
    bool (*takes)(const device *dev, const device_call *call); /* NULL: all calls */
    /* Sets scratch_bytes and prepared, by shapes and types alone; NULL: it needs neither. */
    sifr_status (*prepare)(device *dev, device_call *call, sifr_error *error);
    sifr_status (*run)(device *dev, const device_call *call, sifr_error *error); /* NULL: none */
} device_implementation;

/* The implementations of a kernel, in the order in which they are tried. */
enum { DEVICE_MOST_IMPLEMENTATIONS = 4 };
typedef struct device_implementations {
    device_implementation each[DEVICE_MOST_IMPLEMENTATIONS];
} device_implementations;

/* A column as an initialiser. */
#define DEVICE_IMPLEMENTATIONS(...)                                                                \
    {                                                                                              \
        { __VA_ARGS__ }                                                                            \
    }
#define WHERE(takes, prepare, run)                                                                 \
    { takes, prepare, run }
#define PREPARE_RUN(prepare, run)                                                                  \
    { NULL, prepare, run }
#define RUN(run)                                                                                   \
    { NULL, NULL, run }
#define NONE                                                                                       \
    { NULL, NULL, NULL }

/* Prepares a call by the first implementation that takes it, which call->implementation then
 * tells. There is one: the last implementation of a kernel takes all calls. */
static inline sifr_status device_prepare_first(const device_implementations *row, device *dev,
                                               device_call *call, sifr_error *error) {
    const device_implementation *first = row->each;
    while (first->takes && !first->takes(dev, call)) first++;
    call->implementation = (int32_t)(first - row->each);
    return first->prepare ? first->prepare(dev, call, error) : SIFR_OK;
}

#endif
