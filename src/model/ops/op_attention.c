/* Attention inside each sequence. */
#include <math.h>

#include "base/checked.h"
#include "base/inside.h"
#include "model/builder.h"
#include "model/shard.h"

static void saved_attention(const model_node *node, int64_t tokens, int64_t *rows,
                            int64_t *columns) {
    *rows = node->attributes.attention.heads;
    *columns = tokens;
}

/* Keys that a query sees at most. */
static double reach(const device_call *call) {
    int64_t length = call->attributes.attention.length, window = call->attributes.attention.window;
    return (double)(window > 0 ? base_min_i64(window, length) : length);
}

/* Pairs of a query and a key that are looked at, if all tokens are of one segment; `full`: all in a
 * sequence, as the literature counts, with a window too. */
static double pairs(const device_call *call, bool full) {
    double length = (double)call->attributes.attention.length, seen = reach(call);
    double sequences = (double)call->attributes.attention.sequences;
    if (call->kernel == DEVICE_ATTENTION_CACHED) return (double)call->x[0].rows * seen;
    if (full) return sequences * length * length;
    double causal = seen * (seen + 1) / 2 + (length - seen) * seen;
    if (call->attributes.attention.contexts > 0) sequences /= call->attributes.attention.contexts;
    return sequences * (call->attributes.attention.bidirectional ? 2 * causal - length : causal);
}

/* Products of all tokens with the rows of a table of relative positions that they may need. */
static double table_operations(const device_call *call, int table, double width) {
    double rows = fmin((double)call->x[table].rows, 2 * (double)call->attributes.attention.length);
    return 2 * (double)call->x[0].rows * rows * width;
}

/* Scores and the weighted sum: two products of 2 x head_dim a pair and head. */
static double attention_operations(const device_call *call, bool full) {
    const device_attributes *a = &call->attributes;
    double width = (double)a->attention.heads * (double)a->attention.head_dim;
    return 4 * pairs(call, full) * width + table_operations(call, 4, width) +
           table_operations(call, 5, width);
}

/* The rows of the caches that no new token sees. */
static double untouched_bytes(const device_call *call) {
    if (call->kernel != DEVICE_ATTENTION_CACHED) return 0;
    double length = (double)call->attributes.attention.length;
    double fresh = (double)call->x[0].rows / (double)call->attributes.attention.sequences;
    double rows = fmin(length, reach(call) + fresh);
    double bytes = model_matrix_bytes(&call->w[0]) + model_matrix_bytes(&call->w[1]);
    return bytes * (1 - rows / length);
}

static void note_extent(device_attributes *attributes, const model_extent *extent) {
    attributes->attention.sequences = extent->sequences;
    attributes->attention.length = extent->length;
    attributes->attention.context = extent->context;
    if (attributes->attention.contexts > 0) /* groups, whose ranks have the same queries */
        attributes->attention.context /= extent->contexts / attributes->attention.contexts;
    if (!extent->training) attributes->attention.dropout = 0;
}

static int64_t blocks_of(const sifr_model *model, const model_node *node, bool common) {
    const device_attention_attributes *a = &node->attributes.attention;
    if (model_is_sliced(model, node->y)) return 0;
    return common ? a->kv_heads : a->heads;
}

/* Dropout draws by the heads of all parts. Where there are more ranks than kv heads, all heads of a
 * rank have one of these. */
static void divide_heads(const sifr_model *model, model_node *node, const model_share *share) {
    device_attention_attributes *a = &node->attributes.attention;
    int32_t heads = a->heads, kv_heads = a->kv_heads;
    (void)model;
    if (a->dropout > 0)
        a->whole_heads = heads, a->first_head = (int32_t)(heads / share->blocks * share->first);
    a->alibi_first += (int32_t)(heads / share->blocks * share->first);
    a->all_kv_heads = kv_heads;
    a->heads = (int32_t)(heads / share->blocks * share->room);
    a->kv_heads = kv_heads < share->ranks ? 1 : (int32_t)(kv_heads / share->blocks * share->room);
}

const model_op model_op_attention = {
    .name = "attention",
    .forward = DEVICE_ATTENTION,
    .backward = DEVICE_ATTENTION_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_X2 | MODEL_KEEP_X3 | MODEL_KEEP_X4 |
            MODEL_KEEP_X5 | MODEL_KEEP_Y | MODEL_KEEP_SAVED,
    .gradients = 7 | 1 << 4 | 1 << 5,
    .makes_all = true,
    .constant_rows = 1 << 4 | 1 << 5,
    .saved = saved_attention,
    .operations = attention_operations,
    .backward_factor = 2.5, /* five products: the scores are computed again */
    .caches = true,
    .positions = 3,
    .cached = DEVICE_ATTENTION_CACHED,
    .complete = note_extent,
    .untouched = untouched_bytes,
    .layout = MODEL_LAYOUT_PARTS,
    .blocks = blocks_of,
    .common_inputs = 1 << 1 | 1 << 2,
    .divide = divide_heads,
    .contexts = MODEL_CONTEXTS_HEADS,
};

/* Whether a table of relative positions is absent, or has the columns of a query and an even number
 * of rows. */
static bool table_fits(sifr_model *model, sifr_value table, int64_t columns) {
    if (!table.id) return true;
    const model_value *value = model_activation(model, table, "attention");
    return value && value->columns == columns && value->rows > 0 && value->rows % 2 == 0;
}

static bool positions_fit(sifr_model *model, const sifr_attention_args *args, int64_t columns) {
    sifr_value keys = args->position_keys, queries = args->position_queries;
    if (!keys.id && !queries.id) return true;
    bool fits = table_fits(model, keys, columns) && table_fits(model, queries, columns);
    if (fits && keys.id && queries.id)
        fits = model->values[model_index(keys)].rows == model->values[model_index(queries)].rows;
    bool distances =
        args->buckets == 0 || (args->buckets >= 2 && args->most_distance - 1 > args->buckets / 2);
    if (fits && distances && args->buckets <= INT32_MAX && args->most_distance <= INT32_MAX &&
        args->bidirectional && args->heads == args->kv_heads)
        return true;
    MODEL_WRONG(model,
                "unit %s: attention: tables of relative positions need %lld columns and an even "
                "number of rows, as many kv heads as heads, bidirectional attention, and %lld "
                "buckets below twice the largest distance %lld",
                model_unit_name(model), (long long)columns, (long long)args->buckets,
                (long long)args->most_distance);
    return false;
}

sifr_value sifr_attention(sifr_model *model, sifr_attention_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    args.segments = model_segments(model, args.segments);
    const model_value *query = model_activation(model, args.q, "attention");
    const model_value *key = model_activation(model, args.k, "attention");
    const model_value *value = model_activation(model, args.v, "attention");
    int64_t heads = args.heads, kv_heads = args.kv_heads;
    if (!query || !key || !value) return SIFR_NO_VALUE;
    bool fits = heads >= 1 && kv_heads >= 1 && heads % kv_heads == 0 &&
                query->columns % heads == 0 && key->columns == value->columns &&
                key->columns == query->columns / heads * kv_heads;
    if (!fits || !(args.dropout >= 0 && args.dropout < 1)) {
        MODEL_WRONG(model,
                    "unit %s: attention: %lld heads, %lld kv heads, columns %lld, %lld, %lld, "
                    "dropout %g do not fit",
                    model_unit_name(model), (long long)heads, (long long)kv_heads,
                    (long long)query->columns, (long long)key->columns, (long long)value->columns,
                    args.dropout);
        return SIFR_NO_VALUE;
    }
    int64_t head_dim = query->columns / heads;
    float scale = (float)(args.scale == 0 ? 1 / sqrt((double)head_dim) : args.scale);
    if (!(scale > 0 && scale < INFINITY) || !(args.softcap >= 0 && args.softcap < 1e30) ||
        args.window < 0) {
        MODEL_WRONG(model,
                    "unit %s: attention: scale %g, softcap %g and window %lld must not be negative",
                    model_unit_name(model), args.scale, args.softcap, (long long)args.window);
        return SIFR_NO_VALUE;
    }
    if (!(args.alibi >= 0) || !isfinite((float)args.alibi) ||
        (args.alibi > 0 && (args.softcap > 0 || args.bidirectional))) {
        MODEL_WRONG(model,
                    "unit %s: attention: a bias by distance, %g, must not be negative, and needs "
                    "causal attention without a soft cap",
                    model_unit_name(model), args.alibi);
        return SIFR_NO_VALUE;
    }
    int32_t segments = model_index(args.segments);
    if (args.segments.id && !model_is_input(model, args.segments)) {
        MODEL_WRONG(model, "unit %s: attention: segments must be an input of whole numbers",
                    model_unit_name(model));
        return SIFR_NO_VALUE;
    }
    if (!positions_fit(model, &args, query->columns)) return SIFR_NO_VALUE;
    model_node node = model_make_node(&model_op_attention);
    node.x[0] = model_index(args.q);
    node.x[1] = model_index(args.k);
    node.x[2] = model_index(args.v);
    node.x[3] = segments;
    node.x[4] = model_index(args.position_keys);
    node.x[5] = model_index(args.position_queries);
    node.attributes.attention.buckets = (int32_t)args.buckets;
    node.attributes.attention.most_distance = (int32_t)args.most_distance;
    node.attributes.attention.heads = (int32_t)heads;
    node.attributes.attention.kv_heads = (int32_t)kv_heads;
    node.attributes.attention.head_dim = (int32_t)head_dim;
    node.attributes.attention.scale = scale;
    node.attributes.attention.softcap = (float)args.softcap;
    node.attributes.attention.window = args.window;
    node.attributes.attention.alibi = (float)args.alibi;
    node.attributes.attention.alibi_heads = (int32_t)heads;
    node.attributes.attention.bidirectional = args.bidirectional;
    node.attributes.attention.dropout = (float)args.dropout;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, query->columns);
}
