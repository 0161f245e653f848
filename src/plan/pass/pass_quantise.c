/* qwZ of ZeRO++ (Wang et al., 2023): gathers of parameters carry blocks of 8 bits (base/block8.h).
 *
 * The owner of a slice makes its codes before the gather, and all ranks, the owner too, make the
 * values that kernels read of what they got. Blocks begin where weights and slices do, so values do
 * not depend on the number of ranks; one rank goes through codes as well. Second copies (hpZ) are
 * copies of the codes. Masters, updates and checkpoints have the parameters as they are.
 *
 * The pass comes behind pass_overlap.c: codes are made where a gather starts, values where it is
 * waited for, that is before the first use. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/block8.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

typedef struct quantise_pass {
    plan_schedule *s;
    plan_list old;
    int32_t *moved;           /* by old instruction: the new one */
    int32_t *codes;           /* by buffer of values: that of the gathered codes; -1: none */
    int32_t *encode, *decode; /* by segment: calls; -1: not made yet */
} quantise_pass;

static bool is_gather(const quantise_pass *q, const plan_instruction *in) {
    return plan_is_gather_for_use(q->s, &q->old, in) && plan_quantises(q->s, in->segment);
}

static device_matrix blocks_of(int64_t elements) {
    base_assert(elements % BASE_BLOCK8 == 0);
    return (device_matrix){NULL, elements / BASE_BLOCK8, BASE_BLOCK8_BYTES, BASE_BLOCK8_BYTES,
                           BASE_UINT8};
}

static device_matrix values_of(const quantise_pass *q, int64_t elements) {
    return (device_matrix){NULL, 1, elements, elements, plan_dtype(&q->s->settings)};
}

static sifr_status add_call(quantise_pass *q, device_call call, int32_t *out, sifr_error *error) {
    if (*out >= 0) return SIFR_OK;
    sifr_status status = plan_add_call(q->s, call, out, error);
    return status == SIFR_OK ? SIFR_OK : base_fail_in(error, status, "zero_quantized_weights");
}

/* A kernel from x0 to y, whose operands were added. */
static sifr_status emit_kernel(quantise_pass *q, plan_action action, const plan_instruction *of,
                               int32_t call, sifr_error *error) {
    return plan_add_instruction(q->s,
                                (plan_instruction){.action = (uint8_t)action,
                                                   .queue = PLAN_COMPUTE,
                                                   .unit = of->unit,
                                                   .micro_batch = of->micro_batch,
                                                   .node = -1,
                                                   .call = call,
                                                   .wait = -1},
                                error);
}

static sifr_status emit_encode(quantise_pass *q, const plan_instruction *gather, int64_t elements,
                               int32_t to, sifr_error *error) {
    const plan_operand *from = &q->old.operands[gather->first_operand];
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = plan_encoding_of(PLAN_CODE_BLOCKS8)->encode;
    call.x[0] = values_of(q, elements);
    call.y = blocks_of(elements);
    BASE_TRY(add_call(q, call, &q->encode[gather->segment], error));
    BASE_TRY(plan_add_operand(q->s, PLAN_X0, from->buffer, from->offset, error));
    BASE_TRY(plan_add_operand(q->s, PLAN_Y, to, 0, error));
    return emit_kernel(q, PLAN_ENCODE, gather, q->encode[gather->segment], error);
}

static sifr_status emit_decode(quantise_pass *q, const plan_instruction *gather,
                               sifr_error *error) {
    int32_t values = q->old.operands[gather->first_operand + 1].buffer;
    int64_t elements = q->s->segment_elements[gather->segment];
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = plan_encoding_of(PLAN_CODE_BLOCKS8)->decode;
    call.x[0] = blocks_of(elements);
    call.y = values_of(q, elements);
    BASE_TRY(add_call(q, call, &q->decode[gather->segment], error));
    BASE_TRY(plan_add_operand(q->s, PLAN_X0, q->codes[values], 0, error));
    BASE_TRY(plan_add_operand(q->s, PLAN_Y, values, 0, error));
    return emit_kernel(q, PLAN_DECODE, gather, q->decode[gather->segment], error);
}

/* The codes in place of the values, which are made of them later. */
static sifr_status emit_gather(quantise_pass *q, size_t index, sifr_error *error) {
    plan_schedule *s = q->s;
    const plan_instruction *gather = &q->old.instructions[index];
    const plan_operand *slice = &q->old.operands[gather->first_operand], *whole = slice + 1;
    int32_t ranks = plan_mesh_ranks(&s->settings.mesh, (plan_span)gather->span);
    int32_t segment = gather->segment, codes, own = slice->buffer;
    int64_t elements = s->segment_elements[segment] / ranks;
    int64_t bytes = plan_encoded_bytes(PLAN_CODE_BLOCKS8, elements);
    s->buffers[whole->buffer].class = PLAN_DECODED;
    BASE_TRY(plan_add_segment_buffer(s, PLAN_GATHERED, bytes * ranks, segment, -1, false, &codes,
                                     error));
    q->codes[whole->buffer] = codes;
    if (ranks == 1) {
        BASE_TRY(emit_encode(q, gather, elements, codes, error));
        return emit_decode(q, gather, error);
    }
    if (gather->span == PLAN_STATE) {
        BASE_TRY(plan_add_segment_buffer(s, PLAN_OUTGOING, bytes, segment, -1, false, &own, error));
        BASE_TRY(emit_encode(q, gather, elements, own, error));
    }
    BASE_TRY(plan_add_operand(s, PLAN_X0, own, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, codes, 0, error));
    q->moved[index] = (int32_t)s->instruction_count;
    return plan_add_collective(s,
                               &(plan_collective){.action = PLAN_GATHER,
                                                  .span = (plan_span)gather->span,
                                                  .encoding = PLAN_CODE_BLOCKS8,
                                                  .segment = segment,
                                                  .micro_batch = gather->micro_batch,
                                                  .bytes = bytes},
                               error);
}

/* A second copy, of the codes; they are moved as words. */
static sifr_status emit_keep(quantise_pass *q, const plan_instruction *in, sifr_error *error) {
    plan_schedule *s = q->s;
    const plan_mesh *mesh = &s->settings.mesh;
    const plan_operand *from = &q->old.operands[in->first_operand], *to = from + 1;
    int64_t elements =
        s->segment_elements[s->buffers[to->buffer].segment] / plan_mesh_ranks(mesh, PLAN_HOSTS);
    int64_t bytes = plan_encoded_bytes(PLAN_CODE_BLOCKS8, elements), words = bytes / 4;
    device_call call = s->calls[in->call];
    plan_instruction out = *in;
    call.x[0] = call.y = (device_matrix){NULL, 1, words, words, BASE_FP32};
    s->buffers[to->buffer].bytes = bytes;
    BASE_TRY(plan_add_call(s, call, &out.call, error));
    BASE_TRY(plan_add_operand(s, PLAN_X0, q->codes[from->buffer],
                              plan_mesh_place(mesh, PLAN_HOSTS) * bytes, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, to->buffer, 0, error));
    return plan_add_instruction(s, out, error);
}

static bool is_of_codes(const quantise_pass *q, const plan_instruction *in, plan_action action,
                        int operand) {
    if (in->action != action) return false;
    return q->codes[q->old.operands[in->first_operand + operand].buffer] >= 0;
}

static bool waits_for_codes(const quantise_pass *q, const plan_instruction *in) {
    if (in->action != PLAN_WAIT) return false;
    const plan_instruction *of = &q->old.instructions[in->wait];
    return of->action == PLAN_GATHER && is_of_codes(q, of, PLAN_GATHER, 1);
}

/* One rank has made its values of its codes at once: nothing travels. */
static bool is_made_here(const quantise_pass *q, const plan_instruction *wait) {
    const plan_instruction *of = &q->old.instructions[wait->wait];
    return plan_mesh_ranks(&q->s->settings.mesh, (plan_span)of->span) == 1;
}

static sifr_status rewrite(quantise_pass *q, sifr_error *error) {
    for (size_t i = 0; i < q->old.count; i++) {
        const plan_instruction *in = &q->old.instructions[i];
        if (is_gather(q, in)) {
            BASE_TRY(emit_gather(q, i, error));
        } else if (waits_for_codes(q, in) && is_made_here(q, in)) {
            continue;
        } else if (waits_for_codes(q, in)) {
            BASE_TRY(plan_add_wait(q->s, q->moved[in->wait], error));
            BASE_TRY(emit_decode(q, &q->old.instructions[in->wait], error));
        } else if (is_of_codes(q, in, PLAN_KEEP, 0)) {
            BASE_TRY(emit_keep(q, in, error));
        } else {
            BASE_TRY(plan_keep(q->s, &q->old, i, q->moved, error));
        }
    }
    return SIFR_OK;
}

sifr_status plan_pass_quantise(plan_schedule *s, sifr_error *error) {
    quantise_pass q = {.s = s};
    size_t segments = s->model->segment_count, buffers = s->buffer_count;
    sifr_status status;
    if (!s->settings.step.zero.quantized_weights || !plan_cuts(&s->settings, PLAN_CUT_WEIGHTS))
        return SIFR_OK;
    BASE_TRY_GOTO(status, base_alloc(s->instruction_count, sizeof *q.moved, &q.moved, error), done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *q.codes, &q.codes, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *q.encode, &q.encode, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *q.decode, &q.decode, error), done);
    for (size_t b = 0; b < buffers; b++) q.codes[b] = -1;
    for (size_t g = 0; g < segments; g++) q.encode[g] = q.decode[g] = -1;
    q.old = plan_take_list(s);
    status = rewrite(&q, error);
done:
    plan_free_list(&q.old);
    free(q.moved);
    free(q.codes);
    free(q.encode);
    free(q.decode);
    return status;
}
