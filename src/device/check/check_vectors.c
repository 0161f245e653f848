/* Checks the operands of the kernels other than matrix products. */
#include "base/block4.h"
#include "base/block8.h"
#include "base/exact_sum.h"
#include "base/nf4.h"
#include "device/check/check.h"
#include "device/check/operands.h"

/* Checks that a matrix has the shape and type of another operand. */
static sifr_status check_like(const device_call *call, const device_matrix *m, const char *operand,
                              const device_matrix *as, sifr_error *error) {
    return device_check(call, m, operand, as->rows, as->columns, as->dtype, error);
}

/* Like check_like, but the operand may be missing. */
static sifr_status check_wanted(const device_call *call, const device_matrix *m,
                                const char *operand, const device_matrix *as, sifr_error *error) {
    return m->dtype == BASE_NONE ? SIFR_OK : check_like(call, m, operand, as, error);
}

static sifr_status check_absent(const device_call *call, const device_matrix *m,
                                const char *operand, sifr_error *error) {
    if (m->dtype == BASE_NONE) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: %s is given, but the kernel takes none",
                     device_kernel_name(call->kernel), operand);
}

sifr_status device_check_embedding(const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_EMBEDDING_BACKWARD;
    const device_matrix *rows = backward ? &call->dy : &call->y;
    BASE_TRY(device_check_activations(call, rows, backward ? "dy" : "y", error));
    BASE_TRY(device_check(call, &call->x[0], "x[0]", rows->rows, 1, BASE_INT32, error));
    const device_matrix *table = backward ? &call->dw[0] : &call->w[0];
    int32_t first = call->attributes.embedding.first;
    const device_words *words = &call->attributes.embedding.words;
    int64_t all = words->all ? words->all : table->rows;
    BASE_TRY(device_check_split_words(call, words, table->rows, error));
    BASE_TRY(device_check(call, table, backward ? "dw[0]" : "w[0]", table->rows, rows->columns,
                          backward ? BASE_FP32 : rows->dtype, error));
    if (first >= 0 && first < all) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: id 0 is row %d, but the table has %lld",
                     device_kernel_name(call->kernel), first, (long long)all);
}

sifr_status device_check_rows(const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_ROWS_BACKWARD;
    const device_matrix *rows = backward ? &call->dy : &call->y;
    BASE_TRY(device_check_activations(call, rows, backward ? "dy" : "y", error));
    return device_check(call, backward ? &call->dw[0] : &call->w[0], backward ? "dw[0]" : "w[0]",
                        rows->rows, rows->columns, backward ? BASE_FP32 : rows->dtype, error);
}

sifr_status device_check_norm(const device_call *call, sifr_error *error) {
    bool layer = call->kernel == DEVICE_LAYER_NORM || call->kernel == DEVICE_LAYER_NORM_BACKWARD;
    bool backward =
        call->kernel == DEVICE_LAYER_NORM_BACKWARD || call->kernel == DEVICE_RMS_NORM_BACKWARD;
    const device_matrix *x = &call->x[0];
    int64_t groups = base_max_i64(1, call->attributes.norm.groups);
    BASE_TRY(device_check_activations(call, x, "x[0]", error));
    if (x->columns % groups != 0)
        return base_fail(error, SIFR_USAGE, "%s: %lld groups do not divide %lld columns",
                         device_kernel_name(call->kernel), (long long)groups,
                         (long long)x->columns);
    int64_t columns = x->columns / groups, saved = groups * (layer ? 2 : 1);
    int64_t weights = call->w[0].rows > 1 ? groups : 1;
    device_matrix weight = {.rows = weights, .columns = columns, .dtype = x->dtype};
    bool plain = call->w[0].dtype == BASE_NONE;
    BASE_TRY(check_wanted(call, &call->w[0], "w[0]", &weight, error));
    BASE_TRY(device_check(call, &call->saved[0], "saved[0]", x->rows, saved, BASE_FP32, error));
    if (!backward) {
        BASE_TRY(layer && !plain ? check_wanted(call, &call->w[1], "w[1]", &weight, error)
                                 : check_absent(call, &call->w[1], "w[1]", error));
        return check_like(call, &call->y, "y", x, error);
    }
    device_matrix gradient = {.rows = weights, .columns = columns, .dtype = BASE_FP32};
    BASE_TRY(check_like(call, &call->dy, "dy", x, error));
    BASE_TRY(check_wanted(call, &call->dx[0], "dx[0]", x, error));
    BASE_TRY(plain ? check_absent(call, &call->dw[0], "dw[0]", error)
                   : check_wanted(call, &call->dw[0], "dw[0]", &gradient, error));
    BASE_TRY(layer && !plain ? check_wanted(call, &call->dw[1], "dw[1]", &gradient, error)
                             : check_absent(call, &call->dw[1], "dw[1]", error));
    return SIFR_OK;
}

sifr_status device_check_norm_sums(const device_call *call, sifr_error *error) {
    bool layer = call->kernel == DEVICE_LAYER_NORM_SUMS;
    const device_matrix *x = &call->x[0], *w = &call->w[0];
    int64_t groups = base_max_i64(1, call->attributes.norm.groups);
    int64_t runs = (x->rows + DEVICE_NORM_ROWS - 1) / DEVICE_NORM_ROWS;
    BASE_TRY(device_check_activations(call, x, "x[0]", error));
    BASE_TRY(device_check(call, &call->x[1], "x[1]", x->rows, groups * (layer ? 2 : 1), BASE_FP32,
                          error));
    BASE_TRY(device_check(call, w, "w[0]", w->rows > 1 ? groups : 1, x->columns / groups, x->dtype,
                          error));
    BASE_TRY(check_like(call, &call->dy, "dy", x, error));
    BASE_TRY(check_wanted(call, &call->dx[0], "dx[0]", x, error));
    return device_check(call, &call->y, "y", runs, device_norm_weights(call) * (layer ? 2 : 1),
                        BASE_FP32, error);
}

sifr_status device_check_norm_fold(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *dw = call->dw;
    const device_matrix *any = dw[0].dtype == BASE_NONE ? &dw[1] : &dw[0];
    int64_t kinds = any->rows * any->columns == x->columns ? 1 : 2;
    device_matrix like = {.rows = any->rows, .columns = any->columns, .dtype = BASE_FP32};
    BASE_TRY(
        device_check(call, x, "x[0]", x->rows, kinds * any->rows * any->columns, BASE_FP32, error));
    BASE_TRY(device_check(call, any, any == dw ? "dw[0]" : "dw[1]", any->rows, any->columns,
                          BASE_FP32, error));
    return kinds > 1 ? check_wanted(call, &dw[1], "dw[1]", &like, error)
                     : check_absent(call, &dw[1], "dw[1]", error);
}

sifr_status device_check_rope(const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_ROPE_BACKWARD;
    const device_matrix *from = backward ? &call->dy : &call->x[0];
    int64_t heads = call->attributes.rope.heads, dim = call->attributes.rope.head_dim;
    int64_t rotated = call->attributes.rope.rotary_dim ? call->attributes.rope.rotary_dim : dim;
    BASE_TRY(device_check_activations(call, from, backward ? "dy" : "x[0]", error));
    if (heads < 1 || rotated < 2 || rotated % 2 != 0 || rotated > dim)
        return base_fail(error, SIFR_USAGE,
                         "%s: %lld heads of %lld elements, of which %lld rotate: expected an "
                         "even number",
                         device_kernel_name(call->kernel), (long long)heads, (long long)dim,
                         (long long)rotated);
    BASE_TRY(device_check(call, from, backward ? "dy" : "x[0]", from->rows, heads * dim,
                          from->dtype, error));
    BASE_TRY(device_check(call, &call->x[1], "x[1]", from->rows, 1, BASE_INT32, error));
    BASE_TRY(device_check(call, &call->x[2], "x[2]", call->x[2].rows, rotated, BASE_FP32, error));
    if (!backward) return check_like(call, &call->y, "y", from, error);
    return check_like(call, &call->dx[0], "dx[0]", from, error);
}

sifr_status device_check_split_qkv(const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_SPLIT_QKV_BACKWARD;
    const device_matrix *y = backward ? &call->dy : &call->y;
    int64_t groups = call->attributes.split_qkv.groups, parts = call->attributes.split_qkv.parts;
    BASE_TRY(device_check_activations(call, y, backward ? "dy" : "y", error));
    if (groups < 1 || parts < 1 || y->columns % (groups * parts) != 0)
        return base_fail(error, SIFR_USAGE,
                         "%s: %lld groups of %lld parts do not divide %lld columns",
                         device_kernel_name(call->kernel), (long long)groups, (long long)parts,
                         (long long)y->columns);
    return check_like(call, backward ? &call->dx[0] : &call->x[0], backward ? "dx[0]" : "x[0]", y,
                      error);
}

sifr_status device_check_join(const device_call *call, sifr_error *error) {
    static const char *const xs[] = {"x[0]", "x[1]", "x[2]", "x[3]", "x[4]", "x[5]"};
    static const char *const dxs[] = {"dx[0]", "dx[1]", "dx[2]", "dx[3]", "dx[4]", "dx[5]"};
    bool backward = call->kernel == DEVICE_JOIN_BACKWARD;
    const device_matrix *y = backward ? &call->dy : &call->y;
    const int64_t *end = call->attributes.join.end;
    int64_t first = 0;
    BASE_TRY(device_check_activations(call, y, backward ? "dy" : "y", error));
    for (int i = 0; i < DEVICE_MOST_JOINED && end[i] > 0; first = end[i++]) {
        device_matrix as = {.rows = y->rows, .columns = end[i] - first, .dtype = y->dtype};
        BASE_TRY(backward ? check_wanted(call, &call->dx[i], dxs[i], &as, error)
                          : check_like(call, &call->x[i], xs[i], &as, error));
    }
    if (first == y->columns) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: the values end at column %lld of %lld",
                     device_kernel_name(call->kernel), (long long)first, (long long)y->columns);
}

sifr_status device_check_unfold(const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_UNFOLD_BACKWARD;
    const device_matrix *wide = backward ? &call->dy : &call->y;
    const device_matrix *narrow = backward ? &call->dx[0] : &call->x[0];
    int64_t size = call->attributes.unfold.size, length = call->attributes.unfold.length;
    BASE_TRY(device_check_activations(call, wide, backward ? "dy" : "y", error));
    if (size < 1 || size > DEVICE_MOST_NEIGHBOURS || size % 2 == 0 || length < 1 ||
        wide->rows % length != 0 || wide->columns % size != 0)
        return base_fail(error, SIFR_USAGE,
                         "%s: %lld neighbours in sequences of %lld do not fit %lld x %lld",
                         device_kernel_name(call->kernel), (long long)size, (long long)length,
                         (long long)wide->rows, (long long)wide->columns);
    if (call->x[1].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->x[1], "x[1]", wide->rows, 1, BASE_INT32, error));
    return device_check(call, narrow, backward ? "dx[0]" : "x[0]", wide->rows, wide->columns / size,
                        wide->dtype, error);
}

static bool convertible(base_dtype dtype) {
    return dtype == BASE_FP32 || dtype == BASE_BF16 || dtype == BASE_FP16;
}

/* Checks for 1 x n of any float type. */
static sifr_status check_vector(const device_call *call, const device_matrix *m,
                                const char *operand, sifr_error *error) {
    if (!convertible(m->dtype))
        return base_fail(error, SIFR_USAGE, "%s: %s is %s, expected fp32, bf16 or fp16",
                         device_kernel_name(call->kernel), operand, base_dtype_name(m->dtype));
    return device_check(call, m, operand, 1, m->columns, m->dtype, error);
}

sifr_status device_check_clear(const device_call *call, sifr_error *error) {
    const device_matrix *y = &call->y;
    return device_check(call, y, "y", y->rows, y->columns,
                        y->dtype == BASE_NONE ? BASE_FP32 : y->dtype, error);
}

sifr_status device_check_convert(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *y = &call->y;
    if (!convertible(x->dtype) || !convertible(y->dtype))
        return base_fail(error, SIFR_USAGE, "%s: from %s to %s, expected fp32, bf16 or fp16",
                         device_kernel_name(call->kernel), base_dtype_name(x->dtype),
                         base_dtype_name(y->dtype));
    return device_check(call, x, "x[0]", y->rows, y->columns, x->dtype, error);
}

sifr_status device_check_finish(const device_call *call, sifr_error *error) {
    const device_matrix *y = &call->y;
    BASE_TRY(device_check_activations(call, y, "y", error));
    BASE_TRY(device_check(call, &call->x[0], "x[0]", y->rows, y->columns, BASE_FP32, error));
    if (call->w[1].dtype == BASE_NONE) return SIFR_OK;
    return device_check(call, &call->w[1], "w[1]", 1, y->columns, y->dtype, error);
}

sifr_status device_check_add_into(const device_call *call, sifr_error *error) {
    BASE_TRY(check_vector(call, &call->y, "y", error));
    return check_like(call, &call->x[0], "x[0]", &call->y, error);
}

sifr_status device_check_unary(const device_call *call, sifr_error *error) {
    BASE_TRY(device_check_activations(call, &call->y, "y", error));
    return check_like(call, &call->x[0], "x[0]", &call->y, error);
}

sifr_status device_check_binary(const device_call *call, sifr_error *error) {
    BASE_TRY(device_check_unary(call, error));
    return check_like(call, &call->x[1], "x[1]", &call->y, error);
}

/* Backward calls that read the first `inputs` inputs and have so many `results`. */
static sifr_status check_backward(const device_call *call, int inputs, int results,
                                  sifr_error *error) {
    const device_matrix *dy = &call->dy;
    BASE_TRY(check_absent(call, &call->y, "y", error));
    BASE_TRY(device_check_activations(call, dy, "dy", error));
    if (inputs > 0) BASE_TRY(check_like(call, &call->x[0], "x[0]", dy, error));
    if (inputs > 1) BASE_TRY(check_like(call, &call->x[1], "x[1]", dy, error));
    BASE_TRY(check_wanted(call, &call->dx[0], "dx[0]", dy, error));
    BASE_TRY(results > 1 ? check_wanted(call, &call->dx[1], "dx[1]", dy, error)
                         : check_absent(call, &call->dx[1], "dx[1]", error));
    if (call->dx[0].dtype == BASE_NONE && call->dx[1].dtype == BASE_NONE)
        return base_fail(error, SIFR_USAGE, "%s: dx[0] is missing, and there is no other result",
                         device_kernel_name(call->kernel));
    return SIFR_OK;
}

sifr_status device_check_unary_backward(const device_call *call, sifr_error *error) {
    return check_backward(call, 1, 1, error);
}

sifr_status device_check_binary_backward(const device_call *call, sifr_error *error) {
    return check_backward(call, 2, 2, error);
}

sifr_status device_check_factor_backward(const device_call *call, sifr_error *error) {
    return check_backward(call, 0, 1, error);
}

sifr_status device_check_scale_by(const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_SCALE_BY_BACKWARD;
    base_dtype type = backward ? call->dy.dtype : call->y.dtype;
    BASE_TRY(backward ? device_check_factor_backward(call, error)
                      : device_check_unary(call, error));
    BASE_TRY(check_absent(call, &call->dw[0], "dw[0]", error));
    return device_check(call, &call->w[0], "w[0]", 1, 1, type, error);
}

sifr_status device_check_xielu(const device_call *call, sifr_error *error) {
    static const char *const weights[] = {"w[0]", "w[1]"}, *const sums[] = {"dw[0]", "dw[1]"};
    const device_matrix *x = &call->x[0], one = {.rows = 1, .columns = 1, .dtype = BASE_FP32};
    BASE_TRY(device_check_activations(call, x, "x[0]", error));
    for (int i = 0; i < 2; i++)
        BASE_TRY(device_check(call, &call->w[i], weights[i], 1, 1, x->dtype, error));
    if (call->kernel == DEVICE_XIELU) return check_like(call, &call->y, "y", x, error);
    BASE_TRY(check_like(call, &call->dy, "dy", x, error));
    BASE_TRY(check_wanted(call, &call->dx[0], "dx[0]", x, error));
    for (int i = 0; i < 2; i++) BASE_TRY(check_wanted(call, &call->dw[i], sums[i], &one, error));
    return SIFR_OK;
}

sifr_status device_check_exact_squares(const device_call *call, sifr_error *error) {
    BASE_TRY(check_vector(call, &call->x[0], "x[0]", error));
    return device_check(call, &call->y, "y", 1, EXACT_WORDS, BASE_INT64, error);
}

/* Checks for FP32, or BF16 if the operand has that type. */
static sifr_status check_state(const device_call *call, const device_matrix *m, const char *operand,
                               int64_t columns, sifr_error *error) {
    base_dtype dtype = m->dtype == BASE_BF16 ? BASE_BF16 : BASE_FP32;
    return device_check(call, m, operand, 1, columns, dtype, error);
}

/* Codes of 8 bits, or their scales. */
static sifr_status check_coded(const device_call *call, const device_matrix *m, const char *operand,
                               bool codes, sifr_error *error) {
    int64_t count = call->x[0].columns;
    if (codes) return device_check(call, m, operand, 1, count, BASE_UINT8, error);
    return device_check(call, m, operand, 1, (count + DEVICE_CODED - 1) / DEVICE_CODED, BASE_FP32,
                        error);
}

/* Averages of the rows and columns of Adafactor's matrix behind its momentum, if it has one. */
static sifr_status check_factored(const device_call *call, const char *const names[DEVICE_SAVED],
                                  sifr_error *error) {
    const device_matrix *g = &call->x[2];
    int moment = call->kernel == DEVICE_ADAFACTOR_MOMENT;
    int64_t rows = g->rows > 0 ? g->rows : 1, columns = g->columns > 0 ? g->columns : 1;
    BASE_TRY(device_check(call, g, "x[2]", rows, columns, call->x[0].dtype, error));
    if (moment) BASE_TRY(check_state(call, &call->saved[0], names[0], call->x[0].columns, error));
    BASE_TRY(device_check(call, &call->saved[moment], names[moment], 1, rows, BASE_FP32, error));
    return device_check(call, &call->saved[moment + 1], names[moment + 1], 1, columns, BASE_FP32,
                        error);
}

/* Of the weights. */
static sifr_status check_average(const device_call *call, const char *const names[DEVICE_SAVED],
                                 sifr_error *error) {
    int states = device_update_states(call->kernel);
    if (!call->attributes.update.averages) return SIFR_OK;
    if (states >= DEVICE_SAVED || call->kernel == DEVICE_SCHEDULE_FREE ||
        call->kernel == DEVICE_LAMB_BEGIN || call->kernel == DEVICE_MUON_BEGIN ||
        call->kernel == DEVICE_ADAFACTOR_BEGIN)
        return base_fail(error, SIFR_USAGE,
                         "%s: it has no average of the weights beside its states",
                         device_kernel_name(call->kernel));
    return device_check(call, &call->saved[states], names[states], 1, call->x[0].columns, BASE_FP32,
                        error);
}

static bool is_factored(device_kernel kernel) {
    return kernel == DEVICE_ADAFACTOR || kernel == DEVICE_ADAFACTOR_MOMENT;
}

/* Sums over one weight, or values of its elements. */
static sifr_status check_sums(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[1];
    if (call->kernel == DEVICE_MUON_BEGIN)
        return device_check(call, &call->y, "y", 1, call->x[0].columns, BASE_FP32, error);
    if (call->kernel == DEVICE_MUON)
        return device_check(call, &call->x[0], "x[0]", 1, call->x[0].columns, BASE_FP32, error);
    if (call->kernel == DEVICE_LAMB_BEGIN || call->kernel == DEVICE_ADAFACTOR_BEGIN)
        return device_check(call, &call->y, "y", 1, 2 * (int64_t)EXACT_WORDS, BASE_INT64, error);
    if (call->kernel != DEVICE_LAMB && !is_factored(call->kernel)) return SIFR_OK;
    int64_t rows = x->rows > 0 ? x->rows : 1;
    return device_check(call, x, "x[1]", rows, 2 * (int64_t)EXACT_WORDS, BASE_INT64, error);
}

sifr_status device_check_update(const device_call *call, sifr_error *error) {
    static const char *const names[DEVICE_SAVED] = {"saved[0]", "saved[1]", "saved[2]", "saved[3]"};
    const device_matrix *x = &call->x[0], *copy = &call->w[1];
    BASE_TRY(check_vector(call, x, "x[0]", error));
    BASE_TRY(check_state(call, &call->w[0], "w[0]", x->columns, error));
    int alike = is_factored(call->kernel) ? 0 : device_update_states(call->kernel);
    if (is_factored(call->kernel)) BASE_TRY(check_factored(call, names, error));
    for (int s = 0; s < alike; s++) {
        const device_matrix *state = &call->saved[s];
        if (call->kernel == DEVICE_ADAM_8BIT) {
            BASE_TRY(check_coded(call, state, names[s], s < 2, error));
            continue;
        }
        if (s == 0) BASE_TRY(check_state(call, state, names[s], x->columns, error));
        if (s > 0) BASE_TRY(check_like(call, state, names[s], &call->saved[0], error));
    }
    BASE_TRY(check_average(call, names, error));
    BASE_TRY(check_sums(call, error));
    if (copy->dtype == BASE_NONE) return SIFR_OK;
    BASE_TRY(check_vector(call, copy, "w[1]", error));
    return device_check(call, copy, "w[1]", 1, x->columns, copy->dtype, error);
}

sifr_status device_check_orthogonalise(const device_call *call, sifr_error *error) {
    int64_t rows = call->y.rows, matrices = call->attributes.update.matrices;
    if (matrices < 1 || rows < 1 || rows % matrices != 0)
        return base_fail(error, SIFR_USAGE, "%s: %lld rows are not %lld matrices of one height",
                         device_kernel_name(call->kernel), (long long)rows, (long long)matrices);
    BASE_TRY(device_check(call, &call->y, "y", rows, call->y.columns, BASE_FP32, error));
    if (call->y.stride == call->y.columns) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: y has gaps between its rows",
                     device_kernel_name(call->kernel));
}

sifr_status device_check_dequantise(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0];
    int64_t record = x->columns == BASE_NF4_PLAIN ? BASE_NF4_PLAIN : BASE_NF4_DOUBLED;
    BASE_TRY(device_check(call, x, "x[0]", x->rows, record, BASE_UINT8, error));
    BASE_TRY(check_vector(call, &call->y, "y", error));
    return device_check(call, &call->y, "y", 1, x->rows * BASE_NF4_RECORD, call->y.dtype, error);
}

static sifr_status check_blocks8(const device_call *call, const device_matrix *blocks,
                                 const char *codes, const device_matrix *values, const char *of,
                                 sifr_error *error) {
    BASE_TRY(device_check(call, blocks, codes, blocks->rows, BASE_BLOCK8_BYTES, BASE_UINT8, error));
    BASE_TRY(check_vector(call, values, of, error));
    return device_check(call, values, of, 1, blocks->rows * BASE_BLOCK8, values->dtype, error);
}

sifr_status device_check_encode_blocks8(const device_call *call, sifr_error *error) {
    return check_blocks8(call, &call->y, "y", &call->x[0], "x[0]", error);
}

sifr_status device_check_decode_blocks8(const device_call *call, sifr_error *error) {
    return check_blocks8(call, &call->x[0], "x[0]", &call->y, "y", error);
}

static sifr_status check_blocks4(const device_call *call, const device_matrix *blocks,
                                 const char *name, sifr_error *error) {
    return device_check(call, blocks, name, blocks->rows, BASE_BLOCK4_BYTES, BASE_UINT8, error);
}

sifr_status device_check_encode_blocks4(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *y = &call->y;
    int64_t slices = call->attributes.block.slices, near = call->attributes.block.near;
    BASE_TRY(check_blocks4(call, y, "y", error));
    BASE_TRY(check_vector(call, x, "x[0]", error));
    BASE_TRY(device_check(call, x, "x[0]", 1, y->rows * BASE_BLOCK4, x->dtype, error));
    if (slices <= 1 || (near > 0 && slices % near == 0 && y->rows % slices == 0)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: %lld blocks are not %lld slices in groups of %lld",
                     device_kernel_name(call->kernel), (long long)y->rows, (long long)slices,
                     (long long)near);
}

sifr_status device_check_sum_blocks4(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *y = &call->y;
    int64_t each = y->columns / BASE_BLOCK4;
    BASE_TRY(check_blocks4(call, x, "x[0]", error));
    BASE_TRY(check_vector(call, y, "y", error));
    if (each > 0 && y->columns % BASE_BLOCK4 == 0 && x->rows % each == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: %lld blocks are not parts of %lld values",
                     device_kernel_name(call->kernel), (long long)x->rows, (long long)y->columns);
}

static sifr_status check_magnitude_forward(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *a = &call->x[1];
    bool transposed = call->attributes.magnitude.transposed;
    int64_t out = x->columns, in = a->columns;
    BASE_TRY(check_like(call, &call->y, "y", x, error));
    BASE_TRY(device_check(call, a, "x[1]", a->rows, in, x->dtype, error));
    BASE_TRY(device_check(call, &call->x[2], "x[2]", out, a->rows, x->dtype, error));
    if (call->x[3].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->x[3], "x[3]", 1, out, x->dtype, error));
    if (call->x[4].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->x[4], "x[4]", out, 1, BASE_FP32, error));
    return device_check(call, &call->w[0], "w[0]", transposed ? in : out, transposed ? out : in,
                        x->dtype, error);
}

/* The squares of norms alone. */
static sifr_status check_squares(const device_call *call, sifr_error *error) {
    const device_matrix *a = &call->x[1], *b = &call->x[2], *w = &call->w[0];
    bool transposed = call->attributes.magnitude.transposed;
    int64_t in = a->columns, out = b->rows;
    BASE_TRY(device_check_activations(call, a, "x[1]", error));
    BASE_TRY(device_check(call, b, "x[2]", out, a->rows, a->dtype, error));
    BASE_TRY(device_check(call, w, "w[0]", transposed ? in : out, transposed ? out : in, a->dtype,
                          error));
    return device_check(call, &call->saved[0], "saved[0]", out, 1, BASE_FP32, error);
}

sifr_status device_check_magnitude(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0];
    bool alone = call->y.dtype == BASE_NONE && call->x[0].dtype == BASE_NONE;
    if (call->kernel == DEVICE_MAGNITUDE && alone) return check_squares(call, error);
    device_matrix gradient = {.rows = 1, .columns = x->columns, .dtype = BASE_FP32};
    BASE_TRY(device_check_activations(call, x, "x[0]", error));
    BASE_TRY(device_check(call, &call->w[1], "w[1]", 1, x->columns, x->dtype, error));
    BASE_TRY(device_check(call, &call->saved[0], "saved[0]", x->columns, 1, BASE_FP32, error));
    if (call->kernel == DEVICE_MAGNITUDE) return check_magnitude_forward(call, error);
    BASE_TRY(check_like(call, &call->dy, "dy", x, error));
    BASE_TRY(check_wanted(call, &call->dx[0], "dx[0]", x, error));
    BASE_TRY(check_absent(call, &call->dw[0], "dw[0]", error));
    return check_wanted(call, &call->dw[1], "dw[1]", &gradient, error);
}
