#include "device/cuda/vector/cuda_elements.h"

#include "base/half.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/elements_arguments.h"
#include "device/cuda/vector/packs_arguments.h"

/* The kernels of FP32, BF16 and FP16. */
enum { TYPES = 3 };

typedef struct typed_kernels {
    cuda_kernel of[TYPES];
} typed_kernels;

#define EACH_TYPE(name)                                                                            \
    {                                                                                              \
        { cuda_kernel_##name##_fp32, cuda_kernel_##name##_bf16, cuda_kernel_##name##_fp16 }        \
    }

static int place_of_type(base_dtype dtype) {
    return dtype == BASE_FP32 ? 0 : dtype == BASE_BF16 ? 1 : 2;
}

/* By kernel and form: the second form is exact GELU, or squared ReLU. */
static const typed_kernels kernels[DEVICE_KERNELS][2] = {
#define DEVICE_ACTIVATION(NAME, name, number)                                                      \
    [DEVICE_##NAME] = {EACH_TYPE(name)}, [DEVICE_##NAME##_BACKWARD] = {EACH_TYPE(name##_backward)},
#define DEVICE_ACTIVATION_FORMS(NAME, name, which, one, other)                                     \
    [DEVICE_##NAME] = {EACH_TYPE(one), EACH_TYPE(other)},                                          \
    [DEVICE_##NAME##_BACKWARD] = {EACH_TYPE(one##_backward), EACH_TYPE(other##_backward)},
#include "device/kernels.def"
    [DEVICE_SILU_GATE] = {EACH_TYPE(silu_gate)},
    [DEVICE_SILU_GATE_BACKWARD] = {EACH_TYPE(silu_gate_backward)},
    [DEVICE_GELU_GATE] = {EACH_TYPE(gelu_tanh_gate), EACH_TYPE(gelu_erf_gate)},
    [DEVICE_GELU_GATE_BACKWARD] = {EACH_TYPE(gelu_tanh_gate_backward),
                                   EACH_TYPE(gelu_erf_gate_backward)},
    [DEVICE_ADD] = {EACH_TYPE(add)},
    [DEVICE_ADD_INTO] = {EACH_TYPE(add)},
    [DEVICE_ACCUMULATE] = {EACH_TYPE(add)},
    [DEVICE_MULTIPLY] = {EACH_TYPE(multiply)},
    [DEVICE_MULTIPLY_BACKWARD] = {EACH_TYPE(multiply_backward)},
    [DEVICE_SCALE] = {EACH_TYPE(scale)},
    [DEVICE_SCALE_BACKWARD] = {EACH_TYPE(scale)},
    [DEVICE_SCALE_BY] = {EACH_TYPE(scale_by)},
    [DEVICE_SCALE_BY_BACKWARD] = {EACH_TYPE(scale_by)},
    [DEVICE_DROPOUT] = {EACH_TYPE(dropout)},
    [DEVICE_DROPOUT_BACKWARD] = {EACH_TYPE(dropout)},
};

static const cuda_kernel conversions[TYPES][TYPES] = {
    {cuda_kernel_convert_fp32_fp32, cuda_kernel_convert_fp32_bf16, cuda_kernel_convert_fp32_fp16},
    {cuda_kernel_convert_bf16_fp32, cuda_kernel_convert_bf16_bf16, cuda_kernel_convert_bf16_fp16},
    {cuda_kernel_convert_fp16_fp32, cuda_kernel_convert_fp16_bf16, cuda_kernel_convert_fp16_fp16},
};

static int form_of(const device_call *call) {
    const device_attributes *attributes = &call->attributes;
    switch (call->kernel) {
#define DEVICE_ACTIVATION_FORMS(NAME, name, which, one, other)                                     \
    case DEVICE_##NAME:                                                                            \
    case DEVICE_##NAME##_BACKWARD:                                                                 \
        return which;
#include "device/kernels.def"
    case DEVICE_GELU_GATE:
    case DEVICE_GELU_GATE_BACKWARD:
        return attributes->gelu.exact;
    default:
        return 0;
    }
}

/* The number that a kernel takes: that of an activation, or a factor, as it multiplies activations
 * of this type. */
static float number_of(const device_call *call, base_dtype dtype) {
    const device_attributes *attributes = &call->attributes;
    switch (call->kernel) {
#define DEVICE_ACTIVATION(NAME, name, number)                                                      \
    case DEVICE_##NAME:                                                                            \
    case DEVICE_##NAME##_BACKWARD:                                                                 \
        return number;
#include "device/kernels.def"
    case DEVICE_SCALE:
    case DEVICE_SCALE_BACKWARD:
        break;
    default:
        return 0.0f;
    }
    float factor = attributes->scale.factor;
    if (!attributes->scale.round_factor) return factor;
    if (dtype == BASE_BF16) return base_bf16_to_float(base_bf16_from_float(factor));
    if (dtype == BASE_FP16) return base_half_to_float(base_half_from_float(factor));
    return factor;
}

/* The shape that a call runs over. Matrices without gaps are one row, whose packs are all whole but
 * the last one. */
typedef struct elements_shape {
    int64_t rows, columns;
} elements_shape;

static elements_shape shape_of(const device_matrix *const operands[], int count) {
    elements_shape shape = {operands[0]->rows, operands[0]->columns};
    for (int i = 0; i < count; i++)
        if (operands[i]->dtype != BASE_NONE && operands[i]->stride != shape.columns) return shape;
    return (elements_shape){1, shape.rows * shape.columns};
}

static elements_operand operand_of(const device_matrix *m) {
    return m->dtype == BASE_NONE ? (elements_operand){0} : (elements_operand){m->data, m->stride};
}

static int64_t blocks_of(elements_shape shape, int64_t packs_of_thread) {
    int64_t packs = shape.rows * ((shape.columns + PACK - 1) / PACK);
    int64_t each = PACK_THREADS * packs_of_thread;
    return (packs + each - 1) / each;
}

static sifr_status run_dropout(device *dev, const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_DROPOUT_BACKWARD;
    const device_matrix *from = backward ? &call->dy : &call->x[0];
    const device_matrix *to = backward ? &call->dx[0] : &call->y;
    elements_shape shape = shape_of((const device_matrix *[]){to, from}, 2);
    float probability = call->attributes.dropout.probability;
    int64_t element = call->attributes.element, whole = call->attributes.dropout.whole;
    if (whole) { /* rows before this call, of all columns */
        element = element / from->columns * whole + call->attributes.dropout.first;
        shape = (elements_shape){from->rows, from->columns};
    }
    dropout_arguments arguments = {.x = operand_of(from),
                                   .result = operand_of(to),
                                   .rows = shape.rows,
                                   .columns = shape.columns,
                                   .step = call->step,
                                   .element = (uint64_t)element,
                                   .whole = whole ? whole : shape.columns,
                                   .place = (uint64_t)(uint32_t)call->attributes.micro_batch << 32 |
                                            (uint32_t)call->attributes.op,
                                   .probability = probability,
                                   .keep = 1.0f / (1.0f - probability),
                                   .add = backward && call->accumulate[0]};
    cuda_launch launch = {.kernel = kernels[call->kernel][0].of[place_of_type(to->dtype)],
                          .blocks = {blocks_of(shape, DROPOUT_PACKS), 1, 1},
                          .threads = PACK_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

/* The operands that a kernel of elements.cu reads and writes. */
typedef struct elements_places {
    const device_matrix *x[2], *dy, *result[2];
} elements_places;

static elements_places places_of(const device_call *call) {
    static const device_matrix none = {0};
    switch (call->kernel) {
    case DEVICE_SCALE_BACKWARD:
    case DEVICE_SCALE_BY_BACKWARD:
        return (elements_places){{&call->dy, &none}, &none, {&call->dx[0], &none}};
    case DEVICE_ADD_INTO:
    case DEVICE_ACCUMULATE:
        return (elements_places){{&call->x[0], &call->y}, &none, {&call->y, &none}};
    default:
        if (call->y.dtype != BASE_NONE)
            return (elements_places){{&call->x[0], &call->x[1]}, &none, {&call->y, &none}};
        return (elements_places){
            {&call->x[0], &call->x[1]}, &call->dy, {&call->dx[0], &call->dx[1]}};
    }
}

sifr_status cuda_run_elementwise(device *dev, const device_call *call, sifr_error *error) {
    if (call->kernel == DEVICE_DROPOUT || call->kernel == DEVICE_DROPOUT_BACKWARD)
        return run_dropout(dev, call, error);
    elements_places at = places_of(call);
    const device_matrix *result = at.result[at.result[0]->dtype == BASE_NONE];
    elements_shape shape = shape_of(
        (const device_matrix *[]){result, at.x[0], at.x[1], at.dy, at.result[0], at.result[1]}, 6);
    elements_arguments arguments = {.x = {operand_of(at.x[0]), operand_of(at.x[1])},
                                    .dy = operand_of(at.dy),
                                    .result = {operand_of(at.result[0]), operand_of(at.result[1])},
                                    .rows = shape.rows,
                                    .columns = shape.columns,
                                    .factor = call->w[0].data,
                                    .number = number_of(call, result->dtype),
                                    .add = {call->accumulate[0], call->accumulate[1]}};
    int place = place_of_type(result->dtype);
    cuda_launch launch = {.kernel = call->kernel == DEVICE_CONVERT
                                        ? conversions[place_of_type(at.x[0]->dtype)][place]
                                        : kernels[call->kernel][form_of(call)].of[place],
                          .blocks = {blocks_of(shape, 1), 1, 1},
                          .threads = PACK_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}
