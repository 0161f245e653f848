/* Products and attention of models, with operands in the memory of a GPU: what is repeated and
 * timed there. */
#ifndef SUPPORT_CUDA_GPU_WORK_H
#define SUPPORT_CUDA_GPU_WORK_H

#include "device/device.h"

typedef struct gpu_shape {
    const char *name;
    int64_t rows, in, out;           /* of a product */
    int32_t heads, kv_heads, widths; /* of attention, with `rows` as sequences of `length` */
    int64_t length;
} gpu_shape;

/* Shapes of models: those of GPUs, or small ones for kernels over the shim. */
const gpu_shape *gpu_shapes(bool small, size_t *count);

typedef enum gpu_part { GPU_FORWARD, GPU_BACKWARD, GPU_PARTS } gpu_part;

typedef struct gpu_work {
    device *dev; /* borrowed */
    device_call calls[GPU_PARTS];
    char *block; /* all operands; results lie together */
    int64_t bytes, results, result_bytes;
    double operations[GPU_PARTS];
} gpu_work;

/* Takes memory and fills it with numbers of `seed`. Close it whatever comes back. */
sifr_status gpu_work_open(gpu_work *work, device *dev, const gpu_shape *shape, base_dtype type,
                          uint32_t seed, sifr_error *error) SIFR_MUST_CHECK;
void gpu_work_close(gpu_work *work);

/* Enqueues it. */
sifr_status gpu_work_run(gpu_work *work, gpu_part part, sifr_error *error) SIFR_MUST_CHECK;

/* Clears the results on the device. */
sifr_status gpu_work_clear(gpu_work *work, sifr_error *error) SIFR_MUST_CHECK;

/* Waits for all that is enqueued; to: result_bytes bytes of the host, or NULL. */
sifr_status gpu_work_finish(gpu_work *work, void *to, sifr_error *error) SIFR_MUST_CHECK;

/* Seconds of one run: the fastest of three turns, each of so many runs that they take `enough`
 * seconds. */
sifr_status gpu_work_time(gpu_work *work, gpu_part part, double enough, double *seconds,
                          sifr_error *error) SIFR_MUST_CHECK;

#endif
