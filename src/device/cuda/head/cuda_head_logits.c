#include "device/cuda/head/cuda_head_logits.h"

#include "base/checked.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/head/head_arguments.h"
#include "device/cuda/product/cuda_gemm.h"

static cuda_kernel shape_kernel(base_dtype dtype) {
    if (dtype == BASE_FP32) return cuda_kernel_head_shape_fp32;
    return dtype == BASE_BF16 ? cuda_kernel_head_shape_bf16 : cuda_kernel_head_shape_fp16;
}

static cuda_gemm product_of(const device_call *call) {
    return (cuda_gemm){.form = CUDA_GEMM_NT,
                       .a = call->x[0],
                       .b = call->w[0],
                       .c = call->y,
                       .bias = call->w[1],
                       .workspace = call->scratch};
}

sifr_status cuda_prepare_head_logits(device *dev, device_call *call, sifr_error *error) {
    cuda_gemm product = product_of(call);
    call->scratch_bytes = cuda_gemm_scratch_bytes(&product);
    return cuda_gemm_prepare(dev, &product, error);
}

sifr_status cuda_run_head_logits(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *y = &call->y;
    float scale = call->attributes.head.scale, softcap = call->attributes.head.softcap;
    cuda_gemm product = product_of(call);
    BASE_TRY(cuda_gemm_run(dev, &product, error));
    if (!(scale < 0 || scale > 0)) scale = 1.0f;
    if (!(softcap > 0 || scale < 1 || scale > 1)) return SIFR_OK;
    head_shape_arguments arguments = {.logits = y->data,
                                      .columns = y->columns,
                                      .stride = y->stride,
                                      .scale = scale,
                                      .softcap = softcap};
    int64_t pieces = (y->columns + HEAD_COLUMNS - 1) / HEAD_COLUMNS;
    cuda_launch launch = {.kernel = shape_kernel(y->dtype),
                          .blocks = {(y->rows * pieces), 1, 1},
                          .threads = HEAD_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}
