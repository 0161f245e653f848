#include "support/step_checks.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "plan/numbers.h"
#include "plan/queries.h"

static const plan_queue move_queues[] = {PLAN_DISK, PLAN_COPY};

sifr_status step_checks_count(const sifr_engine *engine, step_counts *out, sifr_error *error) {
    engine_group_of list[ENGINE_GROUPS];
    int groups = engine_groups_list(&engine->groups, list);
    sifr_status status = SIFR_OK;
    *out = (step_counts){.crossed = device_count(engine->dev)};
    for (int g = 0; g < groups; g++) out->wire[g] = *comm_get_ledger(list[g].group);
    if (engine->swap) {
        status = engine_swap_flush(engine->swap, error);
        engine_io_count(engine_swap_io(engine->swap), &out->read[0], &out->written[0]);
    }
    engine_count_copies(engine->trainer, &out->read[1], &out->written[1]);
    return status;
}

/* What a step writes before it knows whether it updates: gradients and activations. */
static int64_t written_before_norm(const plan_schedule *s, plan_queue queue) {
    int64_t bytes = 0;
    for (size_t i = 0; s->instructions[i].action != PLAN_NORM; i++) {
        const plan_instruction *in = &s->instructions[i];
        bool own = in->action == PLAN_WRITE && in->queue == queue && !in->deferred;
        bytes += own ? in->bytes : 0;
    }
    return bytes;
}

/* What a step leaves to the next one. */
static void count_deferred(const plan_schedule *s, plan_queue queue, int64_t *read,
                           int64_t *written) {
    *read = *written = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (!in->deferred || in->queue != queue) continue;
        if (in->action == PLAN_READ) *read += in->bytes;
        if (in->action == PLAN_WRITE) *written += in->bytes;
    }
}

/* A step that is skipped writes no more than that, and need not read all. The one before it may
 * have left something to it, if that was not skipped. */
static sifr_status check_moves(const sifr_engine *engine, const step_counts *before,
                               const step_counts *now, const step_past *last, bool updated,
                               sifr_error *error) {
    for (int q = 0; q < 2; q++) {
        const plan_schedule *s = engine->training;
        int64_t plan_read, plan_written, late_read, late_written;
        (q ? plan_copies : plan_disk)(s, &plan_read, &plan_written);
        count_deferred(s, move_queues[q], &late_read, &late_written);
        bool late = last->updated || (last->ran && device_is_hidden(engine->dev));
        int64_t read = now->read[q] - before->read[q] - (late ? late_read : 0);
        int64_t written = now->written[q] - before->written[q] - (late ? late_written : 0);
        int64_t least = written_before_norm(s, move_queues[q]);
        plan_read -= late_read;
        plan_written -= late_written;
        if (updated && read == plan_read && written == plan_written) continue;
        if (!updated && read <= plan_read && written == least) continue;
        if (!updated && device_is_hidden(engine->dev) && read == plan_read &&
            written == plan_written)
            continue; /* it is not known there in time */
        return base_fail(error, SIFR_FAILED,
                         "%s: %lld bytes read and %lld written, the plan has %lld and %lld",
                         plan_queue_name(move_queues[q]), (long long)read, (long long)written,
                         (long long)plan_read, (long long)plan_written);
    }
    return SIFR_OK;
}

/* What the host sets of inputs, in host memory of the device until it is copied. */
static int64_t staged_bytes(const plan_schedule *s) {
    int64_t bytes = 0;
    for (int32_t b = 0; b < (int32_t)s->buffer_count; b++) {
        bool input = s->buffers[b].class == PLAN_INPUTS && b != s->numbers;
        for (int32_t j = 0; j < s->settings.step.gradient_accumulation_steps; j++)
            input &= s->losses[j] != b;
        if (input) bytes += base_ceil_to(s->buffers[b].bytes, PLAN_ALIGNMENT);
    }
    return bytes;
}

/* A separate device holds what the plan says, as does the host for it; and beside what copy
 * instructions move only the batch and the step's numbers go there, and numbers come back. */
static sifr_status check_device(const sifr_engine *engine, const step_counts *before,
                                const step_counts *now, sifr_error *error) {
    const plan_schedule *s = engine->training;
    const device_counts *counts = &now->crossed;
    if (!device_is_separate(engine->dev)) return SIFR_OK;
    int64_t k = s->settings.step.gradient_accumulation_steps;
    int64_t ids = k * s->settings.step.micro_batch_size * s->settings.step.seq_length * 4;
    int64_t numbers = plan_own_number_bytes(s);
    int64_t inputs = 2 + (engine->model->inputs[SIFR_TOKEN_TYPES] >= 0) +
                     (engine->model->inputs[SIFR_SEGMENTS] >= 0) + engine->model->packed;
    int64_t in = now->read[1] - before->read[1] + inputs * ids + plan_begin_bytes();
    int64_t out = now->written[1] - before->written[1] + numbers;
    int64_t host_bytes = plan_host_bytes(s);
    if (device_is_hidden(engine->dev)) { /* files are read and written through the host */
        const plan_schedule *evaluation = engine->evaluator.schedule;
        host_bytes += numbers + staged_bytes(s);
        if (evaluation) host_bytes += plan_own_number_bytes(evaluation) + staged_bytes(evaluation);
        in += now->read[0] - before->read[0];
        out += now->written[0] - before->written[0];
    }
    int64_t ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_WORLD);
    if (device_is_hidden(engine->dev) && ranks > 1) { /* through the host */
        int64_t part = plan_part_bytes(s);
        in += ranks * part, out += part;
        host_bytes += ranks * part + COMM_WORD_BYTES;
    }
    int64_t came = counts->to_device - before->crossed.to_device;
    int64_t left = counts->to_host - before->crossed.to_host;
    if (came != in || left != out)
        return base_fail(error, SIFR_FAILED,
                         "%lld bytes went to the device and %lld came from it, by the plan %lld "
                         "and %lld",
                         (long long)came, (long long)left, (long long)in, (long long)out);
    if (counts->device_bytes == s->total_bytes && counts->host_bytes == host_bytes) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%lld bytes of the device and %lld of the host, the plan has %lld and %lld",
                     (long long)counts->device_bytes, (long long)counts->host_bytes,
                     (long long)s->total_bytes, (long long)host_bytes);
}

/* Bytes and calls of an instruction, by operation. */
static void add_wire(const plan_schedule *s, const plan_instruction *in,
                     uint64_t bytes[COMM_OPERATIONS], int64_t calls[COMM_OPERATIONS]) {
    int64_t others = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span) - 1;
    bool adds = in->action == PLAN_REDUCE || in->action == PLAN_SUM;
    comm_operation operation = in->action == PLAN_EXCHANGE ? COMM_ALL_TO_ALL
                               : adds                      ? COMM_REDUCE_SCATTER
                                                           : COMM_ALL_GATHER;
    calls[operation]++;
    bytes[operation] +=
        (uint64_t)(in->action == PLAN_EXCHANGE ? plan_delivered(s, in) : in->bytes * others);
    if (in->action != PLAN_SUM) return;
    calls[COMM_ALL_GATHER]++;
    bytes[COMM_ALL_GATHER] += (uint64_t)(plan_summed_bytes(in) * others);
}

/* Bytes and calls of collectives of the groups are those of the plan, group by group; those of the
 * first update that is delayed are still to come. */
static sifr_status check_wire(const sifr_engine *engine, const step_counts *before,
                              const step_counts *now, const step_past *last, sifr_error *error) {
    const plan_schedule *s = engine->training;
    engine_group_of list[ENGINE_GROUPS];
    int groups = engine_groups_list(&engine->groups, list);
    for (int g = 0; g < groups; g++) {
        const comm_ledger *after = &now->wire[g];
        uint64_t bytes[COMM_OPERATIONS] = {0};
        int64_t calls[COMM_OPERATIONS] = {0};
        for (size_t i = 0; i < s->instruction_count; i++) {
            const plan_instruction *in = &s->instructions[i];
            if (!plan_is_collective(in)) continue;
            comm_group *group = engine_groups_at(&engine->groups, (plan_span)in->span);
            if (group != list[g].group || (in->deferred && !last->ran)) continue;
            if (plan_runs(s, in)) add_wire(s, in, bytes, calls);
        }
        for (int o = COMM_ALL_GATHER; o < COMM_OPERATIONS; o++) {
            bool collective = o <= COMM_REDUCE_SCATTER || o == COMM_ALL_TO_ALL;
            if (!collective) continue;
            uint64_t moved = after->operation[o].bytes - before->wire[g].operation[o].bytes;
            int64_t made = after->operation[o].calls - before->wire[g].operation[o].calls;
            if (moved == bytes[o] && made == calls[o]) continue;
            return base_fail(error, SIFR_FAILED,
                             "%s of %s: %llu bytes in %lld calls, the plan has %llu in %lld",
                             comm_operation_name((comm_operation)o), plan_span_name(list[g].span),
                             (unsigned long long)moved, (long long)made,
                             (unsigned long long)bytes[o], (long long)calls[o]);
        }
    }
    return SIFR_OK;
}

sifr_status step_checks_compare(const sifr_engine *engine, const step_counts *before,
                                const step_past *last, bool updated, sifr_error *error) {
    step_counts now;
    BASE_TRY(step_checks_count(engine, &now, error));
    BASE_TRY(check_moves(engine, before, &now, last, updated, error));
    BASE_TRY(check_device(engine, before, &now, error));
    return check_wire(engine, before, &now, last, error);
}

/* What files are read and written through. */
static bool is_staging_pinned(const sifr_engine *engine) {
    const engine_staging *staging = engine_swap_staging(engine->swap);
    struct iovec memory[2];
    bool pinned = true;
    engine_staging_memory(staging, memory);
    for (int d = 0; d < 2; d++)
        pinned &= !memory[d].iov_base ||
                  engine_io_is_pinned(engine_swap_io(engine->swap), memory[d].iov_base,
                                      (int64_t)memory[d].iov_len);
    return pinned;
}

sifr_status step_checks_pinned(const sifr_engine *engine, sifr_error *error) {
    const plan_schedule *s = engine->training;
    const sifr_offload *o = &engine->settings.offload;
    const engine_pinned *pinned = &engine->pinned;
    if (!engine->swap) return SIFR_OK;
    engine_io *io = engine_swap_io(engine->swap);
    bool none = !engine_io_uses_rings(io) || pinned->number == ENOMEM;
    if (engine_swap_staging(engine->swap)) {
        bool any = o->optimizer.pin_memory || o->param.pin_memory;
        if (none || is_staging_pinned(engine) == any) return SIFR_OK;
        return base_fail(error, SIFR_FAILED, "memory of disk transfers is %spinned",
                         any ? "not " : "");
    }
    for (size_t i = 0; i < s->instruction_count && !none; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->queue != PLAN_DISK) continue;
        bool read = in->action == PLAN_READ;
        const plan_operand *memory = &s->operands[in->first_operand + read];
        plan_class of = s->buffers[s->operands[in->first_operand + !read].buffer].class;
        const char *at = engine_buffer(engine->trainer, memory->buffer);
        bool is = engine_io_is_pinned(io, at + memory->offset, in->bytes);
        bool asked = of == PLAN_PARAMETERS ? o->param.pin_memory : o->optimizer.pin_memory;
        bool beside =
            o->optimizer.pin_memory || o->param.pin_memory; /* what lies between is, too */
        if (is == asked || of == PLAN_ACTIVATIONS || (is && beside)) continue;
        return base_fail(error, SIFR_FAILED, "memory of %s is %spinned", plan_class_name(of),
                         is ? "" : "not ");
    }
    if (none || pinned->bytes == pinned->asked) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%lld of %lld bytes pinned: %s", (long long)pinned->bytes,
                     (long long)pinned->asked, strerror(pinned->number));
}
