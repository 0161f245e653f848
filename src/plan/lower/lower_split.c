/* A backward pass in two halves (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241):
 * the gradients of inputs, which the stage before waits for, and later those of weights, which
 * nobody waits for.
 *
 * What the second half reads, the inputs of nodes and the gradients of their outputs, lives until
 * then: an output's gradient keeps its place (lower_place.sharers), so that nothing is added to it.
 */
#include "plan/lower/lower.h"

static bool trains(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    for (int w = 0; w < DEVICE_WEIGHTS; w++)
        if (node->w[w] >= 0 && !state->model->weights[node->w[w]].frozen) return true;
    return false;
}

/* A product with a frozen matrix and a trained bias keeps no input, from which a call for weights
 * alone takes its shape. */
bool lower_can_split(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    if (!node->op->splits) return false;
    return !node->op->x_for_weights || !state->model->weights[node->w[0]].frozen;
}

/* The first part sends no gradients, so there is nothing to be early for. A unit that makes the
 * loss has one pass. */
bool lower_is_split(const lower_state *state, int32_t unit) {
    const plan_pipeline *p = &state->s->settings.pipeline;
    const model_unit *u = &state->model->units[unit];
    bool any = false;
    if (plan_parts(p) == 1 || p->order != PLAN_WALK_ZB_H1) return false;
    if (plan_part_of(p, unit) == 0) return false;
    for (int32_t n = u->first_node; n < u->first_node + u->nodes; n++) {
        if (state->model->nodes[n].op->makes_loss) return false;
        if (!trains(state, n)) continue;
        if (!lower_can_split(state, n)) return false;
        any = true;
    }
    return any;
}

sifr_status lower_split_inputs(lower_state *state, int32_t unit, sifr_error *error) {
    const model_unit *u = &state->model->units[unit];
    for (int32_t n = u->first_node + u->nodes; n-- > u->first_node;)
        BASE_TRY(lower_backward(state, n, trains(state, n) ? LOWER_INPUTS : LOWER_BOTH, error));
    return SIFR_OK;
}

sifr_status lower_split_weights(lower_state *state, int32_t unit, sifr_error *error) {
    const model_unit *u = &state->model->units[unit];
    lower_forget_gathered(state, unit);
    BASE_TRY(lower_begin_unit(state, unit, error));
    for (int32_t n = u->first_node + u->nodes; n-- > u->first_node;)
        if (trains(state, n)) BASE_TRY(lower_backward(state, n, LOWER_WEIGHTS, error));
    return lower_end_unit(state, unit, error);
}
