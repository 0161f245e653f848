/* Cuts a tensor rank's part of a model by rows, where each row goes its own way. */
#include "model/shard_rows.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "model/part.h"

typedef struct rows_work {
    const sifr_model *logical, *from;
    sifr_model *part;
    bool *by_row;   /* by node: it works on the rank's rows as well as on all */
    bool *read;     /* by value: by such a node */
    bool *sliced;   /* by value */
    bool *cut;      /* by value: it has the rank's rows */
    bool *wanted;   /* by value that is whole: the rank's rows of it, too */
    int32_t *taken; /* by value: those rows; -1: not yet made */
    int32_t *whole; /* by value, those of the part, too: gathered in the unit that is being made;
                       -1: not yet */
} rows_work;

/* --- which values are cut --- */

/* Of tensor ranks, some columns alone or a part of a sum: all that the part of the model has beside
 * the logical one. */
static bool has_all_columns(const rows_work *work, int32_t value) {
    const model_value *v = &work->from->values[value];
    bool logical = value < (int32_t)work->logical->value_count;
    return logical && v->kind == MODEL_VALUE_ACTIVATION && v->rows == 0 && v->base < 0 &&
           v->columns == work->logical->values[value].columns;
}

/* Whether a node computes with the rank's rows alone as well as with all of them, bit by bit: of
 * its weights, too, which a norm's rows are added up for by runs. */
static bool is_by_row(const rows_work *work, const model_node *node) {
    bool fits = node->op->by_row && node->op->layout == MODEL_LAYOUT_PARTS &&
                has_all_columns(work, node->y) && !work->sliced[node->y];
    for (int w = 0; w < DEVICE_WEIGHTS && fits; w++) fits = node->w[w] < 0 || node->op->run_sums;
    for (int x = 0; x < DEVICE_INPUTS && fits; x++)
        fits = node->x[x] < 0 || (has_all_columns(work, node->x[x]) && !work->sliced[node->x[x]]);
    return fits;
}

static void find_by_row(rows_work *work) {
    const sifr_model *from = work->from;
    for (size_t v = 0; v < from->value_count; v++)
        if (from->values[v].base >= 0) work->sliced[from->values[v].base] = true;
    for (size_t n = 0; n < from->node_count; n++) {
        const model_node *node = &from->nodes[n];
        work->by_row[n] = is_by_row(work, node);
        for (int x = 0; x < DEVICE_INPUTS && work->by_row[n]; x++)
            if (node->x[x] >= 0) work->read[node->x[x]] = true;
    }
}

/* A sum over ranks begins the rows of a rank, and so does what comes whole from another unit. */
static bool begins(const rows_work *work, const model_node *node) {
    for (int x = 0; x < DEVICE_INPUTS; x++) {
        int32_t value = node->x[x];
        if (value < 0) continue;
        if (work->cut[value] || work->from->values[value].unit != node->unit) return true;
    }
    return false;
}

static void find_cut(rows_work *work) {
    const sifr_model *from = work->from;
    for (size_t n = 0; n < from->node_count; n++) {
        const model_node *node = &from->nodes[n];
        bool by_row = work->by_row[n];
        bool sum = node->op->sums && has_all_columns(work, node->y) && !work->sliced[node->y] &&
                   work->read[node->y];
        work->cut[node->y] = sum || (by_row && begins(work, node));
        for (int x = 0; x < DEVICE_INPUTS && by_row && work->cut[node->y]; x++)
            if (node->x[x] >= 0 && !work->cut[node->x[x]]) work->wanted[node->x[x]] = true;
    }
}

/* --- nodes --- */

static void add_move(rows_work *work, const model_op *op, const model_node *beside, int32_t x,
                     int32_t y) {
    model_part_node(work->part, model_bare_node(op, beside, x, y));
}

/* A value of the rank's rows as nodes read it that need all: one for those of a unit that follow
 * each other, with no other reader between, so that the gradients of all readers are added up in
 * the order of a rank that has all rows (lower_backward.c). */
static int32_t gather(rows_work *work, const model_node *reader, int32_t value) {
    int32_t *whole = &work->whole[value];
    if (*whole >= 0) return *whole;
    *whole = model_part_value(work->part, value, work->part->values[value].columns, reader->unit);
    add_move(work, &model_op_rows_gather, reader, value, *whole);
    return *whole;
}

/* Right behind what makes the value, so that its whole rows need not be kept. */
static void take(rows_work *work, const model_node *maker) {
    int32_t *taken = &work->taken[maker->y];
    *taken =
        model_part_value(work->part, maker->y, work->part->values[maker->y].columns, maker->unit);
    work->part->values[*taken].cut_rows = true;
    add_move(work, &model_op_rows_take, maker, maker->y, *taken);
}

/* What a node reads in place of a value. One that is also read by the rank's rows is read by these
 * alone, or its gradient would be added up in another order. */
static int32_t input_of(rows_work *work, const model_node *node, int32_t value) {
    int32_t own = work->cut[value] ? value : work->taken[value];
    if (own < 0 || node->op->sums) return value;
    if (!work->cut[node->y]) return gather(work, node, own);
    work->whole[own] = -1;
    return own;
}

static model_node node_of(rows_work *work, model_node node) {
    if (node.op->sums_gradient && work->cut[node.x[0]]) {
        work->whole[node.x[0]] = -1;
        node.op = &model_op_rows_enter;
        return node;
    }
    for (int x = 0; x < DEVICE_INPUTS; x++)
        if (node.x[x] >= 0) node.x[x] = input_of(work, &node, node.x[x]);
    if (node.op->sums && work->cut[node.y]) node.op = &model_op_rows_sum;
    return node;
}

static void make_nodes(rows_work *work) {
    const sifr_model *from = work->from;
    sifr_model *part = work->part;
    size_t values = from->value_count;
    for (size_t v = 0; v < values; v++) {
        part->values[v].cut_rows = work->cut[v];
        work->taken[v] = -1;
    }
    for (size_t u = 0; u < from->unit_count; u++) {
        int32_t first = from->units[u].first_node;
        part->units[u].first_node = (int32_t)part->node_count;
        part->units[u].nodes = 0;
        for (size_t v = 0; v < part->value_capacity; v++) work->whole[v] = -1;
        for (int32_t n = first; n < first + from->units[u].nodes; n++) {
            const model_node *node = &from->nodes[n];
            int32_t op = node->attributes.op;
            model_part_node(part, node_of(work, *node));
            if (from->node_at[op] == n) part->node_at[op] = (int32_t)part->node_count - 1;
            if (work->wanted[node->y]) take(work, node);
        }
    }
}

static sifr_status make_part(rows_work *work, sifr_error *error) {
    const sifr_model *from = work->from;
    size_t values = from->value_count, more = values + from->node_count * DEVICE_INPUTS;
    BASE_TRY(base_alloc(from->node_count, sizeof *work->by_row, &work->by_row, error));
    BASE_TRY(base_alloc(values, sizeof *work->read, &work->read, error));
    BASE_TRY(base_alloc(values, sizeof *work->sliced, &work->sliced, error));
    BASE_TRY(base_alloc(values, sizeof *work->cut, &work->cut, error));
    BASE_TRY(base_alloc(values, sizeof *work->wanted, &work->wanted, error));
    BASE_TRY(base_alloc(values, sizeof *work->taken, &work->taken, error));
    BASE_TRY(base_alloc(values + more, sizeof *work->whole, &work->whole, error));
    BASE_TRY(model_part_copy(from, more, more, work->part, error));
    find_by_row(work);
    find_cut(work);
    make_nodes(work);
    model_part_slices(work->part, values);
    return model_arrange(work->part, error);
}

sifr_status model_cut_rows(const sifr_model *logical, const sifr_model *part, sifr_model **out,
                           sifr_error *error) {
    base_assert(part->tensors > 1 && part->finished && !part->contexts);
    rows_work work = {.logical = logical, .from = part};
    BASE_TRY(base_alloc(1, sizeof *work.part, &work.part, error));
    sifr_status status = make_part(&work, error);
    free(work.by_row);
    free(work.read);
    free(work.sliced);
    free(work.cut);
    free(work.wanted);
    free(work.taken);
    free(work.whole);
    if (status == SIFR_OK)
        *out = work.part;
    else
        sifr_model_free(work.part);
    return status;
}
