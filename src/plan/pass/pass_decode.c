/* Weights that are held as codes: their values are made before the first use in each run of a
 * unit's instructions, in a buffer that lives to the last one. To all later passes the codes are
 * the segment's parameters, which one instruction reads. */
#include <stdlib.h>

#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"

typedef struct decode_state {
    plan_schedule *s;
    plan_list old;
    int32_t *coded;  /* by buffer: the coded segment whose parameters it holds; -1: none */
    int32_t *values; /* by segment: the buffer of its values in this run; -1: none yet */
    int32_t *calls;  /* by segment: index of its call; -1: not made yet */
} decode_state;

static sifr_status add_call(decode_state *d, int32_t segment, sifr_error *error) {
    plan_schedule *s = d->s;
    int64_t elements = s->segment_elements[segment];
    model_coding coding = s->model->segments[segment].coding;
    const plan_encoding *codes =
        plan_encoding_of(plan_code_of_weights(coding, plan_dtype(&s->settings)));
    device_call call = {.kernel = codes->decode};
    if (d->calls[segment] >= 0) return SIFR_OK;
    call.x[0] =
        (device_matrix){NULL, elements / codes->values, codes->bytes, codes->bytes, BASE_UINT8};
    call.y = (device_matrix){NULL, 1, elements, elements, plan_dtype(&s->settings)};
    sifr_status status = plan_add_call(s, call, &d->calls[segment], error);
    return status == SIFR_OK ? SIFR_OK : base_fail_in(error, status, "%s", model_coding_key(coding));
}

static sifr_status emit_decode(decode_state *d, const plan_instruction *before, int32_t segment,
                               sifr_error *error) {
    plan_schedule *s = d->s;
    int64_t bytes = s->segment_elements[segment] * base_dtype_bytes(plan_dtype(&s->settings));
    BASE_TRY(add_call(d, segment, error));
    BASE_TRY(plan_add_buffer(s, PLAN_DECODED, bytes, before->unit, -1, false, &d->values[segment],
                             error));
    BASE_TRY(plan_add_operand(s, PLAN_X0, s->parameters[segment], 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, d->values[segment], 0, error));
    return plan_add_instruction(s,
                                (plan_instruction){.action = PLAN_DECODE,
                                                   .queue = PLAN_COMPUTE,
                                                   .unit = before->unit,
                                                   .micro_batch = before->micro_batch,
                                                   .node = -1,
                                                   .call = d->calls[segment],
                                                   .wait = -1},
                                error);
}

static sifr_status rewrite(decode_state *d, sifr_error *error) {
    plan_schedule *s = d->s;
    plan_operand *operands;
    int32_t unit = -1;
    for (size_t i = 0; i < d->old.count; i++) {
        const plan_instruction *in = &d->old.instructions[i];
        if (in->unit >= 0 && in->unit != unit) { /* a run of another unit begins */
            unit = in->unit;
            for (size_t g = 0; g < s->model->segment_count; g++) d->values[g] = -1;
        }
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t segment = d->coded[d->old.operands[o].buffer];
            if (segment >= 0 && d->values[segment] < 0)
                BASE_TRY(emit_decode(d, in, segment, error));
        }
        BASE_TRY(plan_add_operands(s, &d->old, in, &operands, error));
        for (int32_t o = 0; o < in->operands; o++) {
            int32_t segment = d->coded[operands[o].buffer];
            if (segment >= 0) operands[o].buffer = d->values[segment];
        }
        BASE_TRY(plan_add_instruction(s, *in, error));
    }
    return SIFR_OK;
}

static bool has_codes(const sifr_model *model) {
    for (size_t g = 0; g < model->segment_count; g++)
        if (model->segments[g].coding) return true;
    return false;
}

sifr_status plan_pass_decode(plan_schedule *s, sifr_error *error) {
    decode_state d = {.s = s};
    size_t buffers = s->buffer_count, segments = s->model->segment_count;
    sifr_status status;
    if (!has_codes(s->model)) return SIFR_OK;
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *d.coded, &d.coded, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *d.values, &d.values, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *d.calls, &d.calls, error), done);
    for (size_t b = 0; b < buffers; b++) d.coded[b] = -1;
    for (size_t g = 0; g < segments; g++) {
        d.values[g] = d.calls[g] = -1;
        if (!s->model->segments[g].coding) continue;
        d.coded[s->parameters[g]] = (int32_t)g;
    }
    d.old = plan_take_list(s);
    status = rewrite(&d, error);
done:
    plan_free_list(&d.old);
    free(d.coded);
    free(d.values);
    free(d.calls);
    return status;
}
