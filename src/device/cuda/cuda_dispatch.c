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

/* prepare (may be NULL) sets scratch_bytes, by shapes and types alone. */
typedef struct cuda_row {
    sifr_status (*prepare)(device *dev, device_call *call, sifr_error *error);
    sifr_status (*run)(device *dev, const device_call *call, sifr_error *error);
} cuda_row;

static const cuda_row rows[DEVICE_KERNELS] = {
    [DEVICE_GELU] = {NULL, cuda_run_elementwise},
    [DEVICE_GELU_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_TANH] = {NULL, cuda_run_elementwise},
    [DEVICE_TANH_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_RELU] = {NULL, cuda_run_elementwise},
    [DEVICE_RELU_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_SWISH] = {NULL, cuda_run_elementwise},
    [DEVICE_SWISH_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_SILU_GATE] = {NULL, cuda_run_elementwise},
    [DEVICE_SILU_GATE_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_GELU_GATE] = {NULL, cuda_run_elementwise},
    [DEVICE_GELU_GATE_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_ADD] = {NULL, cuda_run_elementwise},
    [DEVICE_MULTIPLY] = {NULL, cuda_run_elementwise},
    [DEVICE_MULTIPLY_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_SCALE] = {NULL, cuda_run_elementwise},
    [DEVICE_SCALE_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_DROPOUT] = {NULL, cuda_run_elementwise},
    [DEVICE_DROPOUT_BACKWARD] = {NULL, cuda_run_elementwise},
    [DEVICE_ADD_INTO] = {NULL, cuda_run_elementwise},
    [DEVICE_ACCUMULATE] = {NULL, cuda_run_elementwise},
    [DEVICE_ATTENTION] = {cuda_prepare_attention, cuda_run_attention},
    [DEVICE_ATTENTION_BACKWARD] = {cuda_prepare_attention, cuda_run_attention},
    [DEVICE_EMBEDDING] = {NULL, cuda_run_embedding},
    [DEVICE_EMBEDDING_BACKWARD] = {cuda_prepare_embedding_backward, cuda_run_embedding_backward},
    [DEVICE_ROWS] = {NULL, cuda_run_rows},
    [DEVICE_ROWS_BACKWARD] = {NULL, cuda_run_rows_backward},
    [DEVICE_LINEAR] = {cuda_prepare_linear, cuda_run_linear},
    [DEVICE_LINEAR_BACKWARD] = {cuda_prepare_linear_backward, cuda_run_linear_backward},
    [DEVICE_LAYER_NORM] = {NULL, cuda_run_norm},
    [DEVICE_LAYER_NORM_BACKWARD] = {cuda_prepare_norm_backward, cuda_run_norm_backward},
    [DEVICE_RMS_NORM] = {NULL, cuda_run_norm},
    [DEVICE_RMS_NORM_BACKWARD] = {cuda_prepare_norm_backward, cuda_run_norm_backward},
    [DEVICE_ROPE] = {NULL, cuda_run_rope},
    [DEVICE_ROPE_BACKWARD] = {NULL, cuda_run_rope},
    [DEVICE_REGROUP] = {NULL, cuda_run_regroup},
    [DEVICE_REGROUP_BACKWARD] = {NULL, cuda_run_regroup},
    [DEVICE_NEIGHBOURS] = {NULL, cuda_run_neighbours},
    [DEVICE_NEIGHBOURS_BACKWARD] = {NULL, cuda_run_neighbours},
    [DEVICE_HEAD_LOSS] = {cuda_prepare_head_loss, cuda_run_head_loss},
    [DEVICE_HEAD_LOSS_BACKWARD] = {cuda_prepare_head_loss, cuda_run_head_loss},
    [DEVICE_HEAD_PREFERENCE] = {cuda_prepare_head_loss, cuda_run_head_preference},
    [DEVICE_HEAD_PREFERENCE_BACKWARD] = {cuda_prepare_head_loss, cuda_run_head_preference},
    [DEVICE_HEAD_DISTIL_BACKWARD] = {cuda_prepare_head_loss, cuda_run_head_loss},
    [DEVICE_HEAD_REGRESSION] = {cuda_prepare_head_targets, cuda_run_head_targets},
    [DEVICE_HEAD_REGRESSION_BACKWARD] = {cuda_prepare_head_targets, cuda_run_head_targets},
    [DEVICE_HEAD_MULTILABEL] = {cuda_prepare_head_targets, cuda_run_head_targets},
    [DEVICE_HEAD_MULTILABEL_BACKWARD] = {cuda_prepare_head_targets, cuda_run_head_targets},
    [DEVICE_HEAD_LOGITS] = {cuda_prepare_head_logits, cuda_run_head_logits},
    [DEVICE_CLEAR] = {NULL, cuda_run_clear},
    [DEVICE_CONVERT] = {NULL, cuda_run_elementwise},
    [DEVICE_EXACT_SQUARES] = {NULL, cuda_run_exact_squares},
    [DEVICE_ADAM] = {NULL, cuda_run_update},
    [DEVICE_AMSGRAD] = {NULL, cuda_run_update},
    [DEVICE_SGD] = {NULL, cuda_run_update},
    [DEVICE_MOMENTUM] = {NULL, cuda_run_update},
    [DEVICE_ADAGRAD] = {NULL, cuda_run_update},
    [DEVICE_LION] = {NULL, cuda_run_update},
    [DEVICE_SCHEDULE_FREE] = {NULL, cuda_run_update},
    [DEVICE_ADAM_8BIT] = {NULL, cuda_run_update},
    [DEVICE_LAMB_BEGIN] = {NULL, cuda_run_update},
    [DEVICE_LAMB] = {cuda_prepare_lamb, cuda_run_lamb},
    [DEVICE_MAGNITUDE] = {NULL, cuda_run_magnitude},
    [DEVICE_MAGNITUDE_BACKWARD] = {NULL, cuda_run_magnitude_backward},
    [DEVICE_DEQUANTISE] = {NULL, cuda_run_dequantise},
};

bool cuda_has(device_kernel kernel) {
    return rows[kernel].run != NULL;
}

sifr_status cuda_prepare(device *dev, device_call *call, sifr_error *error) {
    const cuda_row *row = &rows[call->kernel];
    if (!row->run)
        return base_fail(error, SIFR_USAGE,
                         "kernel %s: not built for GPUs yet; --device cpu has it",
                         device_kernel_name(call->kernel));
    return row->prepare ? row->prepare(dev, call, error) : SIFR_OK;
}

sifr_status cuda_run(device *dev, const device_call *call, sifr_error *error) {
    return rows[call->kernel].run(dev, call, error);
}
