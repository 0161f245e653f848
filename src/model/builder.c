/* The public builder: every call adds to the description or records what is wrong with it. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "model/description.h"

static const sifr_value no_value = {-1};

static bool model_ok(const sifr_model *model) {
    return model->error.status == SIFR_OK;
}

#define MODEL_WRONG(model, ...)                                                                    \
    do {                                                                                           \
        if (model_ok(model)) base_set_error(&(model)->error, SIFR_USAGE, __VA_ARGS__);             \
    } while (0)

/* Room for one more element of an array of the model. */
#define MODEL_GROW(model, array, count, room)                                                      \
    (model_ok(model) && base_grow(&(model)->array, &(model)->room, (model)->count + 1,             \
                                  sizeof *(model)->array, &(model)->error) == SIFR_OK)

sifr_status sifr_model_create(sifr_model **out, sifr_error *error) {
    BASE_TRY(base_alloc(1, sizeof **out, out, error));
    (*out)->tokens = (*out)->positions = (*out)->labels = -1;
    return SIFR_OK;
}

void sifr_model_free(sifr_model *model) {
    if (!model) return;
    for (size_t i = 0; i < model->unit_count; i++) free(model->units[i].name);
    for (size_t i = 0; i < model->weight_count; i++) free(model->weights[i].name);
    for (size_t i = 0; i < model->table_count; i++) free(model->tables[i].frequencies);
    free(model->units);
    free(model->weights);
    free(model->values);
    free(model->nodes);
    free(model->tables);
    free(model);
}

static const char *unit_name(const sifr_model *model) {
    return model->unit_count ? model->units[model->unit_count - 1].name : "(no unit)";
}

void sifr_unit(sifr_model *model, const char *name) {
    if (model->finished) MODEL_WRONG(model, "unit %s: the model is finished already", name);
    if (model->unit_count >= INT16_MAX) MODEL_WRONG(model, "unit %s: too many units", name);
    if (!MODEL_GROW(model, units, unit_count, unit_room)) return;
    model_unit *unit = &model->units[model->unit_count];
    *unit = (model_unit){.first_node = (int32_t)model->node_count,
                         .first_weight = (int32_t)model->weight_count};
    if (base_copy_text(name, strlen(name), &unit->name, &model->error) == SIFR_OK) {
        model->unit_count++;
    }
}

static sifr_weight add_weight(sifr_model *model, model_weight weight, const char *name) {
    int64_t elements, padded, end;
    if (!model->unit_count) MODEL_WRONG(model, "weight %s: begin a unit first", name);
    if (weight.rows < 1 || weight.columns < 1 || weight.rows > INT32_MAX ||
        weight.columns > INT32_MAX) {
        MODEL_WRONG(model, "weight %s: %lld x %lld is no shape", name, (long long)weight.rows,
                    (long long)weight.columns);
    }
    if (!MODEL_GROW(model, weights, weight_count, weight_room)) return SIFR_NO_WEIGHT;
    model_unit *unit = &model->units[model->unit_count - 1];
    if (!base_mul_i64(weight.rows, weight.columns, &elements) ||
        !base_round_up_i64(elements, DEVICE_BLOCK, &padded) ||
        !base_add_i64(unit->elements, padded, &end) || end > INT64_MAX / 64) {
        MODEL_WRONG(model, "weight %s: too large", name);
        return SIFR_NO_WEIGHT;
    }
    weight.unit = (int32_t)model->unit_count - 1;
    weight.offset = unit->elements;
    if (base_copy_text(name, strlen(name), &weight.name, &model->error) != SIFR_OK) {
        return SIFR_NO_WEIGHT;
    }
    unit->elements = end;
    unit->weights++;
    model->weights[model->weight_count] = weight;
    return (sifr_weight){(int32_t)model->weight_count++};
}

sifr_weight sifr_weight_matrix(sifr_model *model, const char *name, int64_t rows, int64_t columns,
                               sifr_init init, double deviation) {
    return add_weight(
        model,
        (model_weight){.rows = rows, .columns = columns, .init = init, .deviation = deviation},
        name);
}

sifr_weight sifr_weight_vector(sifr_model *model, const char *name, int64_t columns,
                               sifr_init init) {
    return add_weight(
        model, (model_weight){.rows = 1, .columns = columns, .vector = true, .init = init}, name);
}

static sifr_value add_value(sifr_model *model, model_value value) {
    if (!MODEL_GROW(model, values, value_count, value_room)) return no_value;
    model->values[model->value_count] = value;
    return (sifr_value){(int32_t)model->value_count++};
}

static sifr_value add_input(sifr_model *model, int32_t *known, model_value_kind kind) {
    if (*known < 0) {
        *known =
            add_value(
                model,
                (model_value){
                    .kind = kind, .unit = -1, .node = -1, .columns = 1, .base = -1, .table = -1})
                .id;
    }
    return (sifr_value){*known};
}

sifr_value sifr_tokens(sifr_model *model) {
    return add_input(model, &model->tokens, MODEL_VALUE_TOKENS);
}

sifr_value sifr_positions(sifr_model *model) {
    return add_input(model, &model->positions, MODEL_VALUE_POSITIONS);
}

sifr_value sifr_labels(sifr_model *model) {
    return add_input(model, &model->labels, MODEL_VALUE_LABELS);
}

/* The value behind a handle, if it is an activation; else records that `op` got a wrong one. */
static const model_value *activation(sifr_model *model, sifr_value value, const char *op) {
    if (!model_ok(model)) return NULL;
    if (value.id < 0 || (size_t)value.id >= model->value_count ||
        model->values[value.id].kind != MODEL_VALUE_ACTIVATION) {
        MODEL_WRONG(model, "unit %s: %s: an operand is no activation", unit_name(model), op);
        return NULL;
    }
    return &model->values[value.id];
}

static const model_weight *weight_of(sifr_model *model, sifr_weight weight, const char *op) {
    if (!model_ok(model)) return NULL;
    if (weight.id < 0 || (size_t)weight.id >= model->weight_count) {
        MODEL_WRONG(model, "unit %s: %s: a weight is missing", unit_name(model), op);
        return NULL;
    }
    return &model->weights[weight.id];
}

/* True if `weight` is absent or a vector of `columns`. */
static bool vector_fits(sifr_model *model, sifr_weight weight, int64_t columns, const char *op) {
    if (weight.id < 0) return true;
    const model_weight *w = weight_of(model, weight, op);
    if (w && w->rows == 1 && w->columns == columns) return true;
    if (w) {
        MODEL_WRONG(model, "unit %s: %s: %s has %lld x %lld elements, %lld are needed",
                    unit_name(model), op, w->name, (long long)w->rows, (long long)w->columns,
                    (long long)columns);
    }
    return false;
}

static sifr_value add_node(sifr_model *model, model_node node, model_value_kind kind,
                           int64_t columns) {
    const char *op = model_op_get(node.op)->name;
    if (model->unit_count == 0) MODEL_WRONG(model, "%s: begin a unit first", op);
    if (model->node_count && model->nodes[model->node_count - 1].op == MODEL_HEAD_LOSS) {
        MODEL_WRONG(model, "unit %s: %s: nothing may follow head_loss", unit_name(model), op);
    }
    if (model->node_count >= INT32_MAX / 2) MODEL_WRONG(model, "%s: too many ops", op);
    if (!MODEL_GROW(model, nodes, node_count, node_room)) return no_value;
    node.unit = (int32_t)model->unit_count - 1;
    node.attributes.op = (int32_t)model->node_count;
    sifr_value y = add_value(model, (model_value){.kind = kind,
                                                  .unit = node.unit,
                                                  .node = (int32_t)model->node_count,
                                                  .columns = columns,
                                                  .base = -1,
                                                  .table = -1});
    if (y.id < 0) return y;
    node.y = y.id;
    model->nodes[model->node_count++] = node;
    model->units[node.unit].nodes++;
    return y;
}

#define MODEL_NODE(kind, ...)                                                                      \
    ((model_node){.op = (kind), .x = {-1, -1, -1, -1}, .w = {-1, -1}, __VA_ARGS__})

sifr_value sifr_embedding(sifr_model *model, sifr_value ids, sifr_weight table) {
    const model_weight *w = weight_of(model, table, "embedding");
    if (!w) return no_value;
    bool known = ids.id >= 0 && (ids.id == model->tokens || ids.id == model->positions);
    if (!known) {
        MODEL_WRONG(model, "unit %s: embedding: ids must be tokens or positions", unit_name(model));
        return no_value;
    }
    model_node node = MODEL_NODE(MODEL_EMBEDDING, .y = -1);
    node.x[0] = ids.id;
    node.w[0] = table.id;
    return add_node(model, node, MODEL_VALUE_ACTIVATION, w->columns);
}

static sifr_value add_linear(sifr_model *model, sifr_value x, sifr_weight weight, sifr_weight bias,
                             bool transposed) {
    const model_value *in = activation(model, x, "linear");
    const model_weight *w = in ? weight_of(model, weight, "linear") : NULL;
    if (!w) return no_value;
    int64_t from = transposed ? w->rows : w->columns, to = transposed ? w->columns : w->rows;
    if (in->columns != from) {
        MODEL_WRONG(model, "unit %s: linear: %s takes %lld columns, its input has %lld",
                    unit_name(model), w->name, (long long)from, (long long)in->columns);
        return no_value;
    }
    if (!vector_fits(model, bias, to, "linear")) return no_value;
    model_node node = MODEL_NODE(MODEL_LINEAR, .y = -1);
    node.x[0] = x.id;
    node.w[0] = weight.id;
    node.w[1] = bias.id;
    node.attributes.linear.transposed = transposed;
    return add_node(model, node, MODEL_VALUE_ACTIVATION, to);
}

sifr_value sifr_linear(sifr_model *model, sifr_value x, sifr_weight w, sifr_weight bias) {
    return add_linear(model, x, w, bias, false);
}

sifr_value sifr_conv1d(sifr_model *model, sifr_value x, sifr_weight w, sifr_weight bias) {
    return add_linear(model, x, w, bias, true);
}

static sifr_value add_norm(sifr_model *model, model_op op, sifr_value x, sifr_weight scale,
                           sifr_weight bias, double epsilon) {
    const char *name = model_op_get(op)->name;
    const model_value *in = activation(model, x, name);
    if (!in || !weight_of(model, scale, name)) return no_value;
    if (!vector_fits(model, scale, in->columns, name)) return no_value;
    if (!vector_fits(model, bias, in->columns, name)) return no_value;
    if (!(epsilon >= 0 && epsilon < 1)) {
        MODEL_WRONG(model, "unit %s: %s: epsilon %g", unit_name(model), name, epsilon);
        return no_value;
    }
    model_node node = MODEL_NODE(op, .y = -1);
    node.x[0] = x.id;
    node.w[0] = scale.id;
    node.w[1] = bias.id;
    node.attributes.norm.epsilon = (float)epsilon;
    return add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

sifr_value sifr_layer_norm(sifr_model *model, sifr_value x, sifr_weight scale, sifr_weight bias,
                           double epsilon) {
    return add_norm(model, MODEL_LAYER_NORM, x, scale, bias, epsilon);
}

sifr_value sifr_rms_norm(sifr_model *model, sifr_value x, sifr_weight scale, double epsilon) {
    return add_norm(model, MODEL_RMS_NORM, x, scale, SIFR_NO_WEIGHT, epsilon);
}

sifr_value sifr_slice(sifr_model *model, sifr_value x, int64_t first, int64_t columns) {
    const model_value *in = activation(model, x, "slice");
    if (!in) return no_value;
    if (first < 0 || columns < 1 || first > in->columns - columns) {
        MODEL_WRONG(model, "unit %s: slice: columns %lld to %lld of %lld", unit_name(model),
                    (long long)first, (long long)(first + columns), (long long)in->columns);
        return no_value;
    }
    if (in->base >= 0) {
        MODEL_WRONG(model, "unit %s: slice: of a slice", unit_name(model));
        return no_value;
    }
    model_value value = {.kind = MODEL_VALUE_ACTIVATION,
                         .unit = in->unit,
                         .node = in->node,
                         .columns = columns,
                         .base = x.id,
                         .first = first,
                         .table = -1};
    return add_value(model, value);
}

/* The table for these angles, made once. */
static int32_t table_value(sifr_model *model, int64_t head_dim, const double *frequencies) {
    size_t half = (size_t)head_dim / 2;
    for (size_t i = 0; i < model->table_count; i++) {
        model_table *known = &model->tables[i];
        if (known->head_dim == head_dim &&
            !memcmp(known->frequencies, frequencies, half * sizeof *frequencies)) {
            return known->value;
        }
    }
    if (!MODEL_GROW(model, tables, table_count, table_room)) return -1;
    model_table *table = &model->tables[model->table_count];
    *table = (model_table){.head_dim = head_dim, .value = -1};
    if (base_alloc(half, sizeof *frequencies, &table->frequencies, &model->error) != SIFR_OK) {
        return -1;
    }
    memcpy(table->frequencies, frequencies, half * sizeof *frequencies);
    table->value = add_value(model, (model_value){.kind = MODEL_VALUE_TABLE,
                                                  .unit = -1,
                                                  .node = -1,
                                                  .columns = head_dim,
                                                  .base = -1,
                                                  .table = (int32_t)model->table_count})
                       .id;
    return model->tables[model->table_count++].value;
}

sifr_value sifr_rope(sifr_model *model, sifr_value x, int64_t head_dim, const double *frequencies) {
    const model_value *in = activation(model, x, "rope");
    if (!in) return no_value;
    int64_t columns = in->columns;
    if (head_dim < 2 || head_dim % 2 || columns % head_dim) {
        MODEL_WRONG(model, "unit %s: rope: heads of %lld do not divide %lld columns",
                    unit_name(model), (long long)head_dim, (long long)columns);
        return no_value;
    }
    model_node node = MODEL_NODE(MODEL_ROPE, .y = -1);
    node.x[0] = x.id;
    node.x[1] = sifr_positions(model).id;
    node.x[2] = table_value(model, head_dim, frequencies);
    node.attributes.rope.heads = (int32_t)(columns / head_dim);
    node.attributes.rope.head_dim = (int32_t)head_dim;
    return add_node(model, node, MODEL_VALUE_ACTIVATION, columns);
}

sifr_value sifr_attention(sifr_model *model, sifr_value q, sifr_value k, sifr_value v,
                          int64_t heads, int64_t kv_heads, double dropout) {
    const model_value *query = activation(model, q, "attention");
    const model_value *key = activation(model, k, "attention");
    const model_value *value = activation(model, v, "attention");
    if (!query || !key || !value) return no_value;
    bool fits = heads >= 1 && kv_heads >= 1 && heads % kv_heads == 0 &&
                query->columns % heads == 0 && key->columns == value->columns &&
                key->columns == query->columns / heads * kv_heads;
    if (!fits || !(dropout >= 0 && dropout < 1)) {
        MODEL_WRONG(model,
                    "unit %s: attention: %lld heads, %lld kv heads, columns %lld, %lld, %lld, "
                    "dropout %g do not fit",
                    unit_name(model), (long long)heads, (long long)kv_heads,
                    (long long)query->columns, (long long)key->columns, (long long)value->columns,
                    dropout);
        return no_value;
    }
    int64_t head_dim = query->columns / heads;
    model_node node = MODEL_NODE(MODEL_ATTENTION, .y = -1);
    node.x[0] = q.id;
    node.x[1] = k.id;
    node.x[2] = v.id;
    node.attributes.attention.heads = (int32_t)heads;
    node.attributes.attention.kv_heads = (int32_t)kv_heads;
    node.attributes.attention.head_dim = (int32_t)head_dim;
    node.attributes.attention.scale = (float)(1 / __builtin_sqrt((double)head_dim));
    node.attributes.attention.dropout = (float)dropout;
    return add_node(model, node, MODEL_VALUE_ACTIVATION, query->columns);
}

sifr_value sifr_gelu(sifr_model *model, sifr_value x, bool exact) {
    const model_value *in = activation(model, x, "gelu");
    if (!in) return no_value;
    model_node node = MODEL_NODE(MODEL_GELU, .y = -1);
    node.x[0] = x.id;
    node.attributes.gelu.exact = exact;
    return add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

static sifr_value add_binary(sifr_model *model, model_op op, sifr_value a, sifr_value b) {
    const char *name = model_op_get(op)->name;
    const model_value *left = activation(model, a, name), *right = activation(model, b, name);
    if (!left || !right) return no_value;
    if (left->columns != right->columns) {
        MODEL_WRONG(model, "unit %s: %s: %lld and %lld columns", unit_name(model), name,
                    (long long)left->columns, (long long)right->columns);
        return no_value;
    }
    model_node node = MODEL_NODE(op, .y = -1);
    node.x[0] = a.id;
    node.x[1] = b.id;
    return add_node(model, node, MODEL_VALUE_ACTIVATION, left->columns);
}

sifr_value sifr_silu_gate(sifr_model *model, sifr_value gate, sifr_value up) {
    return add_binary(model, MODEL_SILU_GATE, gate, up);
}

sifr_value sifr_add(sifr_model *model, sifr_value a, sifr_value b) {
    return add_binary(model, MODEL_ADD, a, b);
}

sifr_value sifr_multiply(sifr_model *model, sifr_value a, sifr_value b) {
    return add_binary(model, MODEL_MULTIPLY, a, b);
}

sifr_value sifr_dropout(sifr_model *model, sifr_value x, double probability) {
    const model_value *in = activation(model, x, "dropout");
    if (!in) return no_value;
    if (!(probability >= 0 && probability < 1)) {
        MODEL_WRONG(model, "unit %s: dropout: probability %g", unit_name(model), probability);
        return no_value;
    }
    if (probability == 0) return x;
    model_node node = MODEL_NODE(MODEL_DROPOUT, .y = -1);
    node.x[0] = x.id;
    node.attributes.dropout.probability = (float)probability;
    return add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

void sifr_head_loss(sifr_model *model, sifr_value x, sifr_weight w) {
    const model_value *in = activation(model, x, "head_loss");
    const model_weight *head = in ? weight_of(model, w, "head_loss") : NULL;
    if (!head) return;
    if (head->columns != in->columns) {
        MODEL_WRONG(model, "unit %s: head_loss: %s takes %lld columns, its input has %lld",
                    unit_name(model), head->name, (long long)head->columns, (long long)in->columns);
        return;
    }
    model_node node = MODEL_NODE(MODEL_HEAD_LOSS, .y = -1);
    node.x[0] = x.id;
    node.x[1] = sifr_labels(model).id;
    node.w[0] = w.id;
    add_node(model, node, MODEL_VALUE_LOSS, 1);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static sifr_status check_names(const sifr_model *model, sifr_error *error) {
    const char **names;
    sifr_status status = base_alloc(model->weight_count, sizeof *names, &names, error);
    if (status != SIFR_OK) return status;
    for (size_t i = 0; i < model->weight_count; i++) names[i] = model->weights[i].name;
    qsort(names, model->weight_count, sizeof *names, compare_names);
    for (size_t i = 1; i < model->weight_count && status == SIFR_OK; i++) {
        if (!strcmp(names[i - 1], names[i])) {
            status = base_fail(error, SIFR_USAGE, "weight %s: the name is used twice", names[i]);
        }
    }
    free(names);
    return status;
}

sifr_status sifr_model_finish(sifr_model *model, sifr_error *error) {
    if (!model_ok(model)) {
        return base_fail(error, model->error.status, "%s", model->error.message);
    }
    if (!model->node_count || model->nodes[model->node_count - 1].op != MODEL_HEAD_LOSS) {
        return base_fail(error, SIFR_USAGE, "model: it must end with head_loss");
    }
    if (model->tokens < 0) {
        return base_fail(error, SIFR_USAGE, "model: nothing in it reads the tokens");
    }
    BASE_TRY(check_names(model, error));
    model->finished = true;
    return SIFR_OK;
}

int64_t sifr_model_parameters(const sifr_model *model) {
    int64_t sum = 0;
    for (size_t i = 0; i < model->weight_count; i++) {
        sum += model->weights[i].rows * model->weights[i].columns;
    }
    return sum;
}
