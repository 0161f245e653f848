/* A head on tensor ranks that divide the words of the vocabulary: each makes the statistics of its
 * words, and with the sum of all ranks' the losses follow as on one rank. The backward call makes
 * the logits again: kept, they would be as many as tokens times words. */
#include <string.h>

#include "base/checked.h"
#include "model/shard_words.h"
#include "plan/list.h"
#include "plan/lower/lower.h"

sifr_status lower_words(lower_state *state, int32_t n, plan_action action, lower_operand *out,
                        sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    device_words words = model_words_of(node);
    *out = (lower_operand){.buffer = -1};
    if (!node->op->makes_loss || words.all == 0) return SIFR_OK;
    int32_t ranks = plan_mesh_ranks(&state->s->settings.mesh, PLAN_TENSORS);
    lower_operand x = lower_locate(state, node->x[0]);
    int64_t columns = base_ceil_to(device_word_statistics(words.all), ranks);
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = node->op->statistics;
    call.attributes = lower_attributes(state, node);
    out->matrix = lower_matrix(x.matrix.rows, columns, BASE_FP32);
    BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS, x.matrix.rows * columns * 4, node->unit,
                             node->y, false, &out->buffer, error));
    BASE_TRY(lower_put(state, &call, PLAN_X0, x, error));
    BASE_TRY(lower_put(state, &call, PLAN_X1, lower_locate(state, node->x[1]), error));
    for (int i = 0; i < DEVICE_WEIGHTS; i++)
        if (node->w[i] >= 0)
            BASE_TRY(lower_put(state, &call, (plan_role)(PLAN_W0 + i),
                               lower_weight(state, node->w[i]), error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, *out, error));
    BASE_TRY(lower_emit(state, action, node->unit, n, &call, NULL, false, error));
    return lower_tensor_sum(state, n, out, out, error);
}
