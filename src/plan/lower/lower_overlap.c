/* Sums over tensor ranks beside computing (tp_overlap_comm; after Wang et al., Overlap
 * Communication with Dependent Computation via Decomposition, ASPLOS 2023). A product goes through
 * its rows a tile at a time, and the ranks add up one tile while they compute the next. So does a
 * product's gradient of its input; that of its weights, which no rank waits for, comes when the
 * last tile is on its way (Megatron's and DeepSpeed's overlap).
 *
 * A tile's sum is a reduction to this rank's slice and a gather of all slices: the bytes and the
 * bits of PLAN_SUM, whose second half begins only where it is waited for. The gather comes behind
 * the next tile's reduction, so that the ranks have something to move while the host comes to it.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

/* Products of part of the rows have the bits of all rows where they begin at a multiple of their
 * tiles, which are 256 rows or a part of that (device/cpu/product). Each call packs the weight
 * again, so that there are few. */
enum { ROWS = 256, MOST_TILES = 4 };

static bool is_asked_for(const lower_state *state) {
    const plan_settings *settings = &state->s->settings;
    return settings->step.mesh.tp_overlap_comm &&
           plan_mesh_ranks(&settings->mesh, PLAN_TENSORS) > 1;
}

/* Of a sum of so many columns; each tile is divided among the ranks. */
static int64_t rows_of_tile(const lower_state *state, int64_t columns) {
    int64_t ranks = plan_mesh_ranks(&state->s->settings.mesh, PLAN_TENSORS), rows = ROWS;
    while (rows * columns % ranks) rows += ROWS;
    return base_ceil_to((state->tokens + MOST_TILES - 1) / MOST_TILES, rows);
}

static bool is_product(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    return node->op->layout == MODEL_LAYOUT_PRODUCT && state->tiles.region[n] < 0 &&
           lower_rows(state, node->y, false) == state->tokens &&
           lower_rows(state, node->x[0], false) == state->tokens;
}

/* The node that adds up the gradient of a product's input, where there is one; else -1. */
static int32_t entry_of(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    const model_value *x = &state->model->values[node->x[0]];
    int32_t maker = x->base >= 0 ? -1 : x->node;
    if (maker < 0 || state->model->nodes[maker].unit != node->unit) return -1;
    bool sums = state->model->nodes[maker].op->sums_gradient &&
                lower_has_gradient(state, state->model->nodes[maker].x[0]);
    return sums ? maker : -1;
}

/* Whether product n makes the last part of its input's gradient. */
static bool is_last_part(const lower_state *state, int32_t n, int32_t entry) {
    for (int32_t m = entry + 1; m < n; m++) {
        for (int i = 0; i < DEVICE_INPUTS; i++) {
            int32_t x = state->model->nodes[m].x[i], whole = state->model->nodes[entry].y;
            if (x >= 0 && (x == whole || state->model->values[x].base == whole)) return false;
        }
    }
    return true;
}

/* Whether the sum behind product n is its only reader, and adds up where the parts are. */
static bool is_summed_behind(const lower_state *state, int32_t n) {
    const sifr_model *model = state->model;
    const model_node *node = &model->nodes[n], *next = node + 1;
    if ((size_t)n + 1 == model->node_count) return false;
    return next->op->sums && next->x[0] == node->y && next->unit == node->unit &&
           state->in_place[n + 1];
}

/* With tp_exact a product has its own sum. */
static bool is_summed(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    return node->summed ? node->attributes.linear.cut_inputs : is_summed_behind(state, n);
}

static bool sums_gradient(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    if (node->summed)
        return !node->attributes.linear.cut_inputs && lower_has_gradient(state, node->x[0]);
    int32_t entry = entry_of(state, n);
    return entry >= 0 && is_last_part(state, n, entry);
}

bool lower_sums_tiles(const lower_state *state, int32_t n, bool back) {
    if (!is_asked_for(state) || !is_product(state, n)) return false;
    const model_node *node = &state->model->nodes[n];
    int64_t columns = state->model->values[back ? node->x[0] : node->y].columns;
    if (rows_of_tile(state, columns) >= state->tokens) return false;
    return back ? sums_gradient(state, n) : is_summed(state, n);
}

void lower_first_tile(lower_state *state, int64_t columns) {
    int64_t rows = rows_of_tile(state, columns);
    base_assert(state->part.region < 0 && rows < state->tokens);
    state->part = (lower_part){.rows = rows, .region = -1, .summed = rows};
}

bool lower_next_tile(lower_state *state) {
    lower_part *part = &state->part;
    int64_t first = part->first + part->summed;
    base_assert(part->summed > 0);
    if (first >= state->tokens) {
        *part = lower_whole(state);
        return false;
    }
    part->first = first;
    part->rows = base_min_i64(part->summed, state->tokens - first);
    part->tile++;
    return true;
}

/* A weight that serves twice in the unit has its gradients added up in the order of its uses. */
static bool serves_twice(const lower_state *state, int32_t n) {
    const sifr_model *model = state->model;
    const model_unit *u = &model->units[model->nodes[n].unit];
    for (int32_t m = u->first_node; m < u->first_node + u->nodes; m++)
        for (int i = 0; m != n && i < DEVICE_WEIGHTS * DEVICE_WEIGHTS; i++) {
            int32_t w = model->nodes[n].w[i / DEVICE_WEIGHTS];
            if (w >= 0 && model->nodes[m].w[i % DEVICE_WEIGHTS] == w) return true;
        }
    return false;
}

bool lower_waits_for_sum(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    if (!is_asked_for(state) || !is_product(state, n) || !state->carries[n]) return false;
    if (!lower_can_split(state, n) || serves_twice(state, n)) return false;
    return node->summed ? sums_gradient(state, n) : entry_of(state, n) >= 0;
}

lower_operand lower_rows_of(const lower_state *state, const lower_operand *all) {
    const device_matrix *m = &all->matrix;
    lower_operand out = *all;
    out.offset += state->part.first * m->stride * base_dtype_bytes(m->dtype);
    out.matrix.rows = state->part.rows;
    return out;
}

static sifr_status start(lower_state *state, int32_t n, plan_action action, const lower_operand *x,
                         const lower_operand *y, sifr_error *error) {
    plan_schedule *s = state->s;
    const lower_operand *slice = &state->summing.slice;
    plan_code code = plan_code_of(slice->matrix.dtype);
    BASE_TRY(plan_add_operand(s, PLAN_X0, x->buffer, x->offset, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, y->buffer, y->offset, error));
    return plan_add_collective(
        s,
        &(plan_collective){.action = action,
                           .span = PLAN_TENSORS,
                           .encoding = code,
                           .sum = slice->matrix.dtype,
                           .segment = -1,
                           .unit = s->model->nodes[n].unit,
                           .micro_batch = state->micro_batch,
                           .bytes = plan_encoded_bytes(code, slice->matrix.columns)},
        error);
}

sifr_status lower_sum_tile(lower_state *state, int32_t n, int32_t value, const lower_operand *tile,
                           sifr_error *error) {
    lower_summing before = state->summing, *now = &state->summing;
    const plan_mesh *mesh = &state->s->settings.mesh;
    int32_t ranks = plan_mesh_ranks(mesh, PLAN_TENSORS),
            place = plan_mesh_place(mesh, PLAN_TENSORS);
    int64_t elements = tile->matrix.rows * tile->matrix.columns / ranks;
    base_assert(tile->matrix.stride == tile->matrix.columns);
    base_assert(elements * ranks == tile->matrix.rows * tile->matrix.columns);
    base_assert(before.value < 0 || before.value == value);
    *now = (lower_summing){.value = value, .tile = *tile, .slice = *tile};
    now->slice.matrix = lower_matrix(1, elements, tile->matrix.dtype);
    now->slice.offset += place * elements * base_dtype_bytes(tile->matrix.dtype);
    BASE_TRY(start(state, n, PLAN_REDUCE, &now->tile, &now->slice, error));
    if (before.value < 0) return SIFR_OK;
    lower_summing after = *now;
    *now = before;
    BASE_TRY(lower_end_sum(state, n, error));
    *now = after;
    return SIFR_OK;
}

sifr_status lower_end_sum(lower_state *state, int32_t n, sifr_error *error) {
    lower_summing now = state->summing;
    base_assert(now.value >= 0);
    BASE_TRY(start(state, n, PLAN_GATHER, &now.slice, &now.tile, error));
    state->summing.value = -1;
    return SIFR_OK;
}
