/* Causal attention inside each sequence. */
#include "model/builder.h"

static void saved_attention(const model_node *node, int64_t tokens, int64_t *rows,
                            int64_t *columns) {
    *rows = node->attributes.attention.heads;
    *columns = tokens;
}

/* Pairs of a query and a key that are looked at. */
static double pairs(const device_call *call, bool full) {
    double length = (double)call->attributes.attention.length;
    double sequences = (double)call->attributes.attention.sequences;
    if (call->kernel == DEVICE_ATTENTION_CACHED) return (double)call->x[0].rows * length;
    return full ? sequences * length * length : sequences * length * (length + 1) / 2;
}

/* Scores and the weighted sum: two products of 2 x head_dim a pair and head. */
static double attention_operations(const device_call *call, bool full) {
    const device_attributes *a = &call->attributes;
    double width = (double)a->attention.heads * (double)a->attention.head_dim;
    return 4 * pairs(call, full) * width;
}

static void note_extent(device_attributes *attributes, const model_extent *extent) {
    attributes->attention.sequences = extent->sequences;
    attributes->attention.length = extent->length;
    if (!extent->training) attributes->attention.dropout = 0;
}

const model_op model_op_attention = {
    .name = "attention",
    .forward = DEVICE_ATTENTION,
    .backward = DEVICE_ATTENTION_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_X2 | MODEL_KEEP_Y | MODEL_KEEP_SAVED,
    .gradients = 7,
    .saved = saved_attention,
    .operations = attention_operations,
    .backward_factor = 2.5, /* five products: the scores are computed again */
    .caches = true,
    .cached = DEVICE_ATTENTION_CACHED,
    .complete = note_extent,
};

sifr_value sifr_attention(sifr_model *model, sifr_attention_args args) {
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
    model_node node = model_make_node(&model_op_attention);
    node.x[0] = model_index(args.q);
    node.x[1] = model_index(args.k);
    node.x[2] = model_index(args.v);
    node.attributes.attention.heads = (int32_t)heads;
    node.attributes.attention.kv_heads = (int32_t)kv_heads;
    node.attributes.attention.head_dim = (int32_t)head_dim;
    node.attributes.attention.scale = (float)(1 / __builtin_sqrt((double)head_dim));
    node.attributes.attention.dropout = (float)args.dropout;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, query->columns);
}
