/* The CPU's functions for each kernel: prepare and run. */
#include "device/cpu/attention/attention.h"
#include "device/cpu/cpu.h"
#include "device/cpu/head/head_logits.h"
#include "device/cpu/head/head_loss.h"
#include "device/cpu/head/head_preference.h"
#include "device/cpu/head/head_targets.h"
#include "device/cpu/product/linear.h"
#include "device/cpu/product/orthogonalise.h"
#include "device/cpu/vector/adafactor.h"
#include "device/cpu/vector/dequantise.h"
#include "device/cpu/vector/exact_squares.h"
#include "device/cpu/vector/lamb.h"
#include "device/cpu/vector/magnitude.h"
#include "device/cpu/vector/vectors.h"

static const cpu_row rows[DEVICE_KERNELS] = {
    [DEVICE_EMBEDDING] = {NULL, cpu_run_embedding},
    [DEVICE_EMBEDDING_BACKWARD] = {NULL, cpu_run_embedding_backward},
    [DEVICE_ROWS] = {NULL, cpu_run_rows},
    [DEVICE_ROWS_BACKWARD] = {NULL, cpu_run_rows},
    [DEVICE_LINEAR] = {cpu_prepare_linear, cpu_run_linear},
    [DEVICE_LINEAR_BACKWARD] = {cpu_prepare_linear_backward, cpu_run_linear_backward},
    [DEVICE_LAYER_NORM] = {NULL, cpu_run_norm},
    [DEVICE_LAYER_NORM_BACKWARD] = {cpu_prepare_norm_backward, cpu_run_norm_backward},
    [DEVICE_RMS_NORM] = {NULL, cpu_run_norm},
    [DEVICE_RMS_NORM_BACKWARD] = {cpu_prepare_norm_backward, cpu_run_norm_backward},
    [DEVICE_ROPE] = {NULL, cpu_run_rope},
    [DEVICE_ROPE_BACKWARD] = {NULL, cpu_run_rope},
    [DEVICE_REGROUP] = {NULL, cpu_run_regroup},
    [DEVICE_REGROUP_BACKWARD] = {NULL, cpu_run_regroup},
    [DEVICE_NEIGHBOURS] = {NULL, cpu_run_neighbours},
    [DEVICE_NEIGHBOURS_BACKWARD] = {NULL, cpu_run_neighbours},
    [DEVICE_ATTENTION] = {cpu_prepare_attention, cpu_run_attention},
    [DEVICE_ATTENTION_BACKWARD] = {cpu_prepare_attention, cpu_run_attention},
    [DEVICE_ATTENTION_CACHED] = {cpu_prepare_attention_cached, cpu_run_attention_cached},
    [DEVICE_GELU] = {NULL, cpu_run_elementwise},
    [DEVICE_GELU_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_TANH] = {NULL, cpu_run_elementwise},
    [DEVICE_TANH_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_RELU] = {NULL, cpu_run_elementwise},
    [DEVICE_RELU_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_SWISH] = {NULL, cpu_run_elementwise},
    [DEVICE_SWISH_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_SILU_GATE] = {NULL, cpu_run_elementwise},
    [DEVICE_SILU_GATE_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_GELU_GATE] = {NULL, cpu_run_elementwise},
    [DEVICE_GELU_GATE_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_ADD] = {NULL, cpu_run_elementwise},
    [DEVICE_MULTIPLY] = {NULL, cpu_run_elementwise},
    [DEVICE_MULTIPLY_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_SCALE] = {NULL, cpu_run_elementwise},
    [DEVICE_SCALE_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_DROPOUT] = {NULL, cpu_run_elementwise},
    [DEVICE_DROPOUT_BACKWARD] = {NULL, cpu_run_elementwise},
    [DEVICE_HEAD_LOSS] = {cpu_prepare_head_loss, cpu_run_head_loss},
    [DEVICE_HEAD_LOSS_BACKWARD] = {cpu_prepare_head_loss, cpu_run_head_loss},
    [DEVICE_HEAD_REGRESSION] = {cpu_prepare_head_targets, cpu_run_head_targets},
    [DEVICE_HEAD_REGRESSION_BACKWARD] = {cpu_prepare_head_targets, cpu_run_head_targets},
    [DEVICE_HEAD_MULTILABEL] = {cpu_prepare_head_targets, cpu_run_head_targets},
    [DEVICE_HEAD_MULTILABEL_BACKWARD] = {cpu_prepare_head_targets, cpu_run_head_targets},
    [DEVICE_HEAD_PREFERENCE] = {cpu_prepare_head_loss, cpu_run_head_preference},
    [DEVICE_HEAD_PREFERENCE_BACKWARD] = {cpu_prepare_head_loss, cpu_run_head_preference},
    [DEVICE_HEAD_DISTIL_BACKWARD] = {cpu_prepare_head_loss, cpu_run_head_loss},
    [DEVICE_HEAD_LOGITS] = {cpu_prepare_head_logits, cpu_run_head_logits},
    [DEVICE_ADD_INTO] = {NULL, cpu_run_elementwise},
    [DEVICE_ACCUMULATE] = {NULL, cpu_run_elementwise},
    [DEVICE_CLEAR] = {NULL, cpu_run_elementwise},
    [DEVICE_CONVERT] = {NULL, cpu_run_elementwise},
    [DEVICE_EXACT_SQUARES] = {NULL, cpu_run_exact_squares},
    [DEVICE_ADAM] = {NULL, cpu_run_update},
    [DEVICE_AMSGRAD] = {NULL, cpu_run_update},
    [DEVICE_SGD] = {NULL, cpu_run_update},
    [DEVICE_MOMENTUM] = {NULL, cpu_run_update},
    [DEVICE_ADAGRAD] = {NULL, cpu_run_update},
    [DEVICE_LION] = {NULL, cpu_run_update},
    [DEVICE_SCHEDULE_FREE] = {NULL, cpu_run_update},
    [DEVICE_ADAM_8BIT] = {NULL, cpu_run_update},
    [DEVICE_MAGNITUDE] = {NULL, cpu_run_magnitude},
    [DEVICE_MAGNITUDE_BACKWARD] = {NULL, cpu_run_magnitude_backward},
    [DEVICE_DEQUANTISE] = {NULL, cpu_run_dequantise},
    [DEVICE_LAMB_BEGIN] = {NULL, cpu_run_lamb_begin},
    [DEVICE_LAMB] = {NULL, cpu_run_lamb},
    [DEVICE_MUON_BEGIN] = {NULL, cpu_run_update},
    [DEVICE_MUON] = {NULL, cpu_run_update},
    [DEVICE_ORTHOGONALISE] = {cpu_prepare_orthogonalise, cpu_run_orthogonalise},
    [DEVICE_ADAFACTOR_BEGIN] = {NULL, cpu_run_adafactor_begin},
    [DEVICE_ADAFACTOR] = {cpu_prepare_adafactor, cpu_run_adafactor},
    [DEVICE_ADAFACTOR_MOMENT] = {cpu_prepare_adafactor, cpu_run_adafactor},
};

const cpu_row *cpu_row_of(device_kernel kernel) {
    return &rows[kernel];
}
