/* qgZ of ZeRO++ (Wang et al., 2023): gradients travel to slices as blocks of 4 bits
 * (base/block4.h).
 *
 * In place of a reduction each rank makes codes of its whole gradient, an all-to-all brings the
 * parts of a slice to the rank that has it, and that rank adds the values up in fp32, in the order
 * of ranks. With several ranks on each of several hosts there are two such steps, as DeepSpeed has
 * them: inside a host first, where rank i gets what the ranks of place i on all hosts have of it,
 * then among those, of sums that are coded again. Between hosts each rank so sends and gets codes
 * of 1 / n of the gradient, n being the ranks of a host.
 *
 * The pass comes behind pass_overlap.c. Computing goes on beside the last all-to-all, from where
 * the reduction started to where it was waited for. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/block4.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

/* An all-to-all of codes: a run of `length` slices for each of its ranks. */
typedef struct sums_hop {
    int32_t count;  /* of its ranks */
    int32_t first;  /* place of the first of them in PLAN_STATE ... */
    int32_t apart;  /* ... and how far apart they are */
    int32_t length; /* slices */
    int32_t own;    /* this rank's number among them */
} sums_hop;

typedef struct sums_pass {
    plan_schedule *s;
    plan_list old;
    int32_t *moved;       /* by old instruction: the new one */
    int32_t *came;        /* by old instruction: the buffer of parts that it brings; -1: none */
    int32_t ranks, place; /* of PLAN_STATE */
    int32_t near, hosts;  /* ranks that meet first, and how many such groups there are */
    comm_run *sent, *received; /* by rank */
} sums_pass;

static bool is_reduction(const plan_instruction *in) {
    return in->action == PLAN_REDUCE && in->segment >= 0 && in->span == PLAN_STATE;
}

static int64_t slice_of(const sums_pass *q, int32_t segment) {
    return q->s->segment_elements[segment] / q->ranks;
}

static int64_t code_bytes(int64_t elements) {
    return plan_encoded_bytes(PLAN_CODE_BLOCKS4, elements);
}

static device_matrix blocks_of(int64_t elements) {
    return (device_matrix){NULL, elements / BASE_BLOCK4, BASE_BLOCK4_BYTES, BASE_BLOCK4_BYTES,
                           BASE_UINT8};
}

static device_matrix values_of(int64_t elements, base_dtype type) {
    return (device_matrix){NULL, 1, elements, elements, type};
}

static sums_hop inside(const sums_pass *q) {
    return (sums_hop){.count = q->near,
                      .first = q->place / q->near * q->near,
                      .apart = 1,
                      .length = q->hosts,
                      .own = q->place % q->near};
}

static sums_hop across(const sums_pass *q) {
    return (sums_hop){.count = q->hosts,
                      .first = q->place % q->near,
                      .apart = q->near,
                      .length = 1,
                      .own = q->place / q->near};
}

static sifr_status add_codes(sums_pass *q, int32_t segment, int64_t bytes, int32_t *out,
                             sifr_error *error) {
    return plan_add_segment_buffer(q->s, PLAN_OUTGOING, bytes, segment, -1, false, out, error);
}

static sifr_status emit_call(sums_pass *q, plan_action action, const plan_instruction *of,
                             const device_call *call, sifr_error *error) {
    plan_instruction in = {.action = (uint8_t)action,
                           .queue = PLAN_COMPUTE,
                           .unit = of->unit,
                           .micro_batch = of->micro_batch,
                           .node = -1,
                           .wait = -1};
    sifr_status status = plan_add_call(q->s, *call, &in.call, error);
    if (status != SIFR_OK) return base_fail_in(error, status, "zero_quantized_gradients");
    return plan_add_instruction(q->s, in, error);
}

/* Of `hop.count` runs of x, which has `type`. */
static sifr_status emit_encode(sums_pass *q, const plan_instruction *of, const sums_hop *hop,
                               plan_operand from, base_dtype type, int32_t *codes,
                               sifr_error *error) {
    int32_t slices = hop->count * hop->length;
    int64_t elements = slices * slice_of(q, of->segment);
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = plan_encoding_of(PLAN_CODE_BLOCKS4)->encode;
    call.x[0] = values_of(elements, type);
    call.y = blocks_of(elements);
    call.attributes.block.slices = slices;
    call.attributes.block.near = hop->length > 1 ? hop->count : 1;
    BASE_TRY(add_codes(q, of->segment, code_bytes(elements), codes, error));
    BASE_TRY(plan_add_operand(q->s, PLAN_X0, from.buffer, from.offset, error));
    BASE_TRY(plan_add_operand(q->s, PLAN_Y, *codes, 0, error));
    return emit_call(q, PLAN_ENCODE, of, &call, error);
}

/* *started: its instruction. */
static sifr_status emit_exchange(sums_pass *q, const plan_instruction *of, const sums_hop *hop,
                                 int32_t codes, int32_t *came, int32_t *started,
                                 sifr_error *error) {
    int64_t run = code_bytes(hop->length * slice_of(q, of->segment));
    memset(q->sent, 0, (size_t)q->ranks * sizeof *q->sent);
    memset(q->received, 0, (size_t)q->ranks * sizeof *q->received);
    for (int32_t i = 0; i < hop->count; i++)
        q->sent[hop->first + i * hop->apart] = q->received[hop->first + i * hop->apart] =
            (comm_run){.at = i * run, .bytes = run};
    BASE_TRY(add_codes(q, of->segment, hop->count * run, came, error));
    BASE_TRY(plan_add_operand(q->s, PLAN_X0, codes, 0, error));
    BASE_TRY(plan_add_operand(q->s, PLAN_Y, *came, 0, error));
    *started = (int32_t)q->s->instruction_count;
    return plan_add_collective(q->s,
                               &(plan_collective){.action = PLAN_EXCHANGE,
                                                  .span = PLAN_STATE,
                                                  .encoding = PLAN_CODE_BLOCKS4,
                                                  .segment = of->segment,
                                                  .micro_batch = of->micro_batch,
                                                  .sent = q->sent,
                                                  .received = q->received},
                               error);
}

/* Of what `hop` has brought. */
static sifr_status emit_sum(sums_pass *q, const plan_instruction *of, const sums_hop *hop,
                            int32_t came, plan_operand to, base_dtype type, sifr_error *error) {
    int64_t elements = hop->length * slice_of(q, of->segment);
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = plan_encoding_of(PLAN_CODE_BLOCKS4)->decode;
    call.x[0] = blocks_of(hop->count * elements);
    call.y = values_of(elements, type);
    BASE_TRY(plan_add_operand(q->s, PLAN_X0, came, 0, error));
    BASE_TRY(plan_add_operand(q->s, PLAN_Y, to.buffer, to.offset, error));
    return emit_call(q, PLAN_DECODE, of, &call, error);
}

/* What is sent between hosts, made of what comes from this one. */
static sifr_status emit_first_hop(sums_pass *q, const plan_instruction *of, plan_operand from,
                                  int32_t *codes, sifr_error *error) {
    sums_hop first = inside(q), second = across(q);
    int32_t whole, came, started;
    int64_t elements = first.length * slice_of(q, of->segment);
    plan_operand sum = {0};
    BASE_TRY(emit_encode(q, of, &first, from, plan_sum_type(&q->s->settings), &whole, error));
    BASE_TRY(emit_exchange(q, of, &first, whole, &came, &started, error));
    BASE_TRY(plan_add_wait(q->s, started, error));
    BASE_TRY(plan_add_segment_buffer(q->s, PLAN_GRADIENTS, elements * 4, of->segment, -1, false,
                                     &sum.buffer, error));
    BASE_TRY(emit_sum(q, of, &first, came, sum, BASE_FP32, error));
    return emit_encode(q, of, &second, sum, BASE_FP32, codes, error);
}

static sifr_status emit_start(sums_pass *q, size_t index, sifr_error *error) {
    const plan_instruction *in = &q->old.instructions[index];
    plan_operand from = q->old.operands[in->first_operand];
    bool two = q->hosts > 1;
    sums_hop last = two ? across(q) : inside(q);
    int32_t codes;
    if (two)
        BASE_TRY(emit_first_hop(q, in, from, &codes, error));
    else
        BASE_TRY(emit_encode(q, in, &last, from, plan_sum_type(&q->s->settings), &codes, error));
    return emit_exchange(q, in, &last, codes, &q->came[index], &q->moved[index], error);
}

static sifr_status emit_end(sums_pass *q, int32_t index, sifr_error *error) {
    const plan_instruction *of = &q->old.instructions[index];
    plan_operand to = q->old.operands[of->first_operand + 1];
    sums_hop last = q->hosts > 1 ? across(q) : inside(q);
    BASE_TRY(plan_add_wait(q->s, q->moved[index], error));
    return emit_sum(q, of, &last, q->came[index], to, plan_sum_type(&q->s->settings), error);
}

static sifr_status rewrite(sums_pass *q, sifr_error *error) {
    for (size_t i = 0; i < q->old.count; i++) {
        const plan_instruction *in = &q->old.instructions[i];
        if (is_reduction(in))
            BASE_TRY(emit_start(q, i, error));
        else if (in->action == PLAN_WAIT && q->came[in->wait] >= 0)
            BASE_TRY(emit_end(q, in->wait, error));
        else
            BASE_TRY(plan_keep(q->s, &q->old, i, q->moved, error));
    }
    return SIFR_OK;
}

static sifr_status check(const plan_settings *settings, sifr_error *error) {
    if (!plan_cuts(settings, PLAN_CUT_SUMS))
        return base_fail(error, SIFR_USAGE,
                         "zero_quantized_gradients: at ZeRO stage %d gradients are not cut into "
                         "slices, and are not quantised yet; set stage to 2 or 3, or leave it out",
                         (int)settings->step.zero.stage);
    if (!plan_converts_gradients(settings)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "zero_quantized_gradients: gradients travel in 4 bits, and with "
                     "communication_data_type in another type; leave one of both out");
}

sifr_status plan_pass_quantise_sums(plan_schedule *s, sifr_error *error) {
    const plan_mesh *mesh = &s->settings.mesh;
    sums_pass q = {.s = s,
                   .ranks = plan_mesh_ranks(mesh, PLAN_STATE),
                   .place = plan_mesh_place(mesh, PLAN_STATE)};
    sifr_status status;
    if (!s->settings.step.zero.quantized_gradients || s->settings.mode != PLAN_TRAIN)
        return SIFR_OK;
    BASE_TRY(check(&s->settings, error));
    if (!plan_quantises_sums(&s->settings)) return SIFR_OK;
    q.near = mesh->host > 0 ? mesh->host : q.ranks;
    q.hosts = q.ranks / q.near;
    base_assert(q.near * q.hosts == q.ranks);
    size_t count = s->instruction_count, ranks = (size_t)q.ranks;
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *q.moved, &q.moved, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *q.came, &q.came, error), done);
    BASE_TRY_GOTO(status, base_alloc(ranks, sizeof *q.sent, &q.sent, error), done);
    BASE_TRY_GOTO(status, base_alloc(ranks, sizeof *q.received, &q.received, error), done);
    for (size_t i = 0; i < count; i++) q.came[i] = -1;
    q.old = plan_take_list(s);
    status = rewrite(&q, error);
done:
    plan_free_list(&q.old);
    free(q.moved);
    free(q.came);
    free(q.sent);
    free(q.received);
    return status;
}
