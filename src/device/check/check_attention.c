/* Checks the operands of attention. */
#include <math.h>

#include "device/check/check.h"
#include "device/check/operands.h"

/* The operands of the tables of relative positions, for queries and for keys. */
enum { KEYS = 4, QUERIES = 5 };

static bool has(const device_matrix *m) {
    return m->dtype != BASE_NONE;
}

static sifr_status check_attributes(const device_call *call, sifr_error *error) {
    const char *name = device_kernel_name(call->kernel);
    int heads = call->attributes.attention.heads, kv = call->attributes.attention.kv_heads;
    int width = call->attributes.attention.head_dim;
    float dropout = call->attributes.attention.dropout;
    if (heads < 1 || kv < 1 || heads % kv != 0 || width < 1 || width > 1024)
        return base_fail(error, SIFR_USAGE,
                         "%s: %d heads over %d kv heads of %d: the kv heads must divide the heads, "
                         "and a head have 1 to 1024 values",
                         name, heads, kv, width);
    if (!(call->attributes.attention.scale > 0) || !(dropout >= 0 && dropout < 0.9999f))
        return base_fail(error, SIFR_USAGE, "%s: scale %g must be above 0 and dropout %g in 0 to 1",
                         name, (double)call->attributes.attention.scale, (double)dropout);
    float softcap = call->attributes.attention.softcap;
    if (!(softcap >= 0 && softcap < INFINITY) || call->attributes.attention.window < 0)
        return base_fail(error, SIFR_USAGE,
                         "%s: softcap %g must be finite, softcap and window %lld not below 0", name,
                         (double)softcap, (long long)call->attributes.attention.window);
    const device_attention_attributes *a = &call->attributes.attention;
    if (!(a->alibi >= 0 && a->alibi < INFINITY) ||
        (a->alibi > 0 &&
         (a->softcap > 0 || a->bidirectional || a->alibi_first < 0 ||
          a->alibi_first >= a->alibi_heads))) /* room behind the last head is fine */
        return base_fail(error, SIFR_USAGE,
                         "%s: a bias by distance (%g, heads %d to %d of %d) needs causal attention "
                         "without a soft cap",
                         name, (double)a->alibi, a->alibi_first, a->alibi_first + heads,
                         a->alibi_heads);
    return SIFR_OK;
}

/* Rows of k and v: those of whole sequences where the call has a context rank's queries. */
static int64_t key_rows(const device_call *call) {
    int64_t contexts = call->attributes.attention.contexts;
    return call->x[0].rows * (contexts > 0 ? contexts : 1);
}

static sifr_status check_contexts(const device_call *call, sifr_error *error) {
    const device_attention_attributes *a = &call->attributes.attention;
    if (a->contexts == 0) return SIFR_OK;
    bool fits = a->contexts > 1 && a->context >= 0 && a->context < a->contexts &&
                a->length % (2 * (int64_t)a->contexts) == 0;
    if (fits && !has(&call->x[KEYS]) && !has(&call->x[QUERIES])) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: queries of context rank %d of %d: there must be several ranks, twice "
                     "their number divide the length %lld, and no relative positions",
                     device_kernel_name(call->kernel), (int)a->context, (int)a->contexts,
                     (long long)a->length);
}

static sifr_status check_inputs(const device_call *call, sifr_error *error) {
    BASE_TRY(check_attributes(call, error));
    BASE_TRY(device_check_activations(call, &call->x[0], "x0", error));
    int64_t width = call->attributes.attention.head_dim, rows = call->x[0].rows;
    int64_t q = call->attributes.attention.heads * width;
    int64_t kv = call->attributes.attention.kv_heads * width;
    base_dtype type = call->x[0].dtype;
    BASE_TRY(device_check(call, &call->x[0], "x0", rows, q, type, error));
    BASE_TRY(device_check(call, &call->x[1], "x1", key_rows(call), kv, type, error));
    BASE_TRY(device_check(call, &call->x[2], "x2", key_rows(call), kv, type, error));
    return device_check(call, &call->y, "y", rows, q, type, error);
}

static sifr_status check_distances(const device_call *call, int64_t places, sifr_error *error) {
    int64_t buckets = call->attributes.attention.buckets;
    int64_t most = call->attributes.attention.most_distance;
    bool fits = buckets == 0 || (buckets >= 2 && most - 1 > buckets / 2);
    if (places < 2 || places % 2 != 0 || !fits)
        return base_fail(error, SIFR_USAGE,
                         "%s: %lld rows of relative positions must be even, and %lld buckets below "
                         "twice the largest distance %lld",
                         device_kernel_name(call->kernel), (long long)places, (long long)buckets,
                         (long long)most);
    if (call->attributes.attention.heads != call->attributes.attention.kv_heads ||
        !call->attributes.attention.bidirectional)
        return base_fail(error, SIFR_USAGE,
                         "%s: relative positions need bidirectional attention with as many kv "
                         "heads as heads",
                         device_kernel_name(call->kernel));
    return SIFR_OK;
}

static sifr_status check_positions(const device_call *call, sifr_error *error) {
    static const char *const names[] = {"x4", "x5"}, *const gradients[] = {"dx4", "dx5"};
    int64_t places = has(&call->x[KEYS]) ? call->x[KEYS].rows : call->x[QUERIES].rows;
    if (!has(&call->x[KEYS]) && !has(&call->x[QUERIES])) return SIFR_OK;
    BASE_TRY(check_distances(call, places, error));
    for (int i = 0; i < 2; i++) {
        const device_matrix *x = &call->x[KEYS + i], *dx = &call->dx[KEYS + i];
        int64_t columns = call->x[0].columns;
        base_dtype type = call->x[0].dtype;
        if (has(x)) BASE_TRY(device_check(call, x, names[i], places, columns, type, error));
        if (has(dx))
            BASE_TRY(
                device_check(call, dx, gradients[i], has(x) ? places : 0, columns, type, error));
    }
    return SIFR_OK;
}

sifr_status device_check_attention(const device_call *call, sifr_error *error) {
    BASE_TRY(check_inputs(call, error));
    int64_t sequences = call->attributes.attention.sequences, rows = call->x[0].rows;
    int64_t length = call->attributes.attention.length;
    int64_t heads = call->attributes.attention.heads;
    int64_t keys = key_rows(call);
    if (sequences < 1 || length < 1 || length > keys || sequences * length != keys)
        return base_fail(error, SIFR_USAGE, "%s: %lld sequences of %lld are not %lld rows",
                         device_kernel_name(call->kernel), (long long)sequences, (long long)length,
                         (long long)keys);
    BASE_TRY(check_contexts(call, error));
    if (call->x[3].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->x[3], "x3", keys, 1, BASE_INT32, error));
    if (call->kernel == DEVICE_ATTENTION_BACKWARD || call->saved[0].dtype != BASE_NONE)
        BASE_TRY(device_check(call, &call->saved[0], "saved0", heads, rows, BASE_FP32, error));
    if (call->kernel == DEVICE_ATTENTION_BACKWARD) {
        static const char *const names[] = {"dx0", "dx1", "dx2"};
        base_dtype type = call->x[0].dtype;
        BASE_TRY(device_check(call, &call->dy, "dy", rows, call->x[0].columns, type, error));
        bool sums = call->attributes.attention.contexts > 0; /* x1 and x2 have parts of them */
        for (int i = 0; i < 3; i++) {
            const device_matrix *dx = &call->dx[i], *x = &call->x[i];
            bool wide = i > 0 && sums && dx->dtype == BASE_FP32;
            BASE_TRY(device_check(call, dx, names[i], x->rows, x->columns, wide ? BASE_FP32 : type,
                                  error));
        }
    }
    return check_positions(call, error);
}

sifr_status device_check_attention_cached(const device_call *call, sifr_error *error) {
    BASE_TRY(check_inputs(call, error));
    int64_t rows = call->x[0].rows, capacity = call->attributes.attention.length;
    base_dtype type = call->x[0].dtype;
    if (call->attributes.attention.bidirectional)
        return base_fail(error, SIFR_USAGE,
                         "%s: bidirectional attention needs later tokens, so such a model does not "
                         "generate",
                         device_kernel_name(call->kernel));
    int64_t sequences = call->attributes.attention.sequences;
    if (sequences < 1 || (sequences > 1 && rows != sequences))
        return base_fail(error, SIFR_USAGE, "%s: %lld rows are not one of each of %lld sequences",
                         device_kernel_name(call->kernel), (long long)rows, (long long)sequences);
    if (capacity < rows / sequences || capacity > INT64_MAX / sequences)
        return base_fail(error, SIFR_USAGE, "%s: %lld rows in a cache of %lld",
                         device_kernel_name(call->kernel), (long long)rows, (long long)capacity);
    int64_t places = sequences * capacity;
    BASE_TRY(device_check(call, &call->x[3], "x3", rows, 1, BASE_INT32, error));
    BASE_TRY(device_check(call, &call->w[0], "w0", places, call->x[1].columns, type, error));
    return device_check(call, &call->w[1], "w1", places, call->x[2].columns, type, error);
}
