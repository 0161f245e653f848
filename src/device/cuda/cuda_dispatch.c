#include "device/cuda/cuda_dispatch.h"

#include "device/cuda/attention/cuda_attention.h"
#include "device/cuda/head/cuda_head_logits.h"
#include "device/cuda/head/cuda_head_loss.h"
#include "device/cuda/head/cuda_head_preference.h"
#include "device/cuda/head/cuda_head_targets.h"
#include "device/cuda/product/cuda_linear.h"
#include "device/cuda/vector/cuda_clear.h"
#include "device/cuda/vector/cuda_dequantise.h"
#include "device/cuda/vector/cuda_elements.h"
#include "device/cuda/vector/cuda_embedding.h"
#include "device/cuda/vector/cuda_exact_squares.h"
#include "device/cuda/vector/cuda_magnitude.h"
#include "device/cuda/vector/cuda_moves.h"
#include "device/cuda/vector/cuda_norm.h"
#include "device/cuda/vector/cuda_optimizer.h"
#include "device/cuda/vector/cuda_rope.h"
#include "device/implementation.h"

static const device_implementations rows[DEVICE_KERNELS] = {
#define DEVICE_KERNEL(NAME, name, check, access, cpu, gpu)                                         \
    [DEVICE_##NAME] = DEVICE_IMPLEMENTATIONS gpu,
#include "device/kernels.def"
};

bool cuda_has(device_kernel kernel) {
    return rows[kernel].each[0].run != NULL;
}

sifr_status cuda_prepare(device *dev, device_call *call, sifr_error *error) {
    if (!cuda_has(call->kernel))
        return base_fail(error, SIFR_USAGE,
                         "kernel %s: not built for GPUs yet; --device cpu has it",
                         device_kernel_name(call->kernel));
    return device_prepare_first(&rows[call->kernel], dev, call, error);
}

sifr_status cuda_run(device *dev, const device_call *call, sifr_error *error) {
    return rows[call->kernel].each[call->implementation].run(dev, call, error);
}
