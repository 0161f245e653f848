/* The CPU's functions for each kernel: prepare and run. */
#include "device/cpu/attention/attention.h"
#include "device/cpu/cpu.h"
#include "device/cpu/head/head_logits.h"
#include "device/cpu/head/head_loss.h"
#include "device/cpu/head/head_targets.h"
#include "device/cpu/product/linear.h"
#include "device/cpu/vector/vectors.h"

static const cpu_row rows[DEVICE_KERNELS] = {
    [DEVICE_EMBEDDING] = {cpu_prepare_embedding, cpu_run_embedding},
    [DEVICE_EMBEDDING_BACKWARD] = {cpu_prepare_embedding, cpu_run_embedding_backward},
    [DEVICE_ROWS] = {cpu_prepare_rows, cpu_run_rows},
    [DEVICE_ROWS_BACKWARD] = {cpu_prepare_rows, cpu_run_rows},
    [DEVICE_LINEAR] = {cpu_prepare_linear, cpu_run_linear},
    [DEVICE_LINEAR_BACKWARD] = {cpu_prepare_linear_backward, cpu_run_linear_backward},
    [DEVICE_LAYER_NORM] = {cpu_prepare_norm, cpu_run_norm},
    [DEVICE_LAYER_NORM_BACKWARD] = {cpu_prepare_norm, cpu_run_norm_backward},
    [DEVICE_RMS_NORM] = {cpu_prepare_norm, cpu_run_norm},
    [DEVICE_RMS_NORM_BACKWARD] = {cpu_prepare_norm, cpu_run_norm_backward},
    [DEVICE_ROPE] = {cpu_prepare_rope, cpu_run_rope},
    [DEVICE_ROPE_BACKWARD] = {cpu_prepare_rope, cpu_run_rope},
    [DEVICE_REGROUP] = {cpu_prepare_regroup, cpu_run_regroup},
    [DEVICE_REGROUP_BACKWARD] = {cpu_prepare_regroup, cpu_run_regroup},
    [DEVICE_NEIGHBOURS] = {cpu_prepare_neighbours, cpu_run_neighbours},
    [DEVICE_NEIGHBOURS_BACKWARD] = {cpu_prepare_neighbours, cpu_run_neighbours},
    [DEVICE_ATTENTION] = {cpu_prepare_attention, cpu_run_attention},
    [DEVICE_ATTENTION_BACKWARD] = {cpu_prepare_attention, cpu_run_attention},
    [DEVICE_ATTENTION_CACHED] = {cpu_prepare_attention_cached, cpu_run_attention_cached},
    [DEVICE_GELU] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_GELU_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_TANH] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_TANH_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_RELU] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_RELU_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_SWISH] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_SWISH_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_SILU_GATE] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_SILU_GATE_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_GELU_GATE] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_GELU_GATE_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_ADD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_MULTIPLY] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_MULTIPLY_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_SCALE] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_SCALE_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_DROPOUT] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_DROPOUT_BACKWARD] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_HEAD_LOSS] = {cpu_prepare_head_loss, cpu_run_head_loss},
    [DEVICE_HEAD_LOSS_BACKWARD] = {cpu_prepare_head_loss, cpu_run_head_loss},
    [DEVICE_HEAD_REGRESSION] = {cpu_prepare_head_targets, cpu_run_head_targets},
    [DEVICE_HEAD_REGRESSION_BACKWARD] = {cpu_prepare_head_targets, cpu_run_head_targets},
    [DEVICE_HEAD_MULTILABEL] = {cpu_prepare_head_targets, cpu_run_head_targets},
    [DEVICE_HEAD_MULTILABEL_BACKWARD] = {cpu_prepare_head_targets, cpu_run_head_targets},
    [DEVICE_HEAD_LOGITS] = {cpu_prepare_head_logits, cpu_run_head_logits},
    [DEVICE_ADD_INTO] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_ACCUMULATE] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_CLEAR] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_CONVERT] = {cpu_prepare_elementwise, cpu_run_elementwise},
    [DEVICE_SQUARE_SUMS] = {cpu_prepare_square_sums, cpu_run_square_sums},
    [DEVICE_ADAM] = {cpu_prepare_adam, cpu_run_adam},
};

const cpu_row *cpu_row_of(device_kernel kernel) {
    return &rows[kernel];
}
