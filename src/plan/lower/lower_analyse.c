/* Analysis of a model before lowering: which ops write in place, which gradients are made in
 * pieces, which nodes are recomputed.
 */
#include <stdlib.h>

#include "base/heap.h"
#include "plan/lower/lower.h"

/* Finds nodes that may write their output over their first input, because no other node reads that
 * input in the forward or the backward pass. */
static void find_in_place(lower_state *state, const int32_t *uses) {
    const sifr_model *model = state->model;
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        const model_op *row = node->op;
        if (!row->in_place || (row->keep & MODEL_KEEP_X0)) continue;
        const model_value *x = &model->values[node->x[0]];
        if (x->base >= 0 || x->node < 0 || x->unit != node->unit || uses[node->x[0]] != 1) continue;
        const model_op *maker = model->nodes[x->node].op;
        state->in_place[n] = !(maker->keep & MODEL_KEEP_Y);
    }
}

/* Finds sliced values whose slices do not cover them exactly once, or which are also read whole. */
static sifr_status find_mixed(lower_state *state, const int32_t *uses, sifr_error *error) {
    const sifr_model *model = state->model;
    int64_t *covered;
    BASE_TRY(base_alloc(model->value_count, sizeof *covered, &covered, error));
    for (size_t v = 0; v < model->value_count; v++) {
        const model_value *value = &model->values[v];
        if (value->base < 0 || uses[v] == 0) continue;
        covered[value->base] += value->columns;
        if (uses[v] > 1) state->mixed[value->base] = true;
        for (size_t other = 0; other < v; other++) {
            const model_value *o = &model->values[other];
            if (o->base != value->base || uses[other] == 0) continue;
            bool apart =
                o->first + o->columns <= value->first || value->first + value->columns <= o->first;
            if (!apart) state->mixed[value->base] = true;
        }
    }
    for (size_t v = 0; v < model->value_count; v++) {
        if (covered[v] && (covered[v] != model->values[v].columns || uses[v])) {
            state->mixed[v] = true;
        }
    }
    for (size_t n = 0; n < model->node_count;
         n++) { /* gradients through add are shared, not copied */
        const model_node *node = &model->nodes[n];
        for (int i = 0; node->op->shares_gradient && i < DEVICE_INPUTS; i++) {
            if (node->x[i] < 0) continue;
            int32_t base = model->values[node->x[i]].base;
            if (base >= 0) state->mixed[base] = true;
        }
    }
    free(covered);
    return SIFR_OK;
}

int lower_kept(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    if (!state->carries[n]) return 0;
    bool trained = !state->model->weights[node->w[0] < 0 ? 0 : node->w[0]].frozen;
    if (!node->op->x_for_weights || trained || !lower_has_gradient(state, node->x[0]))
        return node->op->keep;
    return node->op->keep & ~MODEL_KEEP_X0;
}

/* Marks nodes whose output or statistics their own unit's backward pass reads, and, from last to
 * first, the nodes that those need; except nodes that are kept and the nodes before them. */
void lower_find_recompute(lower_state *state, int32_t unit) {
    const sifr_model *model = state->model;
    const model_unit *u = &model->units[unit];
    bool *recompute = state->recompute;
    for (int32_t n = u->first_node; n < u->first_node + u->nodes; n++) recompute[n] = false;
    for (int32_t n = u->first_node + u->nodes - 1; n >= u->first_node; n--) {
        const model_node *node = &model->nodes[n];
        int keep = lower_kept(state, n);
        bool read =
            recompute[n] || node->op->makes_loss || (keep & (MODEL_KEEP_Y | MODEL_KEEP_SAVED)) != 0;
        recompute[n] = read && !(state->kept && state->kept[n]);
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            if (node->x[x] < 0) continue;
            const model_value *value = &model->values[node->x[x]];
            bool gathers = value->node >= 0 && model_gathers_rows(model->nodes[value->node].op);
            bool wanted = recompute[n] || (keep & (MODEL_KEEP_X0 << x));
            if (gathers) wanted = recompute[n] && !node->op->makes_loss; /* lower_gather_again */
            if (wanted && value->node >= 0 && value->unit == unit) recompute[value->node] = true;
        }
    }
}

/* Marks every node whose result another unit reads, and all nodes that are needed to make it. */
static void find_feeders(lower_state *state) {
    const sifr_model *model = state->model;
    for (size_t i = model->node_count; i-- > 0;) {
        const model_node *node = &model->nodes[i];
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            if (node->x[x] < 0) continue;
            const model_value *value = &model->values[node->x[x]];
            bool wanted = state->feeds_other_units[i] || value->unit != node->unit;
            if (wanted && value->node >= 0) state->feeds_other_units[value->node] = true;
        }
    }
}

/* Marks nodes that a gradient passes through, from first to last. */
static void find_carriers(lower_state *state) {
    const sifr_model *model = state->model;
    for (size_t i = 0; i < model->node_count; i++) {
        const model_node *node = &model->nodes[i];
        const model_op *row = node->op;
        if (row->detached) continue;
        for (int w = 0; w < DEVICE_WEIGHTS; w++) {
            if (node->w[w] >= 0 && !model->weights[node->w[w]].frozen) state->carries[i] = true;
        }
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            if (node->x[x] < 0) continue;
            if (!(row->gradients & (1 << x))) continue;
            if (lower_has_gradient(state, node->x[x])) state->carries[i] = true;
        }
    }
}

sifr_status lower_analyse(lower_state *state, sifr_error *error) {
    const sifr_model *model = state->model;
    int32_t *uses;
    BASE_TRY(base_alloc(model->value_count, sizeof *uses, &uses, error));
    for (size_t n = 0; n < model->node_count; n++) {
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            if (model->nodes[n].x[x] >= 0) uses[model->nodes[n].x[x]]++;
        }
    }
    find_carriers(state);
    for (int32_t u = 0; u < (int32_t)model->unit_count; u++) lower_find_recompute(state, u);
    find_feeders(state);
    sifr_status status = find_mixed(state, uses, error);
    for (size_t v = 0; v < model->value_count; v++) { /* a slice reads its base */
        if (model->values[v].base >= 0) uses[model->values[v].base] += uses[v];
    }
    find_in_place(state, uses);
    free(uses);
    return status;
}
