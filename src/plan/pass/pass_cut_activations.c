/* Units' inputs that are kept for the backward pass, cut among tensor ranks (DeepSpeed's
 * partition_activations; Rajbhandari et al., ZeRO, SC20, section 6.1). All of these have the same
 * inputs. So after its last use in the forward pass each keeps a part of it, and before the
 * backward pass, or the recomputation before it, they are gathered. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"

/* By buffer. Old instructions: the last use in the forward pass, and the first one behind it. */
typedef struct cut_input {
    int32_t done, wanted;
    bool crosses;       /* another unit uses it */
    int32_t part, copy; /* this rank's part; and what is gathered; -1: it is not cut */
} cut_input;

typedef struct cut_pass {
    plan_schedule *s;
    plan_list old;
    int32_t *moved; /* by old instruction: the new one */
    cut_input *inputs;
    int32_t ranks, place;
} cut_pass;

static bool is_backward(const plan_instruction *in) {
    return in->action == PLAN_BACKWARD || in->action == PLAN_RECOMPUTE;
}

static void find_uses(const cut_pass *p) {
    const plan_schedule *s = p->s;
    for (size_t b = 0; b < s->buffer_count; b++)
        p->inputs[b] = (cut_input){.done = -1, .wanted = -1, .part = -1, .copy = -1};
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t buffer = p->old.operands[o].buffer;
            cut_input *input = &p->inputs[buffer];
            if (s->buffers[buffer].class != PLAN_ACTIVATIONS) continue;
            input->crosses |= in->unit != s->buffers[buffer].unit;
            if (input->wanted >= 0) continue;
            if (is_backward(in))
                input->wanted = (int32_t)i;
            else
                input->done = (int32_t)i;
        }
    }
}

/* Values that the ranks of a group have alike, and all rows of. */
static bool may_cut(const cut_pass *p, size_t buffer) {
    const plan_buffer *of = &p->s->buffers[buffer];
    const cut_input *input = &p->inputs[buffer];
    if (of->index < 0 || input->done < 0 || input->wanted < 0 || !input->crosses) return false;
    const model_value *value = &p->s->model->values[of->index];
    int64_t elements = of->bytes / base_dtype_bytes(plan_dtype(&p->s->settings));
    return !value->cut_columns && !value->cut_rows && elements % p->ranks == 0;
}

static sifr_status add_buffers(const cut_pass *p, bool *any, sifr_error *error) {
    for (size_t b = 0, before = p->s->buffer_count; b < before; b++) {
        plan_buffer of = p->s->buffers[b];
        cut_input *input = &p->inputs[b];
        if (!may_cut(p, b)) continue;
        *any = true;
        BASE_TRY(plan_add_buffer(p->s, PLAN_ACTIVATIONS, of.bytes / p->ranks, of.unit, of.index,
                                 false, &input->part, error));
        BASE_TRY(plan_add_buffer(p->s, PLAN_ACTIVATIONS, of.bytes, of.unit, of.index, false,
                                 &input->copy, error));
    }
    return SIFR_OK;
}

static sifr_status keep_part(const cut_pass *p, int32_t buffer, int32_t micro_batch,
                             sifr_error *error) {
    plan_schedule *s = p->s;
    const plan_buffer *of = &s->buffers[buffer];
    base_dtype type = plan_dtype(&s->settings);
    int64_t elements = of->bytes / p->ranks / base_dtype_bytes(type);
    plan_instruction in = {.action = PLAN_FORWARD,
                           .queue = PLAN_COMPUTE,
                           .unit = (int16_t)of->unit,
                           .micro_batch = micro_batch,
                           .node = s->model->values[of->index].node,
                           .wait = -1};
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CONVERT;
    call.x[0] = call.y = (device_matrix){NULL, 1, elements, elements, type};
    BASE_TRY(plan_add_operand(s, PLAN_X0, buffer, p->place * (of->bytes / p->ranks), error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, p->inputs[buffer].part, 0, error));
    BASE_TRY(plan_add_call(s, call, &in.call, error));
    return plan_add_instruction(s, in, error);
}

static sifr_status gather_parts(const cut_pass *p, int32_t buffer, const plan_instruction *user,
                                sifr_error *error) {
    plan_schedule *s = p->s;
    BASE_TRY(plan_add_operand(s, PLAN_X0, p->inputs[buffer].part, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, p->inputs[buffer].copy, 0, error));
    return plan_add_collective(
        s,
        &(plan_collective){.action = PLAN_GATHER,
                           .span = PLAN_TENSORS,
                           .encoding = plan_code_of(plan_dtype(&s->settings)),
                           .segment = -1,
                           .unit = user->unit,
                           .micro_batch = user->micro_batch,
                           .bytes = s->buffers[buffer].bytes / p->ranks},
        error);
}

/* An operand of an instruction that may have it twice is met once. */
static bool is_first(const cut_pass *p, const plan_instruction *in, int32_t operand) {
    for (int32_t o = in->first_operand; o < operand; o++)
        if (p->old.operands[o].buffer == p->old.operands[operand].buffer) return false;
    return true;
}

static sifr_status put(cut_pass *p, size_t index, sifr_error *error) {
    const plan_instruction *in = &p->old.instructions[index];
    int32_t first = in->first_operand, end = first + in->operands;
    for (int32_t o = first; o < end; o++) {
        int32_t buffer = p->old.operands[o].buffer;
        const cut_input *input = &p->inputs[buffer];
        if (input->part >= 0 && input->wanted == (int32_t)index && is_first(p, in, o))
            BASE_TRY(gather_parts(p, buffer, in, error));
    }
    BASE_TRY(plan_keep(p->s, &p->old, index, p->moved, error));
    int32_t made = p->s->instructions[p->s->instruction_count - 1].first_operand;
    for (int32_t o = first; o < end; o++) {
        const cut_input *input = &p->inputs[p->old.operands[o].buffer];
        if (input->part >= 0 && input->wanted <= (int32_t)index)
            p->s->operands[made + o - first].buffer = input->copy;
    }
    for (int32_t o = first; o < end; o++) {
        int32_t buffer = p->old.operands[o].buffer;
        const cut_input *input = &p->inputs[buffer];
        if (input->part >= 0 && input->done == (int32_t)index && is_first(p, in, o))
            BASE_TRY(keep_part(p, buffer, in->micro_batch, error));
    }
    return SIFR_OK;
}

static sifr_status rewrite(cut_pass *p, sifr_error *error) {
    bool any = false;
    size_t count = p->s->instruction_count;
    BASE_TRY(base_alloc(p->s->buffer_count, sizeof *p->inputs, &p->inputs, error));
    BASE_TRY(base_alloc(count, sizeof *p->moved, &p->moved, error));
    p->old = (plan_list){p->s->instructions, p->s->operands, count}; /* not owned here */
    find_uses(p);
    sifr_status status = add_buffers(p, &any, error);
    p->old = (plan_list){0};
    if (status != SIFR_OK || !any) return status;
    p->old = plan_take_list(p->s);
    for (size_t i = 0; i < count; i++) BASE_TRY(put(p, i, error));
    return SIFR_OK;
}

sifr_status plan_pass_cut_activations(plan_schedule *s, sifr_error *error) {
    const plan_mesh *mesh = &s->settings.mesh;
    cut_pass p = {.s = s,
                  .ranks = plan_mesh_ranks(mesh, PLAN_TENSORS),
                  .place = plan_mesh_place(mesh, PLAN_TENSORS)};
    bool cuts = s->settings.mode == PLAN_TRAIN && s->settings.step.partition_activations;
    if (!cuts || p.ranks == 1) return SIFR_OK;
    sifr_status status = rewrite(&p, error);
    plan_free_list(&p.old);
    free(p.moved);
    free(p.inputs);
    return status;
}
