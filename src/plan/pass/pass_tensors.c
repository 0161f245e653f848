/* Tensor ranks have some weights alike (norms, an embedding): each updates its own copy, and the
 * norm counts the squares of one. Their gradients are the same, but for weights that serve some of
 * a rank's columns only (a norm of heads): of these each rank has a part, over all micro batches,
 * and the parts are added up before the squares. So are those of keys and values that several ranks
 * have alike, over these ranks. An update that reads whole weights gathers those that ranks divide
 * (tensor_matrix.h). Until here all ranks' lists have the same squares,
 * before which the passes put transfers that all ranks make. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/pass/tensor_matrix.h"
#include "plan/queries.h"

static bool is_dropped(const plan_schedule *s, const plan_instruction *in) {
    return in->action == PLAN_SQUARES && !plan_counts_segment(s, in->segment);
}

/* The gradient that this rank's updates read, which the squares are of: a slice, or at stage 0 the
 * whole. In place. */
static sifr_status add_parts(plan_schedule *s, const plan_list *old, const plan_instruction *in,
                             sifr_error *error) {
    int32_t g = in->segment;
    base_dtype type = plan_sum_type(&s->settings);
    plan_span span = plan_parts_span(s, g);
    int64_t tensors = plan_mesh_ranks(&s->settings.mesh, span);
    int32_t slices = plan_slices(&s->settings, PLAN_CUT_OPTIMIZER);
    int64_t elements = s->segment_elements[g] / slices;
    const plan_operand *x = &old->operands[in->first_operand];
    int64_t offset = slices > 1 ? x->offset : 0;
    base_assert(elements % tensors == 0); /* plan_padded_elements */
    BASE_TRY(plan_add_operand(s, PLAN_X0, x->buffer, offset, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, x->buffer, offset, error));
    return plan_add_collective(
        s,
        &(plan_collective){.action = PLAN_SUM,
                           .span = span,
                           .encoding = plan_code_of(type),
                           .sum = type,
                           .segment = g,
                           .micro_batch = -1,
                           .bytes = plan_encoded_bytes(plan_code_of(type), elements / tensors)},
        error);
}

static bool is_of_parts(const plan_schedule *s, const plan_instruction *in) {
    return in->action == PLAN_SQUARES && s->model->segments[in->segment].partial;
}

static sifr_status keep_squares(plan_schedule *s, const plan_list *old, size_t end, int32_t *moved,
                                sifr_error *error) {
    for (size_t i = 0; i < end; i++) {
        const plan_instruction *in = &old->instructions[i];
        if (is_of_parts(s, in) && !is_dropped(s, in)) BASE_TRY(plan_keep(s, old, i, moved, error));
    }
    return SIFR_OK;
}

/* Squares of sums come last, so that the sums are under way together. */
static sifr_status rewrite(plan_schedule *s, const plan_list *old, int32_t *moved,
                           sifr_error *error) {
    for (size_t i = 0; i < old->count; i++) {
        const plan_instruction *in = &old->instructions[i];
        if (in->action == PLAN_NORM) BASE_TRY(keep_squares(s, old, i, moved, error));
        if (is_of_parts(s, in))
            BASE_TRY(add_parts(s, old, in, error));
        else if (plan_changes_part(s, in))
            BASE_TRY(plan_change_matrix(s, old, in, error));
        else if (!is_dropped(s, in))
            BASE_TRY(plan_keep(s, old, i, moved, error));
    }
    return SIFR_OK;
}

sifr_status plan_pass_tensors(plan_schedule *s, sifr_error *error) {
    bool one = plan_mesh_ranks(&s->settings.mesh, PLAN_TENSORS) == 1;
    if (one || s->settings.mode != PLAN_TRAIN) return SIFR_OK;
    plan_list old = plan_take_list(s);
    int32_t *moved;
    sifr_status status = base_alloc(old.count, sizeof *moved, &moved, error);
    if (status == SIFR_OK) status = rewrite(s, &old, moved, error);
    free(moved);
    plan_free_list(&old);
    return status;
}
