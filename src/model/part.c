#include "model/part.h"

#include <string.h>

#include "base/assert.h"
#include "base/heap.h"

int32_t model_part_value(sifr_model *part, int32_t like, int64_t columns, int32_t unit) {
    base_assert(part->value_count < part->value_capacity);
    part->values[part->value_count] = (model_value){.kind = MODEL_VALUE_ACTIVATION,
                                                    .unit = unit,
                                                    .columns = columns,
                                                    .rows = part->values[like].rows,
                                                    .base = -1,
                                                    .table = -1};
    return (int32_t)part->value_count++;
}

void model_part_node(sifr_model *part, model_node node) {
    base_assert(part->node_count < part->node_capacity);
    part->values[node.y].node = (int32_t)part->node_count;
    part->nodes[part->node_count++] = node;
    part->units[node.unit].nodes++;
}

model_node model_bare_node(const model_op *op, const model_node *beside, int32_t x, int32_t y) {
    model_node node = {.op = op, .unit = beside->unit, .y = y};
    for (int i = 0; i < DEVICE_INPUTS; i++) node.x[i] = i ? -1 : x;
    for (int i = 0; i < DEVICE_WEIGHTS; i++) node.w[i] = -1;
    node.attributes.op = beside->attributes.op;
    return node;
}

void model_part_slices(sifr_model *part, size_t count) {
    for (size_t v = 0; v < count; v++) {
        model_value *value = &part->values[v];
        if (value->base >= 0) value->node = part->values[value->base].node;
    }
}

static sifr_status copy_names(const sifr_model *from, sifr_model *to, sifr_error *error) {
    for (; to->unit_count < from->unit_count; to->unit_count++) {
        model_unit *unit = &to->units[to->unit_count];
        *unit = from->units[to->unit_count];
        BASE_TRY(base_copy_text(unit->name, strlen(unit->name), &unit->name, error));
    }
    for (; to->weight_count < from->weight_count; to->weight_count++) {
        model_weight *weight = &to->weights[to->weight_count];
        *weight = from->weights[to->weight_count];
        BASE_TRY(base_copy_text(weight->name, strlen(weight->name), &weight->name, error));
    }
    return SIFR_OK;
}

static sifr_status copy_tables(const sifr_model *from, sifr_model *to, sifr_error *error) {
    for (; to->table_count < from->table_count; to->table_count++) {
        const model_table *table = &from->tables[to->table_count];
        model_table *out = &to->tables[to->table_count];
        size_t half = (size_t)table->rotary_dim / 2;
        *out = *table;
        out->rule = NULL;
        out->frequencies = NULL;
        if (table->rule) {
            BASE_TRY(base_alloc(1, sizeof *out->rule, &out->rule, error));
            *out->rule = *table->rule;
        } else {
            BASE_TRY(base_alloc(half, sizeof *out->frequencies, &out->frequencies, error));
            memcpy(out->frequencies, table->frequencies, half * sizeof *out->frequencies);
        }
    }
    return SIFR_OK;
}

static sifr_status open_part(const sifr_model *from, size_t values, size_t nodes, sifr_model *to,
                             sifr_error *error) {
    to->value_count = from->value_count;
    to->group_count = to->group_capacity = from->group_count;
    BASE_TRY(base_alloc(from->unit_count, sizeof *to->units, &to->units, error));
    BASE_TRY(base_alloc(from->weight_count, sizeof *to->weights, &to->weights, error));
    BASE_TRY(base_alloc(from->table_count, sizeof *to->tables, &to->tables, error));
    BASE_TRY(base_alloc(from->group_count, sizeof *to->groups, &to->groups, error));
    BASE_TRY(base_alloc(values, sizeof *to->values, &to->values, error));
    BASE_TRY(base_alloc(nodes, sizeof *to->nodes, &to->nodes, error));
    BASE_TRY(base_alloc(from->node_count, sizeof *to->node_at, &to->node_at, error));
    to->unit_capacity = from->unit_count;
    to->weight_capacity = from->weight_count;
    to->table_capacity = from->table_count;
    to->value_capacity = values;
    to->node_capacity = nodes;
    memcpy(to->values, from->values, from->value_count * sizeof *to->values);
    if (from->group_count) memcpy(to->groups, from->groups, from->group_count * sizeof *to->groups);
    return SIFR_OK;
}

sifr_status model_part_copy(const sifr_model *from, size_t values, size_t nodes, sifr_model *to,
                            sifr_error *error) {
    memcpy(to->inputs, from->inputs, sizeof to->inputs);
    memcpy(to->media, from->media, sizeof to->media);
    to->media_count = from->media_count;
    to->finished = true;
    to->packed = from->packed;
    to->objective = from->objective;
    to->tensors = from->tensors;
    to->tensor_place = from->tensor_place;
    to->copies = from->copies;
    BASE_TRY(open_part(from, from->value_count + values, from->node_count + nodes, to, error));
    BASE_TRY(copy_names(from, to, error));
    return copy_tables(from, to, error);
}
