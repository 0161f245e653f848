#include "device/call.h"

base_dtype device_dtype_of(sifr_precision precision) {
    static const base_dtype dtypes[] = {
        [SIFR_FP32] = BASE_FP32, [SIFR_BF16] = BASE_BF16, [SIFR_FP16] = BASE_FP16};
    return dtypes[precision];
}

const char *device_kernel_name(device_kernel kernel) {
    static const char *const names[DEVICE_KERNELS] = {
        [DEVICE_EMBEDDING] = "embedding",
        [DEVICE_EMBEDDING_BACKWARD] = "embedding_backward",
        [DEVICE_ROWS] = "rows",
        [DEVICE_ROWS_BACKWARD] = "rows_backward",
        [DEVICE_LINEAR] = "linear",
        [DEVICE_LINEAR_BACKWARD] = "linear_backward",
        [DEVICE_LAYER_NORM] = "layer_norm",
        [DEVICE_LAYER_NORM_BACKWARD] = "layer_norm_backward",
        [DEVICE_RMS_NORM] = "rms_norm",
        [DEVICE_RMS_NORM_BACKWARD] = "rms_norm_backward",
        [DEVICE_ROPE] = "rope",
        [DEVICE_ROPE_BACKWARD] = "rope_backward",
        [DEVICE_REGROUP] = "regroup",
        [DEVICE_REGROUP_BACKWARD] = "regroup_backward",
        [DEVICE_NEIGHBOURS] = "neighbours",
        [DEVICE_NEIGHBOURS_BACKWARD] = "neighbours_backward",
        [DEVICE_ATTENTION] = "attention",
        [DEVICE_ATTENTION_BACKWARD] = "attention_backward",
        [DEVICE_ATTENTION_CACHED] = "attention_cached",
        [DEVICE_GELU] = "gelu",
        [DEVICE_GELU_BACKWARD] = "gelu_backward",
        [DEVICE_TANH] = "tanh",
        [DEVICE_TANH_BACKWARD] = "tanh_backward",
        [DEVICE_RELU] = "relu",
        [DEVICE_RELU_BACKWARD] = "relu_backward",
        [DEVICE_SWISH] = "swish",
        [DEVICE_SWISH_BACKWARD] = "swish_backward",
        [DEVICE_SILU_GATE] = "silu_gate",
        [DEVICE_SILU_GATE_BACKWARD] = "silu_gate_backward",
        [DEVICE_GELU_GATE] = "gelu_gate",
        [DEVICE_GELU_GATE_BACKWARD] = "gelu_gate_backward",
        [DEVICE_ADD] = "add",
        [DEVICE_MULTIPLY] = "multiply",
        [DEVICE_MULTIPLY_BACKWARD] = "multiply_backward",
        [DEVICE_SCALE] = "scale",
        [DEVICE_SCALE_BACKWARD] = "scale_backward",
        [DEVICE_DROPOUT] = "dropout",
        [DEVICE_DROPOUT_BACKWARD] = "dropout_backward",
        [DEVICE_HEAD_LOSS] = "head_loss",
        [DEVICE_HEAD_LOSS_BACKWARD] = "head_loss_backward",
        [DEVICE_HEAD_REGRESSION] = "head_regression",
        [DEVICE_HEAD_REGRESSION_BACKWARD] = "head_regression_backward",
        [DEVICE_HEAD_MULTILABEL] = "head_multilabel",
        [DEVICE_HEAD_MULTILABEL_BACKWARD] = "head_multilabel_backward",
        [DEVICE_HEAD_PREFERENCE] = "head_preference",
        [DEVICE_HEAD_PREFERENCE_BACKWARD] = "head_preference_backward",
        [DEVICE_HEAD_DISTIL_BACKWARD] = "head_distil_backward",
        [DEVICE_HEAD_LOGITS] = "head_logits",
        [DEVICE_ADD_INTO] = "add_into",
        [DEVICE_ACCUMULATE] = "accumulate",
        [DEVICE_CLEAR] = "clear",
        [DEVICE_EXACT_SQUARES] = "exact_squares",
        [DEVICE_ADAM] = "adam",
        [DEVICE_AMSGRAD] = "amsgrad",
        [DEVICE_SGD] = "sgd",
        [DEVICE_MOMENTUM] = "momentum",
        [DEVICE_ADAGRAD] = "adagrad",
        [DEVICE_LION] = "lion",
        [DEVICE_SCHEDULE_FREE] = "schedule_free",
        [DEVICE_ADAM_8BIT] = "adam_8bit",
        [DEVICE_LAMB_BEGIN] = "lamb_begin",
        [DEVICE_LAMB] = "lamb",
        [DEVICE_MUON_BEGIN] = "muon_begin",
        [DEVICE_MUON] = "muon",
        [DEVICE_ADAFACTOR_BEGIN] = "adafactor_begin",
        [DEVICE_ADAFACTOR] = "adafactor",
        [DEVICE_ADAFACTOR_MOMENT] = "adafactor_moment",
        [DEVICE_CONVERT] = "convert",
        [DEVICE_MAGNITUDE] = "magnitude",
        [DEVICE_MAGNITUDE_BACKWARD] = "magnitude_backward",
        [DEVICE_DEQUANTISE] = "dequantise",
        [DEVICE_ORTHOGONALISE] = "orthogonalise",
    };
    return names[kernel];
}

bool device_is_update(device_kernel kernel) {
    int number = DEVICE_UPDATE_NUMBER(kernel);
    return number >= 0 && number < DEVICE_UPDATES;
}

int device_update_states(device_kernel kernel) {
    static const int states[DEVICE_UPDATES] = {
        [DEVICE_UPDATE_NUMBER(DEVICE_ADAM)] = 2,
        [DEVICE_UPDATE_NUMBER(DEVICE_AMSGRAD)] = 3,
        [DEVICE_UPDATE_NUMBER(DEVICE_SGD)] = 0,
        [DEVICE_UPDATE_NUMBER(DEVICE_MOMENTUM)] = 1,
        [DEVICE_UPDATE_NUMBER(DEVICE_ADAGRAD)] = 1,
        [DEVICE_UPDATE_NUMBER(DEVICE_LION)] = 1,
        [DEVICE_UPDATE_NUMBER(DEVICE_SCHEDULE_FREE)] = 2,
        [DEVICE_UPDATE_NUMBER(DEVICE_ADAM_8BIT)] = 4,
        [DEVICE_UPDATE_NUMBER(DEVICE_LAMB_BEGIN)] = 2,
        [DEVICE_UPDATE_NUMBER(DEVICE_LAMB)] = 2,
        [DEVICE_UPDATE_NUMBER(DEVICE_MUON_BEGIN)] = 1,
        [DEVICE_UPDATE_NUMBER(DEVICE_MUON)] = 0,
        [DEVICE_UPDATE_NUMBER(DEVICE_ADAFACTOR_BEGIN)] = 0,
        [DEVICE_UPDATE_NUMBER(DEVICE_ADAFACTOR)] = 2,
        [DEVICE_UPDATE_NUMBER(DEVICE_ADAFACTOR_MOMENT)] = 3,
    };
    return states[DEVICE_UPDATE_NUMBER(kernel)];
}

unsigned device_update_uses(device_kernel kernel) {
    enum { ALL = 2 * DEVICE_CHANGES_STATES - 1 };
    switch (kernel) {
    case DEVICE_LAMB_BEGIN:
        return ALL & ~(unsigned)DEVICE_CHANGES_WEIGHTS;
    case DEVICE_LAMB:
        return DEVICE_READS_WEIGHTS | DEVICE_CHANGES_WEIGHTS;
    case DEVICE_MUON_BEGIN:
        return DEVICE_READS_GRADIENT | DEVICE_CHANGES_STATES;
    case DEVICE_ADAFACTOR_BEGIN:
        return DEVICE_READS_WEIGHTS;
    default:
        return ALL;
    }
}

int device_call_states(const device_call *call) {
    return device_update_states(call->kernel) + call->attributes.update.averages;
}
