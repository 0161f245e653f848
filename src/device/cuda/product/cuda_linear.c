#include "device/cuda/product/cuda_linear.h"

#include "base/checked.h"
#include "device/cuda/product/cuda_column_sums.h"
#include "device/cuda/product/cuda_gemm.h"

static cuda_gemm outputs_of(const device_call *call) {
    return (cuda_gemm){.form = call->attributes.linear.transposed ? CUDA_GEMM_NN : CUDA_GEMM_NT,
                       .a = call->x[0],
                       .b = call->w[0],
                       .c = call->y,
                       .bias = call->w[1],
                       .whole = call->attributes.linear.whole,
                       .workspace = call->scratch};
}

sifr_status cuda_prepare_linear(device *dev, device_call *call, sifr_error *error) {
    cuda_gemm y = outputs_of(call);
    call->scratch_bytes = cuda_gemm_scratch_bytes(&y);
    return cuda_gemm_prepare(dev, &y, error);
}

sifr_status cuda_run_linear(device *dev, const device_call *call, sifr_error *error) {
    cuda_gemm y = outputs_of(call);
    return cuda_gemm_run(dev, &y, error);
}

static cuda_gemm inputs_of(const device_call *call) {
    return (cuda_gemm){.form = call->attributes.linear.transposed ? CUDA_GEMM_NT : CUDA_GEMM_NN,
                       .a = call->dy,
                       .b = call->w[0],
                       .c = call->dx[0],
                       .accumulate = call->accumulate[0],
                       .whole = call->attributes.linear.whole,
                       .workspace = call->scratch};
}

static cuda_gemm weights_of(const device *dev, const device_call *call) {
    bool transposed = call->attributes.linear.transposed;
    return (cuda_gemm){.form = CUDA_GEMM_TN,
                       .a = transposed ? call->x[0] : call->dy,
                       .b = transposed ? call->dy : call->x[0],
                       .c = call->dw[0],
                       .accumulate = call->accumulate_dw,
                       .chunk = device_token_chunk(dev),
                       .parts = call->scratch,
                       .workspace = call->scratch};
}

/* All parts use the same scratch, one after the other. */
sifr_status cuda_prepare_linear_backward(device *dev, device_call *call, sifr_error *error) {
    int64_t bytes = 0;
    if (call->dw[0].dtype != BASE_NONE) {
        cuda_gemm weights = weights_of(dev, call);
        bytes = cuda_gemm_scratch_bytes(&weights);
        BASE_TRY(cuda_gemm_prepare(dev, &weights, error));
    }
    if (call->dx[0].dtype != BASE_NONE) {
        cuda_gemm inputs = inputs_of(call);
        bytes = base_max_i64(bytes, cuda_gemm_scratch_bytes(&inputs));
        BASE_TRY(cuda_gemm_prepare(dev, &inputs, error));
    }
    if (call->dw[1].dtype != BASE_NONE)
        bytes = base_max_i64(bytes, cuda_column_sums_bytes(call->dy.rows, call->dy.columns));
    call->scratch_bytes = bytes;
    return SIFR_OK;
}

sifr_status cuda_run_linear_backward(device *dev, const device_call *call, sifr_error *error) {
    if (call->dw[0].dtype != BASE_NONE) {
        cuda_gemm weights = weights_of(dev, call);
        BASE_TRY(cuda_gemm_run(dev, &weights, error));
    }
    if (call->dw[1].dtype != BASE_NONE)
        BASE_TRY(cuda_column_sums(dev, &call->dy, device_token_chunk(dev), call->scratch,
                                  call->dw[1].data, call->accumulate_dw, error));
    if (call->dx[0].dtype == BASE_NONE) return SIFR_OK;
    cuda_gemm inputs = inputs_of(call);
    return cuda_gemm_run(dev, &inputs, error);
}
