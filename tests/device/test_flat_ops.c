/* Kernels that work element by element, on activations and on flat vectors, against double
 * precision: see support/op_case.h.
 * in test_asan */
#include "support/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/random.h"

/* Element by element; inputs: `variant` of them, but GELU, where it chooses the form. */

static void unary_shape(const op_case *c, base_dtype type, device_call *call) {
    call->x[0] = call->y = op_sized(c->rows, c->columns, type);
}

static void binary_shape(const op_case *c, base_dtype type, device_call *call) {
    call->x[0] = call->x[1] = call->y = op_sized(c->rows, c->columns, type);
}

static void gelu_shape(const op_case *c, base_dtype type, device_call *call) {
    unary_shape(c, type, call);
    call->attributes.gelu.exact = c->variant;
}

/* variant: some columns of a value, of a tile of its rows. */
static void dropout_shape(const op_case *c, base_dtype type, device_call *call) {
    unary_shape(c, type, call);
    call->attributes.op = 11;
    call->attributes.micro_batch = 5;
    call->attributes.dropout.probability = 0.25f;
    if (!c->variant) return;
    call->attributes.element = 2 * c->columns; /* from the third row on */
    call->attributes.dropout.whole = 3 * c->columns + 5;
    call->attributes.dropout.first = c->columns + 3;
}

/* sqrt(1153), which bf16 rounds to 34 and fp16 to 33.96875; variant: whether it is rounded. */
static void scale_shape(const op_case *c, base_dtype type, device_call *call) {
    unary_shape(c, type, call);
    call->attributes.scale.factor = 33.9558537f;
    call->attributes.scale.round_factor = c->variant;
}

static void scale_by_shape(const op_case *c, base_dtype type, device_call *call) {
    unary_shape(c, type, call);
    call->w[0] = op_sized(1, 1, type);
}

#define FOR_ALL(i) for (int64_t i = 0; i < call->y.rows * call->y.columns; i++)

static void gelu_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) {
        double x = v->x[0][i];
        double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
        v->y[i] = call->attributes.gelu.exact ? 0.5 * x * (1 + erf(x / sqrt(2)))
                                              : 0.5 * x * (1 + tanh(inner));
    }
}

static void tanh_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] = tanh(v->x[0][i]);
}

static void relu_shape(const op_case *c, base_dtype type, device_call *call) {
    unary_shape(c, type, call);
    call->attributes.relu.squared = c->variant;
}

static void relu_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) {
        double x = fmax(v->x[0][i], 0);
        v->y[i] = call->attributes.relu.squared ? x * x : x;
    }
}

static void swish_shape(const op_case *c, base_dtype type, device_call *call) {
    unary_shape(c, type, call);
    call->attributes.swish.slope = 1.702f;
}

static void swish_reference(const device_call *call, const op_values *v) {
    double slope = (double)call->attributes.swish.slope;
    FOR_ALL(i) v->y[i] = v->x[0][i] / (1 + exp(-slope * v->x[0][i]));
}

static void clip_shape(const op_case *c, base_dtype type, device_call *call) {
    unary_shape(c, type, call);
    call->attributes.clip.limit = 0.4375f;
}

static void clip_reference(const device_call *call, const op_values *v) {
    double limit = (double)call->attributes.clip.limit;
    FOR_ALL(i) v->y[i] = fmin(fmax(v->x[0][i], -limit), limit);
}

static void gelu_gate_shape(const op_case *c, base_dtype type, device_call *call) {
    binary_shape(c, type, call);
    call->attributes.gelu.exact = c->variant;
}

static void gelu_gate_reference(const device_call *call, const op_values *v) {
    gelu_reference(call, v);
    FOR_ALL(i) v->y[i] *= v->x[1][i];
}

static void silu_gate_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] = v->x[0][i] / (1 + exp(-v->x[0][i])) * v->x[1][i];
}

static void sigmoid_gate_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] = v->x[1][i] / (1 + exp(-v->x[0][i]));
}

static void scale_reference(const device_call *call, const op_values *v) {
    double factor = (double)call->attributes.scale.factor;
    if (call->attributes.scale.round_factor && call->y.dtype == BASE_BF16) factor = 34;
    if (call->attributes.scale.round_factor && call->y.dtype == BASE_FP16) factor = 33.96875;
    FOR_ALL(i) v->y[i] = factor * v->x[0][i];
}

static void scale_by_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] = v->w[0][0] * v->x[0][i];
}

static void add_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] = v->x[0][i] + v->x[1][i];
}

static void multiply_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] = v->x[0][i] * v->x[1][i];
}

static void into_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] += v->x[0][i];
}

static void clear_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] = 0;
}

static void copy_reference(const device_call *call, const op_values *v) {
    FOR_ALL(i) v->y[i] = v->x[0][i];
}

/* Scalar numbers by counter: which elements stay must not differ by a single one. */
static void dropout_reference(const device_call *call, const op_values *v) {
    uint64_t key = base_random_key(op_step.seed, (uint64_t)op_step.step,
                                   (uint64_t)call->attributes.micro_batch << 32 |
                                       (uint32_t)call->attributes.op);
    const device_dropout_attributes *part = &call->attributes.dropout;
    int64_t columns = call->y.columns;
    FOR_ALL(i) {
        int64_t e = i;
        if (part->whole) e = (2 + i / columns) * part->whole + part->first + i % columns;
        base_random4 four = base_philox(key, (uint64_t)e / 4, 0);
        double kept = 1 / (1 - (double)call->attributes.dropout.probability);
        v->y[i] = base_uniform(four.v[e % 4]) >= call->attributes.dropout.probability
                      ? v->x[0][i] * kept
                      : 0.0;
    }
}

/* Clear: y alone; variant: its type. Conversions: variant x0's type x 8 + y's. */

static void clear_shape(const op_case *c, base_dtype type, device_call *call) {
    call->y = op_sized(c->rows, c->columns, c->variant ? (base_dtype)c->variant : type);
}

static void convert_shape(const op_case *c, base_dtype type, device_call *call) {
    (void)type;
    call->x[0] = op_sized(c->rows, c->columns, (base_dtype)(c->variant / 8));
    call->y = op_sized(c->rows, c->columns, (base_dtype)(c->variant % 8));
}

static const op_case elements[] = {
#define ELEMENTS(r, n)                                                                             \
    {.name = "gelu, tanh",                                                                         \
     .forward = DEVICE_GELU,                                                                       \
     .backward = DEVICE_GELU_BACKWARD,                                                             \
     .shape = gelu_shape,                                                                          \
     .reference = gelu_reference,                                                                  \
     .reads = OP_X0,                                                                               \
     .wants = OP_X0,                                                                               \
     .rows = r,                                                                                    \
     .columns = n,                                                                                 \
     .error_fp32 = 16},                                                                            \
        {.name = "gelu, erf",                                                                      \
         .forward = DEVICE_GELU,                                                                   \
         .backward = DEVICE_GELU_BACKWARD,                                                         \
         .shape = gelu_shape,                                                                      \
         .reference = gelu_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .variant = 1,                                                                             \
         .error_fp32 = 16},                                                                        \
        {.name = "gelu, tanh, wide",                                                               \
         .forward = DEVICE_GELU,                                                                   \
         .backward = DEVICE_GELU_BACKWARD,                                                         \
         .shape = gelu_shape,                                                                      \
         .reference = gelu_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16,                                                                         \
         .low = -30,                                                                               \
         .high = 30},                                                                              \
        {.name = "gelu, erf, wide",                                                                \
         .forward = DEVICE_GELU,                                                                   \
         .backward = DEVICE_GELU_BACKWARD,                                                         \
         .shape = gelu_shape,                                                                      \
         .reference = gelu_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .variant = 1,                                                                             \
         .error_fp32 = 16,                                                                         \
         .low = -30,                                                                               \
         .high = 30},                                                                              \
        {.name = "tanh",                                                                           \
         .forward = DEVICE_TANH,                                                                   \
         .backward = DEVICE_TANH_BACKWARD,                                                         \
         .shape = unary_shape,                                                                     \
         .reference = tanh_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16},                                                                        \
        {.name = "tanh, wide",                                                                     \
         .forward = DEVICE_TANH,                                                                   \
         .backward = DEVICE_TANH_BACKWARD,                                                         \
         .shape = unary_shape,                                                                     \
         .reference = tanh_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16,                                                                         \
         .low = -30,                                                                               \
         .high = 30},                                                                              \
        {.name = "relu, around its kink",                                                          \
         .forward = DEVICE_RELU,                                                                   \
         .backward = DEVICE_RELU,                                                                  \
         .shape = relu_shape,                                                                      \
         .reference = relu_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n},                                                                            \
        {.name = "relu of positive",                                                               \
         .forward = DEVICE_RELU,                                                                   \
         .backward = DEVICE_RELU_BACKWARD,                                                         \
         .shape = relu_shape,                                                                      \
         .reference = relu_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .low = 0.25,                                                                              \
         .high = 2},                                                                               \
        {.name = "relu of negative",                                                               \
         .forward = DEVICE_RELU,                                                                   \
         .backward = DEVICE_RELU_BACKWARD,                                                         \
         .shape = relu_shape,                                                                      \
         .reference = relu_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .low = -2,                                                                                \
         .high = -0.25},                                                                           \
        {.name = "relu, squared",                                                                  \
         .forward = DEVICE_RELU,                                                                   \
         .backward = DEVICE_RELU_BACKWARD,                                                         \
         .shape = relu_shape,                                                                      \
         .reference = relu_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16,                                                                         \
         .variant = 1},                                                                            \
        {.name = "swish",                                                                          \
         .forward = DEVICE_SWISH,                                                                  \
         .backward = DEVICE_SWISH_BACKWARD,                                                        \
         .shape = swish_shape,                                                                     \
         .reference = swish_reference,                                                             \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16},                                                                        \
        {.name = "swish, wide",                                                                    \
         .forward = DEVICE_SWISH,                                                                  \
         .backward = DEVICE_SWISH_BACKWARD,                                                        \
         .shape = swish_shape,                                                                     \
         .reference = swish_reference,                                                             \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16,                                                                         \
         .low = -30,                                                                               \
         .high = 30},                                                                              \
        {.name = "clip, inside",                                                                   \
         .forward = DEVICE_CLIP,                                                                   \
         .backward = DEVICE_CLIP_BACKWARD,                                                         \
         .shape = clip_shape,                                                                      \
         .reference = clip_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .low = -0.4,                                                                              \
         .high = 0.4},                                                                             \
        {.name = "clip, above",                                                                    \
         .forward = DEVICE_CLIP,                                                                   \
         .backward = DEVICE_CLIP_BACKWARD,                                                         \
         .shape = clip_shape,                                                                      \
         .reference = clip_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .low = 0.5,                                                                               \
         .high = 3},                                                                               \
        {.name = "clip, below",                                                                    \
         .forward = DEVICE_CLIP,                                                                   \
         .backward = DEVICE_CLIP_BACKWARD,                                                         \
         .shape = clip_shape,                                                                      \
         .reference = clip_reference,                                                              \
         .reads = OP_X0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .low = -3,                                                                                \
         .high = -0.5},                                                                            \
        {.name = "silu gate",                                                                      \
         .forward = DEVICE_SILU_GATE,                                                              \
         .backward = DEVICE_SILU_GATE_BACKWARD,                                                    \
         .shape = binary_shape,                                                                    \
         .reference = silu_gate_reference,                                                         \
         .reads = OP_X0 | OP_X1,                                                                   \
         .wants = OP_X0 | OP_X1,                                                                   \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16},                                                                        \
        {.name = "silu gate, wide",                                                                \
         .forward = DEVICE_SILU_GATE,                                                              \
         .backward = DEVICE_SILU_GATE_BACKWARD,                                                    \
         .shape = binary_shape,                                                                    \
         .reference = silu_gate_reference,                                                         \
         .reads = OP_X0 | OP_X1,                                                                   \
         .wants = OP_X0 | OP_X1,                                                                   \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16,                                                                         \
         .low = -100,                                                                              \
         .high = 100},                                                                             \
        {.name = "sigmoid gate",                                                                   \
         .forward = DEVICE_SIGMOID_GATE,                                                           \
         .backward = DEVICE_SIGMOID_GATE_BACKWARD,                                                 \
         .shape = binary_shape,                                                                    \
         .reference = sigmoid_gate_reference,                                                      \
         .reads = OP_X0 | OP_X1,                                                                   \
         .wants = OP_X0 | OP_X1,                                                                   \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16},                                                                        \
        {.name = "gelu gate, tanh",                                                                \
         .forward = DEVICE_GELU_GATE,                                                              \
         .backward = DEVICE_GELU_GATE_BACKWARD,                                                    \
         .shape = gelu_gate_shape,                                                                 \
         .reference = gelu_gate_reference,                                                         \
         .reads = OP_X0 | OP_X1,                                                                   \
         .wants = OP_X0 | OP_X1,                                                                   \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16},                                                                        \
        {.name = "gelu gate, tanh, wide",                                                          \
         .forward = DEVICE_GELU_GATE,                                                              \
         .backward = DEVICE_GELU_GATE_BACKWARD,                                                    \
         .shape = gelu_gate_shape,                                                                 \
         .reference = gelu_gate_reference,                                                         \
         .reads = OP_X0 | OP_X1,                                                                   \
         .wants = OP_X0 | OP_X1,                                                                   \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16,                                                                         \
         .low = -30,                                                                               \
         .high = 30},                                                                              \
        {.name = "gelu gate, erf",                                                                 \
         .forward = DEVICE_GELU_GATE,                                                              \
         .backward = DEVICE_GELU_GATE_BACKWARD,                                                    \
         .shape = gelu_gate_shape,                                                                 \
         .reference = gelu_gate_reference,                                                         \
         .reads = OP_X0 | OP_X1,                                                                   \
         .wants = OP_X0 | OP_X1,                                                                   \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16,                                                                         \
         .variant = 1},                                                                            \
        {.name = "gelu gate, erf, wide",                                                           \
         .forward = DEVICE_GELU_GATE,                                                              \
         .backward = DEVICE_GELU_GATE_BACKWARD,                                                    \
         .shape = gelu_gate_shape,                                                                 \
         .reference = gelu_gate_reference,                                                         \
         .reads = OP_X0 | OP_X1,                                                                   \
         .wants = OP_X0 | OP_X1,                                                                   \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .error_fp32 = 16,                                                                         \
         .variant = 1,                                                                             \
         .low = -30,                                                                               \
         .high = 30},                                                                              \
        {.name = "add",                                                                            \
         .forward = DEVICE_ADD,                                                                    \
         .backward = DEVICE_ADD,                                                                   \
         .shape = binary_shape,                                                                    \
         .reference = add_reference,                                                               \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .in_place = true},                                                                        \
        {.name = "multiply",                                                                       \
         .forward = DEVICE_MULTIPLY,                                                               \
         .backward = DEVICE_MULTIPLY_BACKWARD,                                                     \
         .shape = binary_shape,                                                                    \
         .reference = multiply_reference,                                                          \
         .reads = OP_X0 | OP_X1,                                                                   \
         .wants = OP_X0 | OP_X1,                                                                   \
         .rows = r,                                                                                \
         .columns = n},                                                                            \
        {.name = "scale",                                                                          \
         .forward = DEVICE_SCALE,                                                                  \
         .backward = DEVICE_SCALE_BACKWARD,                                                        \
         .shape = scale_shape,                                                                     \
         .reference = scale_reference,                                                             \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .in_place = true},                                                                        \
        {.name = "scale by a weight",                                                              \
         .forward = DEVICE_SCALE_BY,                                                               \
         .backward = DEVICE_SCALE_BY_BACKWARD,                                                     \
         .shape = scale_by_shape,                                                                  \
         .reference = scale_by_reference,                                                          \
         .reads = OP_W0,                                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .in_place = true},                                                                        \
        {.name = "scale, factor rounded",                                                          \
         .forward = DEVICE_SCALE,                                                                  \
         .backward = DEVICE_SCALE_BACKWARD,                                                        \
         .shape = scale_shape,                                                                     \
         .reference = scale_reference,                                                             \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .variant = 1,                                                                             \
         .in_place = true},                                                                        \
        {.name = "dropout",                                                                        \
         .forward = DEVICE_DROPOUT,                                                                \
         .backward = DEVICE_DROPOUT_BACKWARD,                                                      \
         .shape = dropout_shape,                                                                   \
         .reference = dropout_reference,                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .in_place = true},                                                                        \
        {.name = "dropout, some columns",                                                          \
         .forward = DEVICE_DROPOUT,                                                                \
         .backward = DEVICE_DROPOUT_BACKWARD,                                                      \
         .shape = dropout_shape,                                                                   \
         .reference = dropout_reference,                                                           \
         .wants = OP_X0,                                                                           \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .variant = 1,                                                                             \
         .in_place = true},                                                                        \
        {.name = "accumulate",                                                                     \
         .forward = DEVICE_ACCUMULATE,                                                             \
         .backward = DEVICE_ACCUMULATE,                                                            \
         .shape = unary_shape,                                                                     \
         .reference = into_reference,                                                              \
         .rows = r,                                                                                \
         .columns = n,                                                                             \
         .adds = true},                                                                            \
    {                                                                                              \
        .name = "clear", .forward = DEVICE_CLEAR, .backward = DEVICE_CLEAR, .shape = clear_shape,  \
        .reference = clear_reference, .rows = r, .columns = n                                      \
    }
    ELEMENTS(1, 1),   ELEMENTS(3, 15),   ELEMENTS(7, 16),    ELEMENTS(2, 33),
    ELEMENTS(37, 67), ELEMENTS(5, 1100), ELEMENTS(1, 70001),
};

static const op_case flats[] = {
#define CONVERT(from, to, n)                                                                       \
    {                                                                                              \
        .name = "convert " #from " to " #to, .forward = DEVICE_CONVERT,                            \
        .backward = DEVICE_CONVERT, .shape = convert_shape, .reference = copy_reference,           \
        .rows = 1, .columns = n, .variant = BASE_##from * 8 + BASE_##to, .fp32_only = true         \
    }
#define FLAT(n)                                                                                    \
    {.name = "add into",                                                                           \
     .forward = DEVICE_ADD_INTO,                                                                   \
     .backward = DEVICE_ADD_INTO,                                                                  \
     .shape = unary_shape,                                                                         \
     .reference = into_reference,                                                                  \
     .rows = 1,                                                                                    \
     .columns = n,                                                                                 \
     .adds = true,                                                                                 \
     .fp32_only = true},                                                                           \
        {.name = "clear int32",                                                                    \
         .forward = DEVICE_CLEAR,                                                                  \
         .backward = DEVICE_CLEAR,                                                                 \
         .shape = clear_shape,                                                                     \
         .reference = clear_reference,                                                             \
         .rows = 1,                                                                                \
         .columns = n,                                                                             \
         .variant = BASE_INT32,                                                                    \
         .words = 9,                                                                               \
         .fp32_only = true},                                                                       \
        {.name = "clear fp64",                                                                     \
         .forward = DEVICE_CLEAR,                                                                  \
         .backward = DEVICE_CLEAR,                                                                 \
         .shape = clear_shape,                                                                     \
         .reference = clear_reference,                                                             \
         .rows = 1,                                                                                \
         .columns = n,                                                                             \
         .variant = BASE_FP64,                                                                     \
         .fp32_only = true},                                                                       \
        CONVERT(FP32, BF16, n), CONVERT(FP32, FP16, n), CONVERT(BF16, FP32, n),                    \
        CONVERT(BF16, FP16, n), CONVERT(FP32, FP32, n), CONVERT(BF16, BF16, n)
    FLAT(1),
    FLAT(7),
    FLAT(1023),
    FLAT(1024),
    FLAT(1025),
    FLAT(100000),
    CONVERT(FP16, FP32, 37),
    CONVERT(FP16, BF16, 37),
    CONVERT(FP16, FP16, 37),
};

#define RUN(table) op_cases_run(table, (int)(sizeof table / sizeof *table))

static void test_elements(void **state) {
    (void)state;
    RUN(elements);
}

static void test_flats(void **state) {
    (void)state;
    RUN(flats);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_flats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
