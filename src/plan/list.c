#include "plan/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/queries.h"

sifr_status plan_add_buffer(plan_schedule *schedule, plan_class class, int64_t bytes, int32_t unit,
                            int32_t index, bool permanent, int32_t *out, sifr_error *error) {
    base_assert(bytes >= 0);
    if (schedule->buffer_count >= INT32_MAX) {
        return base_fail(error, SIFR_USAGE, "schedule: too many buffers");
    }
    BASE_TRY(base_grow(&schedule->buffers, &schedule->buffer_capacity, schedule->buffer_count + 1,
                       sizeof *schedule->buffers, error));
    schedule->buffers[schedule->buffer_count] = (plan_buffer){.class = class,
                                                              .first = permanent ? -1 : INT32_MAX,
                                                              .last = permanent ? INT32_MAX : -1,
                                                              .unit = unit,
                                                              .index = index,
                                                              .segment = -1,
                                                              .bytes = bytes};
    *out = (int32_t)schedule->buffer_count++;
    return SIFR_OK;
}

sifr_status plan_add_segment_buffer(plan_schedule *schedule, plan_class class, int64_t bytes,
                                    int32_t segment, int32_t index, bool permanent, int32_t *out,
                                    sifr_error *error) {
    base_assert(segment >= 0 && (size_t)segment < schedule->model->segment_count);
    int32_t unit = schedule->model->segments[segment].unit;
    BASE_TRY(plan_add_buffer(schedule, class, bytes, unit, index, permanent, out, error));
    schedule->buffers[*out].segment = segment;
    return SIFR_OK;
}

sifr_status plan_add_disk_buffer(plan_schedule *schedule, int64_t bytes, int32_t unit, int32_t *out,
                                 sifr_error *error) {
    base_assert(bytes > 0);
    int64_t capacity = base_ceil_to(bytes, PLAN_DISK_ALIGNMENT) + PLAN_DISK_ALIGNMENT;
    BASE_TRY(plan_add_buffer(schedule, PLAN_SWAP, capacity, unit, -1, false, out, error));
    schedule->buffers[*out].aligned = true;
    return SIFR_OK;
}

sifr_status plan_add_operand(plan_schedule *schedule, plan_role role, int32_t buffer,
                             int64_t offset, sifr_error *error) {
    base_assert(buffer >= 0 && (size_t)buffer < schedule->buffer_count);
    base_assert(offset >= 0 && role < PLAN_ROLES);
    if (schedule->operand_count == schedule->operand_capacity)
        BASE_TRY(base_grow(&schedule->operands, &schedule->operand_capacity,
                           schedule->operand_count + 1, sizeof *schedule->operands, error));
    schedule->operands[schedule->operand_count++] =
        (plan_operand){.buffer = buffer, .role = (uint8_t)role, .offset = offset};
    return SIFR_OK;
}

sifr_status plan_add_instruction(plan_schedule *schedule, plan_instruction instruction,
                                 sifr_error *error) {
    if (schedule->instruction_count >= PLAN_INSTRUCTION_LIMIT ||
        schedule->operand_count >= INT32_MAX) {
        return base_fail(error, SIFR_USAGE, "schedule: more than %d instructions",
                         PLAN_INSTRUCTION_LIMIT);
    }
    if (schedule->instruction_count == schedule->instruction_capacity)
        BASE_TRY(base_grow(&schedule->instructions, &schedule->instruction_capacity,
                           schedule->instruction_count + 1, sizeof *schedule->instructions, error));
    int32_t before = 0;
    if (schedule->instruction_count) {
        const plan_instruction *last = &schedule->instructions[schedule->instruction_count - 1];
        before = last->first_operand + last->operands;
    }
    instruction.first_operand = before;
    instruction.operands = (int32_t)schedule->operand_count - before;
    base_assert(instruction.operands >= 0 && instruction.operands <= PLAN_ROLES);
    base_assert(instruction.call < (int32_t)schedule->call_count);
    base_assert((instruction.action == PLAN_WAIT) == (instruction.wait >= 0));
    base_assert(instruction.wait < (int32_t)schedule->instruction_count);
    schedule->instructions[schedule->instruction_count++] = instruction;
    return SIFR_OK;
}

void plan_reserve(plan_schedule *s, size_t instructions, size_t operands) {
    sifr_status status = base_grow(&s->instructions, &s->instruction_capacity, instructions,
                                   sizeof *s->instructions, NULL);
    if (status == SIFR_OK)
        status = base_grow(&s->operands, &s->operand_capacity, operands, sizeof *s->operands, NULL);
    (void)status; /* ignored: the list then grows step by step, or that fails */
}

void plan_empty_list(plan_schedule *s) {
    s->instruction_count = s->operand_count = 0;
}

plan_list plan_take_list(plan_schedule *s) {
    base_assert(s->instructions || !s->instruction_count);
    plan_list list = {s->instructions, s->operands, s->instruction_count};
    size_t instructions = s->instruction_count, operands = s->operand_count;
    s->instructions = NULL;
    s->operands = NULL;
    s->instruction_capacity = s->operand_capacity = 0;
    plan_empty_list(s);
    plan_reserve(s, instructions + instructions / 4, operands + operands / 4);
    return list;
}

void plan_free_list(plan_list *list) {
    free(list->instructions);
    free(list->operands);
    *list = (plan_list){0};
}

sifr_status plan_add_operands(plan_schedule *s, const plan_list *list, const plan_instruction *of,
                              plan_operand **out, sifr_error *error) {
    size_t count = (size_t)of->operands;
    BASE_TRY(base_grow(&s->operands, &s->operand_capacity, s->operand_count + count,
                       sizeof *s->operands, error));
    *out = s->operands + s->operand_count;
    if (count) memcpy(*out, list->operands + of->first_operand, count * sizeof **out);
    s->operand_count += count;
    return SIFR_OK;
}

sifr_status plan_keep(plan_schedule *s, const plan_list *list, size_t index, int32_t *moved,
                      sifr_error *error) {
    base_assert(index < list->count);
    plan_instruction in = list->instructions[index];
    plan_operand *operands;
    BASE_TRY(plan_add_operands(s, list, &in, &operands, error));
    moved[index] = (int32_t)s->instruction_count;
    base_assert(in.wait < (int32_t)index); /* so `moved` has its new index */
    if (in.wait >= 0) in.wait = moved[in.wait];
    return plan_add_instruction(s, in, error);
}

sifr_status plan_add_transfer(plan_schedule *s, plan_action action, plan_queue queue, int32_t unit,
                              int32_t micro_batch, int64_t bytes, sifr_error *error) {
    base_assert(bytes >= 0 && queue != PLAN_COMPUTE);
    return plan_add_instruction(s,
                                (plan_instruction){.action = (uint8_t)action,
                                                   .queue = (uint8_t)queue,
                                                   .unit = (int16_t)unit,
                                                   .micro_batch = micro_batch,
                                                   .node = -1,
                                                   .call = -1,
                                                   .bytes = bytes,
                                                   .wait = -1},
                                error);
}

/* Stores the runs of an exchange; *bytes: of what this rank gets. */
static sifr_status add_runs(plan_schedule *s, const plan_collective *c, int32_t *out,
                            int64_t *bytes, sifr_error *error) {
    size_t ranks = (size_t)plan_mesh_ranks(&s->settings.mesh, c->span);
    *out = (int32_t)s->run_count;
    *bytes = 0;
    if (s->run_count + 2 * ranks > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "schedule: too many exchanges");
    BASE_TRY(
        base_grow(&s->runs, &s->run_capacity, s->run_count + 2 * ranks, sizeof *s->runs, error));
    memcpy(s->runs + s->run_count, c->sent, ranks * sizeof *s->runs);
    memcpy(s->runs + s->run_count + ranks, c->received, ranks * sizeof *s->runs);
    for (size_t r = 0; r < ranks; r++) *bytes += c->received[r].bytes;
    s->run_count += 2 * ranks;
    return SIFR_OK;
}

sifr_status plan_add_collective(plan_schedule *s, const plan_collective *c, sifr_error *error) {
    bool adds = c->action == PLAN_REDUCE || c->action == PLAN_SUM;
    base_assert(adds || c->action == PLAN_GATHER || c->action == PLAN_EXCHANGE);
    base_assert(!adds || plan_encoding_of(c->encoding)->type != BASE_NONE);
    base_assert((c->action == PLAN_EXCHANGE) == (c->sent && c->received));
    int32_t runs = 0;
    int64_t bytes = c->bytes;
    if (c->sent) BASE_TRY(add_runs(s, c, &runs, &bytes, error));
    int32_t unit = c->segment >= 0 ? s->model->segments[c->segment].unit : c->unit;
    BASE_TRY(plan_add_transfer(s, c->action, plan_queue_of_span(c->span), unit, c->micro_batch,
                               bytes, error));
    plan_instruction *in = &s->instructions[s->instruction_count - 1];
    in->span = (uint8_t)c->span;
    in->encoding = (uint8_t)c->encoding;
    in->sum = (uint8_t)c->sum;
    in->segment = c->segment;
    in->runs = runs;
    return SIFR_OK;
}

bool plan_is_gather_for_use(const plan_schedule *s, const plan_list *list,
                            const plan_instruction *in) {
    if (in->action != PLAN_GATHER) return false;
    int32_t whole = list->operands[in->first_operand + 1].buffer;
    return s->buffers[whole].class == PLAN_GATHERED;
}

sifr_status plan_add_wait(plan_schedule *s, int32_t transfer, sifr_error *error) {
    base_assert(transfer >= 0 && (size_t)transfer < s->instruction_count);
    plan_instruction of = s->instructions[transfer];
    base_assert(of.queue != PLAN_COMPUTE && of.operands > 0);
    for (int32_t i = 0; i < of.operands; i++) {
        plan_operand operand = s->operands[of.first_operand + i];
        BASE_TRY(
            plan_add_operand(s, (plan_role)operand.role, operand.buffer, operand.offset, error));
    }
    return plan_add_instruction(s,
                                (plan_instruction){.action = PLAN_WAIT,
                                                   .queue = PLAN_COMPUTE,
                                                   .unit = of.unit,
                                                   .micro_batch = of.micro_batch,
                                                   .node = -1,
                                                   .call = -1,
                                                   .kind = of.kind,
                                                   .wait = transfer},
                                error);
}

sifr_status plan_add_call(plan_schedule *schedule, device_call call, int32_t *out,
                          sifr_error *error) {
    base_assert(schedule->scratch >= 0);
    BASE_TRY(device_prepare(schedule->dev, &call, error));
    BASE_TRY(base_grow(&schedule->calls, &schedule->call_capacity, schedule->call_count + 1,
                       sizeof *schedule->calls, error));
    plan_buffer *scratch = &schedule->buffers[schedule->scratch];
    if (call.scratch_bytes > scratch->bytes) scratch->bytes = call.scratch_bytes;
    schedule->calls[schedule->call_count] = call;
    *out = (int32_t)schedule->call_count++;
    return SIFR_OK;
}
