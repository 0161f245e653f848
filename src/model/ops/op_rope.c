/* Rotary position embedding. */
#include <math.h>

#include "base/inside.h"
#include "model/builder.h"
#include "model/shard.h"

static int64_t blocks_of(const sifr_model *model, const model_node *node, bool common) {
    (void)common;
    return model_is_sliced(model, node->y) ? 0 : node->attributes.rope.heads;
}

static void divide_heads(const sifr_model *model, model_node *node, const model_share *share) {
    (void)model;
    node->attributes.rope.heads =
        (int32_t)(node->attributes.rope.heads / share->blocks * share->room);
}

const model_op model_op_rope = {
    .name = "rope",
    .forward = DEVICE_ROPE,
    .backward = DEVICE_ROPE_BACKWARD,
    .keep = MODEL_KEEP_X1 | MODEL_KEEP_X2,
    .gradients = 1,
    .in_place = true,
    .backward_in_place = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
    .blocks = blocks_of,
    .divide = divide_heads,
};

static sifr_value add_rope(sifr_model *model, sifr_value x, int64_t head_dim, bool interleaved,
                           const model_angles *angles) {
    const model_value *in = model_activation(model, x, "rope");
    int64_t rotary_dim = angles->rotary_dim;
    if (!in) return SIFR_NO_VALUE;
    if (head_dim < 2 || in->columns % head_dim) {
        MODEL_WRONG(model, "unit %s: rope: heads of %lld do not divide %lld columns",
                    model_unit_name(model), (long long)head_dim, (long long)in->columns);
        return SIFR_NO_VALUE;
    }
    if (rotary_dim < 2 || rotary_dim % 2 || rotary_dim > head_dim) {
        MODEL_WRONG(model, "unit %s: rope: %lld elements of heads of %lld cannot turn in pairs",
                    model_unit_name(model), (long long)rotary_dim, (long long)head_dim);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_rope);
    int64_t columns = in->columns;
    node.x[0] = model_index(x);
    node.x[1] = model_index(sifr_positions(model));
    node.x[2] = model_add_table(model, angles);
    node.attributes.rope.heads = (int32_t)(columns / head_dim);
    node.attributes.rope.head_dim = (int32_t)head_dim;
    node.attributes.rope.rotary_dim = (int32_t)rotary_dim;
    node.attributes.rope.interleaved = interleaved;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, columns);
}

sifr_value sifr_rope(sifr_model *model, sifr_rope_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    double scale = args.scale == 0 ? 1 : args.scale;
    if (!isfinite(scale)) {
        MODEL_WRONG(model, "unit %s: rope: scale %g", model_unit_name(model), scale);
        return SIFR_NO_VALUE;
    }
    if (!args.frequencies) {
        MODEL_WRONG(model, "unit %s: rope: frequencies: NULL; give one for each pair",
                    model_unit_name(model));
        return SIFR_NO_VALUE;
    }
    return add_rope(model, args.x, args.head_dim, args.interleaved,
                    &(model_angles){.rotary_dim = args.rotary_dim ? args.rotary_dim : args.head_dim,
                                    .frequencies = args.frequencies,
                                    .scale = scale});
}

sifr_value model_rotate(sifr_model *model, sifr_value x, int64_t head_dim, const model_rope *rope) {
    model_rope rule = *rope;
    if (!rule.rotary_dim) rule.rotary_dim = head_dim;
    return add_rope(model, x, head_dim, rule.interleaved,
                    &(model_angles){.rotary_dim = rule.rotary_dim, .rule = &rule});
}

void model_fill_table(const model_table *table, int64_t first, int64_t count, int64_t length,
                      float *rows) {
    int64_t half = table->rotary_dim / 2;
    for (int64_t i = 0; i < half; i++) {
        const model_rope *rule = table->rule;
        double f = rule ? model_rope_frequency(rule, length, i) : table->frequencies[i];
        for (int64_t p = 0; p < count; p++) {
            float *row = rows + p * table->rotary_dim;
            /* As in transformers: frequency, angle and products with the scale in fp32. */
            float scale = (float)(rule ? model_rope_scale(rule, first + p) : table->scale);
            float angle = (float)(first + p) * (float)f;
            row[i] = (float)cos((double)angle) * scale;
            row[half + i] = (float)sin((double)angle) * scale;
        }
    }
}

bool model_outgrows_cache(const sifr_model *model, int64_t before, int64_t after) {
    for (size_t t = 0; t < model->table_count; t++) {
        const model_rope *rule = model->tables[t].rule;
        if (!rule || !rule->phi3 || rule->kind != MODEL_ROPE_LONGROPE) continue;
        double most = rule->original_max_position;
        if ((double)before <= most && (double)after > most) return true;
    }
    return false;
}
