#include "device/cuda/cuda_dispatch.h"

#include "device/cuda/vector/cuda_clear.h"

/* prepare (may be NULL) sets scratch_bytes, by shapes and types alone. */
typedef struct cuda_row {
    sifr_status (*prepare)(device *dev, device_call *call, sifr_error *error);
    sifr_status (*run)(device *dev, const device_call *call, sifr_error *error);
} cuda_row;

static const cuda_row rows[DEVICE_KERNELS] = {
    [DEVICE_CLEAR] = {NULL, cuda_run_clear},
};

bool cuda_has(device_kernel kernel) {
    return rows[kernel].run != NULL;
}

sifr_status cuda_prepare(device *dev, device_call *call, sifr_error *error) {
    const cuda_row *row = &rows[call->kernel];
    if (!row->run)
        return base_fail(error, SIFR_USAGE, "kernel %s: not built for GPUs yet",
                         device_kernel_name(call->kernel));
    return row->prepare ? row->prepare(dev, call, error) : SIFR_OK;
}

sifr_status cuda_run(device *dev, const device_call *call, sifr_error *error) {
    return rows[call->kernel].run(dev, call, error);
}
