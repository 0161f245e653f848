/* Checks the operands of linear layers and heads. */
#include <math.h>

#include "device/check/check.h"
#include "device/check/operands.h"

/* The pieces that inputs or outputs are in. */
static sifr_status check_pieces(const device_call *call, int64_t in, int64_t out,
                                sifr_error *error) {
    const device_linear_attributes *linear = &call->attributes.linear;
    int32_t pieces = linear->pieces;
    int64_t at = 0;
    bool fits = (pieces == 1 || pieces == 2 || pieces == 4 || pieces == DEVICE_LINEAR_PIECES) &&
                linear->runs >= 1 && linear->runs <= DEVICE_LINEAR_RUNS;
    for (int32_t r = 0; fits && r < linear->runs; r++) {
        int64_t width = linear->run_end[r] - at;
        fits = width > 0 && width % pieces == 0;
        at = linear->run_end[r];
    }
    if (fits && at == (linear->cut_inputs ? in : out)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: %d pieces in %d runs that end at %lld",
                     device_kernel_name(call->kernel), (int)pieces, (int)linear->runs,
                     (long long)at);
}

/* A result that is a sum over pieces may be a part of it, in FP32. */
static base_dtype summed_type(const device_call *call, bool of_inputs, base_dtype have,
                              base_dtype type) {
    const device_linear_attributes *linear = &call->attributes.linear;
    bool sum = linear->pieces > 0 && linear->cut_inputs == of_inputs;
    return sum && have == BASE_FP32 ? BASE_FP32 : type;
}

sifr_status device_check_linear(const device_call *call, sifr_error *error) {
    bool transposed = call->attributes.linear.transposed;
    bool backward = call->kernel == DEVICE_LINEAR_BACKWARD;
    /* Without dw0 backward needs no x. */
    bool without = backward && call->x[0].dtype == BASE_NONE && call->dw[0].dtype == BASE_NONE;
    const device_matrix *x = without ? &call->dx[0] : &call->x[0];
    int64_t rows = x->rows, in = x->columns;
    int64_t out = transposed ? call->w[0].columns : call->w[0].rows;
    base_dtype type = without ? call->dy.dtype : x->dtype; /* dx0 may be a part of a sum */
    BASE_TRY(device_check_activations(call, x, without ? "dx0" : "x0", error));
    BASE_TRY(device_check(call, &call->w[0], "w0", transposed ? in : out, transposed ? out : in,
                          type, error));
    if (out < 1)
        return base_fail(error, SIFR_USAGE, "%s: w0 is empty", device_kernel_name(call->kernel));
    if (call->attributes.linear.pieces != 0) BASE_TRY(check_pieces(call, in, out, error));
    if (!backward) {
        base_dtype made = summed_type(call, true, call->y.dtype, type);
        BASE_TRY(device_check(call, &call->y, "y", rows, out, made, error));
        if (call->w[1].dtype == BASE_NONE) return SIFR_OK;
        return device_check(call, &call->w[1], "w1", 1, out, type, error);
    }
    BASE_TRY(device_check(call, &call->dy, "dy", rows, out, type, error));
    if (call->dx[0].dtype != BASE_NONE) {
        base_dtype made = summed_type(call, false, call->dx[0].dtype, type);
        BASE_TRY(device_check(call, &call->dx[0], "dx0", rows, in, made, error));
    }
    if (call->dw[0].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->dw[0], "dw0", call->w[0].rows, call->w[0].columns,
                              BASE_FP32, error));
    if (call->dw[1].dtype == BASE_NONE) return SIFR_OK;
    return device_check(call, &call->dw[1], "dw1", 1, out, BASE_FP32, error);
}

static sifr_status check_shape(const device_call *call, sifr_error *error) {
    float scale = call->attributes.head.scale, softcap = call->attributes.head.softcap;
    if (isfinite(scale) && isfinite(softcap) && softcap >= 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: scale %g, softcap %g",
                     device_kernel_name(call->kernel), (double)scale, (double)softcap);
}

sifr_status device_check_head_logits(const device_call *call, sifr_error *error) {
    device_call linear = *call; /* kernels share a union of attributes */
    linear.attributes.linear = (device_linear_attributes){0};
    BASE_TRY(check_shape(call, error));
    return device_check_linear(&linear, error);
}

static sifr_status check_statistics(const device_call *call, const device_matrix *m,
                                    const char *operand, sifr_error *error) {
    const device_words *words = &call->attributes.head.words;
    BASE_TRY(device_check(call, m, operand, call->x[0].rows, m->columns, BASE_FP32, error));
    if (words->all > 0 && m->columns >= device_word_statistics(words->all)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: %s has %lld columns for a split vocabulary of %lld",
                     device_kernel_name(call->kernel), operand, (long long)m->columns,
                     (long long)words->all);
}

/* The operands of a head over words, but for y. */
static sifr_status check_words(const device_call *call, sifr_error *error) {
    int64_t rows = call->x[0].rows, width = call->x[0].columns, words = call->w[0].rows;
    base_dtype type = call->x[0].dtype;
    BASE_TRY(device_check_activations(call, &call->x[0], "x0", error));
    BASE_TRY(device_check_split_words(call, &call->attributes.head.words, words, error));
    BASE_TRY(device_check(call, &call->x[1], "x1", rows, 1, BASE_INT32, error));
    BASE_TRY(device_check(call, &call->w[0], "w0", words, width, type, error));
    if (call->w[1].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->w[1], "w1", 1, words, type, error));
    if (call->dx[0].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->dx[0], "dx0", rows, width, type, error));
    if (call->dw[0].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->dw[0], "dw0", words, width, BASE_FP32, error));
    if (call->dw[1].dtype != BASE_NONE) {
        BASE_TRY(device_check(call, &call->w[1], "w1", 1, words, type, error));
        BASE_TRY(device_check(call, &call->dw[1], "dw1", 1, words, BASE_FP32, error));
    }
    return check_shape(call, error);
}

sifr_status device_check_head_statistics(const device_call *call, sifr_error *error) {
    BASE_TRY(check_statistics(call, &call->y, "y", error));
    return check_words(call, error);
}

/* Of all words, where the call has some. */
static sifr_status check_given(const device_call *call, sifr_error *error) {
    if (call->attributes.head.words.all == 0 && call->x[3].dtype == BASE_NONE) return SIFR_OK;
    return check_statistics(call, &call->x[3], "x3", error);
}

sifr_status device_check_head_loss(const device_call *call, sifr_error *error) {
    BASE_TRY(check_given(call, error));
    BASE_TRY(device_check(call, &call->y, "y", call->x[0].rows, 1, BASE_FP32, error));
    return check_words(call, error);
}

sifr_status device_check_head_preference(const device_call *call, sifr_error *error) {
    int64_t rows = call->x[0].rows, length = call->attributes.head.length;
    float beta = call->attributes.head.beta;
    sifr_preference kind = call->attributes.head.preference;
    BASE_TRY(check_given(call, error));
    BASE_TRY(device_check(call, &call->x[2], "x2", rows, 1, BASE_FP32, error));
    BASE_TRY(device_check(call, &call->y, "y", 2, rows, BASE_FP32, error));
    if (kind < SIFR_PREFERENCE_SIGMOID || kind > SIFR_PREFERENCE_ORPO || !(beta > 0) ||
        !isfinite(beta))
        return base_fail(error, SIFR_USAGE, "%s: preference %d, beta %g",
                         device_kernel_name(call->kernel), (int)kind, (double)beta);
    if (length < 1 || rows % length != 0)
        return base_fail(error, SIFR_USAGE, "%s: %lld rows are no sequences of %lld",
                         device_kernel_name(call->kernel), (long long)rows, (long long)length);
    return check_words(call, error);
}

sifr_status device_check_head_distil(const device_call *call, sifr_error *error) {
    int64_t columns = call->x[2].columns, words = call->w[0].rows;
    float temperature = call->attributes.head.temperature, weight = call->attributes.head.weight;
    BASE_TRY(device_check(call, &call->x[2], "x2", call->x[0].rows, columns, BASE_FP32, error));
    BASE_TRY(device_check(call, &call->y, "y", call->x[0].rows, 1, BASE_FP32, error));
    if (columns < 2 || columns % 2 != 0 || columns / 2 > words)
        return base_fail(error, SIFR_USAGE,
                         "%s: x2 has %lld columns, must have 2 for each of 1 … %lld words",
                         device_kernel_name(call->kernel), (long long)columns, (long long)words);
    if (!(temperature > 0) || !isfinite(temperature) || !(weight >= 0 && weight <= 1))
        return base_fail(error, SIFR_USAGE, "%s: temperature %g, weight %g",
                         device_kernel_name(call->kernel), (double)temperature, (double)weight);
    return check_words(call, error);
}

sifr_status device_check_own_loss(const device_call *call, sifr_error *error) {
    const sifr_own_loss_args *own = call->attributes.head.own;
    int64_t row = 2 * call->w[0].rows * (int64_t)sizeof(float);
    BASE_TRY(device_check(call, &call->y, "y", call->x[0].rows, 1, BASE_FP32, error));
    BASE_TRY(check_words(call, error));
    if (own && own->memory >= row) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "own_loss: memory %lld holds no row of logits and gradient, which takes %lld "
                     "bytes; give more, or leave it out",
                     own ? (long long)own->memory : 0, (long long)row);
}

/* Gradients of the weights: dw0 like w0, dw1 like w1, in FP32. */
static sifr_status check_gradients(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *w = &call->w[0];
    if (call->dx[0].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->dx[0], "dx0", x->rows, x->columns, x->dtype, error));
    if (call->dw[0].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->dw[0], "dw0", w->rows, w->columns, BASE_FP32, error));
    if (call->dw[1].dtype == BASE_NONE) return SIFR_OK;
    return device_check(call, &call->dw[1], "dw1", 1, w->rows, BASE_FP32, error);
}

sifr_status device_check_head_targets(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *w = &call->w[0];
    int64_t rows = x->rows, columns = w->rows;
    bool is_backward = call->kernel == DEVICE_HEAD_REGRESSION_BACKWARD ||
                       call->kernel == DEVICE_HEAD_MULTILABEL_BACKWARD;
    BASE_TRY(device_check_activations(call, x, "x0", error));
    BASE_TRY(device_check_activations(call, w, "w0", error));
    BASE_TRY(device_check(call, w, "w0", columns, x->columns, x->dtype, error));
    BASE_TRY(device_check(call, &call->x[1], "x1", rows, columns, BASE_FP32, error));
    BASE_TRY(device_check(call, &call->y, "y", rows, 1, BASE_FP32, error));
    if (call->w[1].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->w[1], "w1", 1, columns, x->dtype, error));
    return is_backward ? check_gradients(call, error) : SIFR_OK;
}
