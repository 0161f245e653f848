/* The public builder: every call adds to the description or records what is wrong with it. The
 * calls of ops are in ops/. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/inside.h"
#include "model/builder.h"

/* Room for one more element of an array of the model. */
#define MODEL_GROW(model, array, count, capacity)                                                  \
    (model_ok(model) && base_grow(&(model)->array, &(model)->capacity, (model)->count + 1,         \
                                  sizeof *(model)->array, &(model)->error) == SIFR_OK)

sifr_status sifr_model_create(sifr_model **out, sifr_error *error) {
    BASE_ENTER(error, out);
    BASE_TRY(base_alloc(1, sizeof **out, out, error));
    for (int i = 0; i < SIFR_INPUTS; i++) (*out)->inputs[i] = -1;
    return SIFR_OK;
}

void sifr_model_free(sifr_model *model) {
    BASE_ENTER_VOID(model);
    for (size_t i = 0; i < model->unit_count; i++) free(model->units[i].name);
    for (size_t i = 0; i < model->weight_count; i++) free(model->weights[i].name);
    for (size_t i = 0; i < model->table_count; i++) {
        free(model->tables[i].frequencies);
        free(model->tables[i].rule);
    }
    free(model->units);
    free(model->segments);
    free(model->weights);
    free(model->values);
    free(model->nodes);
    free(model->tables);
    free(model->groups);
    free(model->node_at);
    free(model);
}

const char *model_unit_name(const sifr_model *model) {
    return model->unit_count ? model->units[model->unit_count - 1].name : "(no unit)";
}

/* The text of a name that was not given. */
static const char *given_name(sifr_model *model, const char *what, const char *name) {
    if (!name) MODEL_WRONG(model, "%s: its name is NULL; give it one", what);
    return name ? name : "(NULL)";
}

void sifr_unit(sifr_model *model, const char *name) {
    BASE_ENTER_VOID(model);
    name = given_name(model, "unit", name);
    if (model->finished) MODEL_WRONG(model, "unit %s: the model is finished already", name);
    if (model->unit_count >= INT16_MAX) MODEL_WRONG(model, "unit %s: too many units", name);
    if (!MODEL_GROW(model, units, unit_count, unit_capacity)) return;
    model_unit *unit = &model->units[model->unit_count];
    *unit = (model_unit){.first_node = (int32_t)model->node_count,
                         .first_weight = (int32_t)model->weight_count};
    if (base_copy_text(name, strlen(name), &unit->name, &model->error) == SIFR_OK) {
        model->unit_count++;
    }
}

static sifr_weight add_weight(sifr_model *model, model_weight weight, const char *name) {
    int64_t elements, padded, end;
    name = given_name(model, "weight", name);
    if (!model->unit_count) MODEL_WRONG(model, "weight %s: begin a unit first", name);
    if (weight.rows < 1 || weight.columns < 1 || weight.rows > INT32_MAX ||
        weight.columns > INT32_MAX) {
        MODEL_WRONG(model, "weight %s: %lld x %lld is not a valid shape", name,
                    (long long)weight.rows, (long long)weight.columns);
    }
    if (!isfinite((float)weight.deviation))
        MODEL_WRONG(model, "weight %s: deviation %g", name, weight.deviation);
    if (!MODEL_GROW(model, weights, weight_count, weight_capacity)) return SIFR_NO_WEIGHT;
    model_unit *unit = &model->units[model->unit_count - 1];
    if (!base_mul_i64(weight.rows, weight.columns, &elements) ||
        !base_round_up_i64(elements, DEVICE_BLOCK, &padded) ||
        !base_add_i64(unit->elements, padded, &end) || end > INT64_MAX / 64) {
        MODEL_WRONG(model, "weight %s: too large", name);
        return SIFR_NO_WEIGHT;
    }
    weight.unit = (int32_t)model->unit_count - 1;
    if (base_copy_text(name, strlen(name), &weight.name, &model->error) != SIFR_OK) {
        return SIFR_NO_WEIGHT;
    }
    unit->elements = end;
    unit->weights++;
    model->weights[model->weight_count] = weight;
    return (sifr_weight){(int32_t)++model->weight_count};
}

sifr_weight sifr_weight_matrix(sifr_model *model, const char *name, int64_t rows, int64_t columns,
                               sifr_init init, double deviation) {
    BASE_ENTER_OR((sifr_weight){0}, model);
    return add_weight(
        model,
        (model_weight){.rows = rows, .columns = columns, .init = init, .deviation = deviation},
        name);
}

sifr_weight sifr_weight_kernel(sifr_model *model, const char *name, int64_t rows, int64_t columns,
                               int64_t size, sifr_init init, double deviation) {
    BASE_ENTER_OR((sifr_weight){0}, model);
    bool fits = size >= 1 && columns >= 1 && columns <= INT32_MAX / size;
    if (!fits)
        MODEL_WRONG(model, "weight %s: %lld x %lld x %lld is not a valid shape", name,
                    (long long)rows, (long long)columns, (long long)size);
    return add_weight(model,
                      (model_weight){.rows = rows,
                                     .columns = fits ? columns * size : 0,
                                     .size = size,
                                     .init = init,
                                     .deviation = deviation},
                      name);
}

sifr_weight sifr_weight_vector(sifr_model *model, const char *name, int64_t columns,
                               sifr_init init) {
    BASE_ENTER_OR((sifr_weight){0}, model);
    return add_weight(
        model, (model_weight){.rows = 1, .columns = columns, .vector = true, .init = init}, name);
}

void model_truncate(sifr_model *model, sifr_weight weight, double cutoff) {
    if (!model_ok(model)) return;
    base_assert(model_weight_index(weight) >= 0 && cutoff >= 0);
    model_weight *w = &model->weights[model_weight_index(weight)];
    w->cutoff = cutoff;
    w->has_zero_row = false;
}

void model_begin_at(sifr_model *model, sifr_weight weight, double value) {
    if (!model_ok(model)) return;
    base_assert(model_weight_index(weight) >= 0 && value != 0);
    model->weights[model_weight_index(weight)].start = value;
}

void model_known_number(sifr_model *model, const char *name, double value) {
    base_assert(value != 0);
    add_weight(model,
               (model_weight){.rows = 1,
                              .columns = 1,
                              .vector = true,
                              .scalar = true,
                              .known = true,
                              .constant = true,
                              .frozen = true,
                              .start = value},
               name);
}

int model_weight_shape(const model_weight *weight, int64_t shape[3]) {
    int rank = weight->scalar ? 0 : weight->vector ? 1 : weight->size ? 3 : 2;
    model_block whole = model_whole(weight);
    shape[0] = rank < 2 ? whole.columns[1] : whole.rows[1];
    shape[1] = rank == 3 ? whole.columns[1] / weight->size : whole.columns[1];
    shape[2] = weight->size;
    return rank;
}

static sifr_value add_value(sifr_model *model, model_value value) {
    if (!MODEL_GROW(model, values, value_count, value_capacity)) return SIFR_NO_VALUE;
    model->values[model->value_count] = value;
    return (sifr_value){(int32_t)++model->value_count};
}

/* The value of an input, made where it is asked for first. */
static sifr_value add_input(sifr_model *model, sifr_input input, model_value_kind kind,
                            int64_t columns) {
    if (model->inputs[input] < 0) {
        model_value value = {.kind = kind,
                             .input = input,
                             .unit = -1,
                             .node = -1,
                             .columns = columns,
                             .base = -1,
                             .table = -1};
        model->inputs[input] = model_index(add_value(model, value));
    }
    return (sifr_value){model->inputs[input] + 1};
}

sifr_value sifr_input_value(sifr_model *model, sifr_input input) {
    BASE_ENTER_OR((sifr_value){0}, model);
    if ((int)input < 0 || input >= SIFR_INPUTS || input == SIFR_TARGETS) {
        MODEL_WRONG(model, "input %d: there is no such input of whole numbers", (int)input);
        return SIFR_NO_VALUE;
    }
    return add_input(model, input, MODEL_VALUE_INPUT, 1);
}

sifr_value sifr_targets(sifr_model *model, int64_t columns) {
    BASE_ENTER_OR((sifr_value){0}, model);
    if (columns < 1 || columns > INT32_MAX) {
        MODEL_WRONG(model, "targets: %lld columns, but there must be 1 to %d", (long long)columns,
                    INT32_MAX);
        return SIFR_NO_VALUE;
    }
    sifr_value value = add_input(model, SIFR_TARGETS, MODEL_VALUE_TARGETS, columns);
    if (!value.id || model->values[model_index(value)].columns == columns) return value;
    MODEL_WRONG(model, "targets: %lld columns, but the model has asked for %lld before",
                (long long)columns, (long long)model->values[model_index(value)].columns);
    return SIFR_NO_VALUE;
}

static bool has_head(const sifr_model *model) {
    return model->node_count && model->nodes[model->node_count - 1].op->makes_loss;
}

void model_learn(sifr_model *model, const model_objective *objective) {
    const model_objective_row *row = objective->row, *before = model->objective.row;
    if (row) row->check(model, objective);
    if (row && has_head(model))
        MODEL_WRONG(model, "%s: the head is there already; call it before the head", row->call);
    if (row && before && row != before)
        MODEL_WRONG(model, "%s: %s was called before; leave one of them out", row->call,
                    before->call);
    model->objective = *objective;
}

void sifr_pack(sifr_model *model) {
    BASE_ENTER_VOID(model);
    if (model->unit_count)
        MODEL_WRONG(model, "pack: a unit has begun already; call it before (%s)",
                    model_unit_name(model));
    model->packed = true;
}

sifr_value model_segments(sifr_model *model, sifr_value given) {
    return given.id || !model->packed ? given : sifr_input_value(model, SIFR_SEGMENTS);
}

sifr_value sifr_tokens(sifr_model *model) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return sifr_input_value(model, SIFR_TOKENS);
}

sifr_value sifr_positions(sifr_model *model) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return sifr_input_value(model, SIFR_POSITIONS);
}

sifr_value sifr_labels(sifr_model *model) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return sifr_input_value(model, SIFR_LABELS);
}

const model_value *model_activation(sifr_model *model, sifr_value value, const char *op) {
    if (!model_ok(model)) return NULL;
    int32_t at = model_index(value);
    if (at < 0 || (size_t)at >= model->value_count ||
        model->values[at].kind != MODEL_VALUE_ACTIVATION) {
        MODEL_WRONG(model, "unit %s: %s: an operand is not an activation", model_unit_name(model),
                    op);
        return NULL;
    }
    return &model->values[at];
}

const model_weight *model_weight_of(sifr_model *model, sifr_weight weight, const char *op) {
    if (!model_ok(model)) return NULL;
    int32_t at = model_weight_index(weight);
    if (at < 0 || (size_t)at >= model->weight_count) {
        MODEL_WRONG(model, "unit %s: %s: a weight is missing", model_unit_name(model), op);
        return NULL;
    }
    return &model->weights[at];
}

bool model_is_input(const sifr_model *model, sifr_value value) {
    int32_t at = model_index(value);
    return at >= 0 && (size_t)at < model->value_count &&
           model->values[at].kind == MODEL_VALUE_INPUT;
}

bool model_vector_fits(sifr_model *model, sifr_weight weight, int64_t columns, const char *op) {
    if (!weight.id) return true;
    const model_weight *w = model_weight_of(model, weight, op);
    if (w && w->rows == 1 && w->columns == columns) return true;
    if (w) {
        MODEL_WRONG(model, "unit %s: %s: %s has %lld x %lld elements, but %lld are needed",
                    model_unit_name(model), op, w->name, (long long)w->rows, (long long)w->columns,
                    (long long)columns);
    }
    return false;
}

/* The rows of a node's output: those of its inputs, or of its weight. A mistake where they differ,
 * or where the op needs a row for each token. */
static int64_t rows_of_node(sifr_model *model, const model_node *node) {
    const model_op *op = node->op;
    int64_t rows = -1;
    if (!model_ok(model)) return 0;
    base_assert(!op->makes_rows || node->w[0] >= 0);
    if (op->makes_rows) return model->weights[node->w[0]].rows;
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        if (node->x[i] < 0) continue;
        const model_value *x = &model->values[node->x[i]];
        bool constant = op->constant_rows & (1 << i);
        if (x->kind == MODEL_VALUE_TABLE || (constant && x->rows > 0)) continue;
        bool fits = !constant && (rows < 0 || x->rows == rows) &&
                    (x->rows == 0 || op->by_row || op->any_rows);
        if (!fits) {
            MODEL_WRONG(model,
                        "unit %s: %s: input %d has %lld rows (0: one for each token), which do not "
                        "fit the op or its other inputs",
                        model_unit_name(model), op->name, i, (long long)x->rows);
            return 0;
        }
        rows = x->rows;
    }
    return rows < 0 ? 0 : rows;
}

sifr_value model_add_node(sifr_model *model, model_node node, model_value_kind kind,
                          int64_t columns) {
    base_assert(columns >= 1);
    const char *op = node.op->name;
    if (model->unit_count == 0) MODEL_WRONG(model, "%s: begin a unit first", op);
    if (model->node_count && model->nodes[model->node_count - 1].op->makes_loss) {
        MODEL_WRONG(model, "unit %s: %s: nothing may follow head_loss", model_unit_name(model), op);
    }
    int64_t rows = rows_of_node(model, &node), elements;
    if (!base_mul_i64(rows, columns, &elements) || elements > INT64_MAX / 64)
        MODEL_WRONG(model, "unit %s: %s: %lld x %lld values are too many", model_unit_name(model),
                    op, (long long)rows, (long long)columns);
    if (model->node_count >= INT32_MAX / 2) MODEL_WRONG(model, "%s: too many ops", op);
    if (!MODEL_GROW(model, nodes, node_count, node_capacity)) return SIFR_NO_VALUE;
    node.unit = (int32_t)model->unit_count - 1;
    node.attributes.op = (int32_t)model->node_count;
    sifr_value y = add_value(model, (model_value){.kind = kind,
                                                  .unit = node.unit,
                                                  .node = (int32_t)model->node_count,
                                                  .columns = columns,
                                                  .rows = rows,
                                                  .base = -1,
                                                  .table = -1});
    if (!y.id) return y;
    node.y = model_index(y);
    model->nodes[model->node_count++] = node;
    model->units[node.unit].nodes++;
    return y;
}

model_node model_make_node(const model_op *op) {
    model_node node = {.op = op, .y = -1};
    for (int i = 0; i < DEVICE_INPUTS; i++) node.x[i] = -1;
    for (int i = 0; i < DEVICE_WEIGHTS; i++) node.w[i] = -1;
    return node;
}

sifr_value sifr_slice(sifr_model *model, sifr_value x, int64_t first, int64_t columns) {
    BASE_ENTER_OR((sifr_value){0}, model);
    const model_value *in = model_activation(model, x, "slice");
    if (!in) return SIFR_NO_VALUE;
    if (first < 0 || columns < 1 || first > in->columns - columns) {
        MODEL_WRONG(model, "unit %s: slice: columns %lld to %lld of %lld", model_unit_name(model),
                    (long long)first, (long long)(first + columns), (long long)in->columns);
        return SIFR_NO_VALUE;
    }
    if (in->base >= 0) {
        MODEL_WRONG(model, "unit %s: slice: of a slice", model_unit_name(model));
        return SIFR_NO_VALUE;
    }
    model_value value = {.kind = MODEL_VALUE_ACTIVATION,
                         .unit = in->unit,
                         .node = in->node,
                         .columns = columns,
                         .rows = in->rows,
                         .base = model_index(x),
                         .first = first,
                         .table = -1};
    return add_value(model, value);
}

static bool has_angles(const model_table *table, const model_angles *angles) {
    size_t bytes = (size_t)(angles->rotary_dim / 2) * sizeof *angles->frequencies;
    if (table->rotary_dim != angles->rotary_dim || !table->rule != !angles->rule) return false;
    if (table->rule) return !memcmp(table->rule, angles->rule, sizeof *table->rule);
    return table->scale == angles->scale && !memcmp(table->frequencies, angles->frequencies, bytes);
}

static sifr_status copy_angles(const model_angles *from, model_table *out, sifr_error *error) {
    size_t half = (size_t)from->rotary_dim / 2;
    *out = (model_table){.rotary_dim = from->rotary_dim, .scale = from->scale, .value = -1};
    if (from->rule) {
        BASE_TRY(base_alloc(1, sizeof *out->rule, &out->rule, error));
        memcpy(out->rule, from->rule, sizeof *out->rule);
        return SIFR_OK;
    }
    BASE_TRY(base_alloc(half, sizeof *out->frequencies, &out->frequencies, error));
    memcpy(out->frequencies, from->frequencies, half * sizeof *out->frequencies);
    return SIFR_OK;
}

int32_t model_add_table(sifr_model *model, const model_angles *angles) {
    for (size_t i = 0; i < model->table_count; i++) {
        if (has_angles(&model->tables[i], angles)) return model->tables[i].value;
    }
    if (!MODEL_GROW(model, tables, table_count, table_capacity)) return -1;
    model_table *table = &model->tables[model->table_count];
    if (copy_angles(angles, table, &model->error) != SIFR_OK) return -1;
    table->value =
        model_index(add_value(model, (model_value){.kind = MODEL_VALUE_TABLE,
                                                   .unit = -1,
                                                   .node = -1,
                                                   .columns = angles->rotary_dim,
                                                   .base = -1,
                                                   .table = (int32_t)model->table_count}));
    return model->tables[model->table_count++].value;
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
    BASE_ENTER(error, model);
    if (!model_ok(model)) {
        return base_fail(error, model->error.status, "%s", model->error.message);
    }
    if (!model->node_count || !model->nodes[model->node_count - 1].op->makes_loss) {
        return base_fail(error, SIFR_USAGE, "model: it must end with head_loss");
    }
    if (model->inputs[SIFR_TOKENS] < 0) {
        return base_fail(error, SIFR_USAGE, "model: nothing in it reads the tokens");
    }
    BASE_TRY(check_names(model, error));
    BASE_TRY(model_arrange(model, error));
    model->finished = true;
    return SIFR_OK;
}

int64_t sifr_model_parameters(const sifr_model *model) {
    BASE_ENTER_OR(0, model);
    int64_t sum = 0;
    for (size_t i = 0; i < model->weight_count; i++) {
        sum += model->weights[i].rows * model->weights[i].columns;
    }
    return sum;
}
