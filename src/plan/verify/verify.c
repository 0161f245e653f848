/* Invariants of a list, and of a finished plan. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/peers.h"
#include "plan/queries.h"
#include "plan/verify/access.h"
#include "plan/verify/byte_ranges.h"
#include "plan/verify/content_check.h"
#include "plan/verify/order_check.h"
#include "plan/verify/verify_private.h"

/* --- single instructions --- */

static sifr_status check_indices(const plan_schedule *s, size_t index, sifr_error *error) {
    const plan_instruction *in = &s->instructions[index];
    char name[VERIFY_NAME_LENGTH];
    bool operands = in->first_operand >= 0 && in->operands >= 0 && in->operands <= PLAN_ROLES &&
                    (size_t)in->first_operand + (size_t)in->operands <= s->operand_count;
    bool known = in->action < PLAN_ACTIONS && in->queue < PLAN_QUEUES &&
                 in->call < (int32_t)s->call_count && in->unit < (int32_t)s->model->unit_count &&
                 in->micro_batch < s->settings.step.gradient_accumulation_steps;
    if (!operands || !known)
        return base_fail(
            error, SIFR_FAILED,
            VERIFY_FAULT("%s refers to an operand, a call, a unit or a micro batch that "
                         "does not exist"),
            verify_name_instruction(s, index, name));
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
        const plan_operand *operand = &s->operands[o];
        bool there = operand->buffer >= 0 && (size_t)operand->buffer < s->buffer_count &&
                     operand->role < PLAN_ROLES;
        if (!there)
            return base_fail(error, SIFR_FAILED, VERIFY_FAULT("%s: buffer %d does not exist"),
                             verify_name_instruction(s, index, name), operand->buffer);
    }
    return SIFR_OK;
}

/* Runs that a rank gets lie one behind the other, in any order. */
static bool is_gapless(const comm_run *runs, int32_t ranks) {
    int64_t from = INT64_MAX, to = 0, bytes = 0;
    for (int32_t r = 0; r < ranks; r++) {
        if (runs[r].at < 0 || runs[r].bytes < 0) return false;
        if (runs[r].bytes == 0) continue;
        from = base_min_i64(from, runs[r].at);
        to = base_max_i64(to, runs[r].at + runs[r].bytes);
        bytes += runs[r].bytes;
        for (int32_t o = 0; o < r; o++) {
            bool meet = runs[o].bytes && runs[o].at < runs[r].at + runs[r].bytes &&
                        runs[r].at < runs[o].at + runs[o].bytes;
            if (meet) return false;
        }
    }
    return bytes == 0 || to - from == bytes;
}

static sifr_status check_runs(const plan_schedule *s, size_t index, sifr_error *error) {
    const plan_instruction *in = &s->instructions[index];
    char name[VERIFY_NAME_LENGTH];
    int32_t ranks = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span);
    bool there = in->runs >= 0 && (size_t)in->runs + 2 * (size_t)ranks <= s->run_count;
    int64_t bytes = 0;
    for (int32_t r = 0; r < ranks && there; r++) {
        there = s->runs[in->runs + r].at >= 0 && s->runs[in->runs + r].bytes >= 0;
        bytes += s->runs[in->runs + ranks + r].bytes;
    }
    if (there && bytes == in->bytes && is_gapless(s->runs + in->runs + ranks, ranks))
        return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     VERIFY_FAULT("%s: the parts that it gets do not make up %lld bytes"),
                     verify_name_instruction(s, index, name), (long long)in->bytes);
}

/* Exchanges are of values or of codes of a gradient, sums of values or of the parts that tensor
 * ranks make of a gradient. */
static bool may_carry(const plan_schedule *s, const plan_instruction *in) {
    if (in->segment < 0 || in->action == PLAN_GATHER || in->action == PLAN_REDUCE) return true;
    if (in->action == PLAN_EXCHANGE) return in->encoding == PLAN_CODE_BLOCKS4;
    return in->action == PLAN_SUM && s->model->segments[in->segment].partial &&
           in->span == plan_parts_span(s, in->segment);
}

/* What is added up has a type, and its sum that type or fp32. */
static sifr_status check_collective(const plan_schedule *s, size_t index, sifr_error *error) {
    const plan_instruction *in = &s->instructions[index];
    char name[VERIFY_NAME_LENGTH];
    bool adds = in->action == PLAN_REDUCE || in->action == PLAN_SUM;
    bool known = in->encoding < PLAN_CODES && in->segment < (int32_t)s->model->segment_count;
    if (known && adds) {
        const plan_encoding *encoding = plan_encoding_of((plan_code)in->encoding);
        known = encoding->type != BASE_NONE && in->bytes % encoding->bytes == 0 &&
                (in->sum == BASE_FP32 || in->sum == encoding->type);
    }
    if (!known || !may_carry(s, in))
        return base_fail(error, SIFR_FAILED,
                         VERIFY_FAULT("%s of %lld bytes has no encoding that fits it"),
                         verify_name_instruction(s, index, name), (long long)in->bytes);
    return in->action == PLAN_EXCHANGE ? check_runs(s, index, error) : SIFR_OK;
}

static sifr_status check_queue(const plan_schedule *s, size_t index, sifr_error *error) {
    const plan_instruction *in = &s->instructions[index];
    char name[VERIFY_NAME_LENGTH];
    plan_queue queue = PLAN_COMPUTE;
    if (plan_is_collective(in)) queue = plan_queue_of_span((plan_span)in->span);
    bool peers = plan_is_peer(in);
    int32_t wanted = peers ? 1 : 2;
    if (peers) queue = PLAN_PEER;
    bool two = !plan_is_transfer(in) || (in->operands == wanted && in->call < 0 &&
                                         (in->bytes > 0 || in->action == PLAN_EXCHANGE));
    if (two && (in->action == PLAN_READ || in->action == PLAN_WRITE)) {
        int32_t away = in->first_operand + (in->action == PLAN_WRITE);
        queue = plan_queue_of(s, s->operands[away].buffer);
    }
    if (two && in->queue == queue) return SIFR_OK;
    verify_name_instruction(s, index, name);
    if (!two)
        return base_fail(error, SIFR_FAILED,
                         VERIFY_FAULT("%s moves %lld bytes and has %d operands, not %d"), name,
                         (long long)in->bytes, in->operands, wanted);
    return base_fail(error, SIFR_FAILED, VERIFY_FAULT("%s is on the %s queue, not the %s queue"),
                     name, plan_queue_name((plan_queue)in->queue), plan_queue_name(queue));
}

/* `why` is the fault of the instruction waited for. */
static sifr_status fail_wait(const plan_schedule *s, size_t index, const char *why,
                             sifr_error *error) {
    char name[VERIFY_NAME_LENGTH], other[VERIFY_NAME_LENGTH];
    return base_fail(error, SIFR_FAILED, VERIFY_FAULT("%s waits for %s, %s"),
                     verify_name_instruction(s, index, name),
                     verify_name_instruction(s, (size_t)s->instructions[index].wait, other), why);
}

/* `waited` tells, by instruction, whether a wait for it has been seen. */
static sifr_status check_wait(const plan_schedule *s, size_t index, bool *waited,
                              sifr_error *error) {
    const plan_instruction *in = &s->instructions[index], *transfer;
    char name[VERIFY_NAME_LENGTH];
    bool waits = in->action == PLAN_WAIT;
    bool there = in->wait >= 0 && (size_t)in->wait < s->instruction_count;
    if (!waits && in->wait < 0) return SIFR_OK;
    if (!waits || !there)
        return base_fail(error, SIFR_FAILED, VERIFY_FAULT("%s waits for instruction %d"),
                         verify_name_instruction(s, index, name), in->wait);
    transfer = &s->instructions[in->wait];
    if ((size_t)in->wait >= index) return fail_wait(s, index, "which starts later", error);
    if (!plan_is_transfer(transfer)) return fail_wait(s, index, "which is no transfer", error);
    if (transfer->deferred != in->deferred || transfer->kind != in->kind)
        return fail_wait(s, index, "which is of another step", error);
    if (waited[in->wait]) return fail_wait(s, index, "which is over already", error);
    waited[in->wait] = true;
    return SIFR_OK;
}

/* --- operands inside buffers --- */

/* Bytes that operands may use: whole pages if the buffer is offloaded or aligned. */
static int64_t usable_bytes(const plan_schedule *s, int32_t buffer) {
    const plan_buffer *b = &s->buffers[buffer];
    if (plan_is_offloaded(s, buffer)) return base_ceil_to(b->bytes, PLAN_DISK_ALIGNMENT);
    return b->aligned ? b->bytes - PLAN_DISK_ALIGNMENT : b->bytes;
}

/* Buffers of another schedule, or mapped in by the engine, have no bytes here. */
static bool is_elsewhere(const plan_schedule *s, int32_t buffer) {
    const plan_buffer *b = &s->buffers[buffer];
    return s->settings.external_parameters && b->bytes == 0 &&
           (b->class == PLAN_PARAMETERS || b->class == PLAN_CACHE);
}

static sifr_status check_bounds(const plan_schedule *s, size_t index, const plan_access *a,
                                sifr_error *error) {
    char name[VERIFY_NAME_LENGTH], buffer[VERIFY_NAME_LENGTH];
    int64_t usable = usable_bytes(s, a->buffer);
    bool inside = a->rows > 0 && a->offset >= 0 && plan_access_end(a) <= usable;
    if (inside || is_elsewhere(s, a->buffer)) return SIFR_OK;
    return base_fail(
        error, SIFR_FAILED, VERIFY_FAULT("%s: %s is bytes %lld to %lld of %s, which has %lld"),
        verify_name_instruction(s, index, name), plan_access_name(a), (long long)a->offset,
        (long long)plan_access_end(a), verify_name_buffer(s, a->buffer, buffer), (long long)usable);
}

/* --- nothing is read before it is written --- */

/* Whether the engine fills a buffer before the first step. Permanent buffers are filled with state,
 * inputs and tables. A step's numbers, its losses and what it leaves in a file are not. */
static bool is_filled(const plan_schedule *s, int32_t buffer) {
    const plan_buffer *b = &s->buffers[buffer];
    if (b->first >= 0 || b->class == PLAN_ACTIVATIONS || b->class == PLAN_GRADIENTS) return false;
    if (buffer == s->numbers) return false;
    for (int32_t j = 0; j < s->settings.step.gradient_accumulation_steps; j++) {
        if (s->losses[j] == buffer) return false;
    }
    return true;
}

static plan_range row_of(const plan_access *a, int64_t row) {
    int64_t from = a->offset + row * a->pitch;
    return (plan_range){from, from + a->bytes};
}

static plan_range rows_of(const plan_access *a) {
    return (plan_range){a->offset, plan_access_end(a)};
}

/* The bytes that must have been written. Transfers from and to a buffer that is offloaded move
 * whole pages, and the last page may have padding. */
static plan_range needed_of(const plan_schedule *s, size_t index, const plan_access *a,
                            int64_t row) {
    const plan_instruction *in = &s->instructions[index];
    plan_range range = row_of(a, row);
    if (in->action == PLAN_READ || in->action == PLAN_WRITE)
        range.to = base_max_i64(range.from + 1, range.to - PLAN_DISK_ALIGNMENT + 1);
    return range;
}

static sifr_status check_read(const plan_schedule *s, size_t index, const plan_access *a,
                              const plan_ranges *written, sifr_error *error) {
    char name[VERIFY_NAME_LENGTH], buffer[VERIFY_NAME_LENGTH];
    if (plan_ranges_hold(&written[a->buffer], rows_of(a))) return SIFR_OK;
    for (int64_t r = 0; r < a->rows; r++) {
        plan_range needed = needed_of(s, index, a, r);
        if (plan_ranges_hold(&written[a->buffer], needed)) continue;
        return base_fail(error, SIFR_FAILED,
                         VERIFY_FAULT("%s: %s reads bytes %lld to %lld of %s, which nothing has "
                                      "written before"),
                         verify_name_instruction(s, index, name), plan_access_name(a),
                         (long long)needed.from, (long long)needed.to,
                         verify_name_buffer(s, a->buffer, buffer));
    }
    return SIFR_OK;
}

static sifr_status note_write(const plan_access *a, plan_ranges *written, sifr_error *error) {
    if (plan_ranges_hold(&written[a->buffer], rows_of(a))) return SIFR_OK;
    return plan_ranges_add_rows(&written[a->buffer], row_of(a, 0), a->rows, a->pitch, error);
}

static sifr_status check_contents(const plan_schedule *s, size_t index, plan_ranges *written,
                                  const bool *filled, sifr_error *error) {
    plan_access accesses[PLAN_ACCESSES];
    if (!plan_runs(s, &s->instructions[index])) return SIFR_OK;
    int count = plan_accesses(s, &s->instructions[index], accesses);
    for (int a = 0; a < count; a++) {
        BASE_TRY(check_bounds(s, index, &accesses[a], error));
        if (!accesses[a].reads || filled[accesses[a].buffer]) continue;
        BASE_TRY(check_read(s, index, &accesses[a], written, error));
    }
    for (int a = 0; a < count; a++) {
        if (accesses[a].writes && !filled[accesses[a].buffer])
            BASE_TRY(note_write(&accesses[a], written, error));
    }
    return SIFR_OK;
}

/* A buffer that does not live past the end of the step is empty in the next step. */
static void end_step(const plan_schedule *s, plan_ranges *written) {
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (buffer->first >= 0 && !verify_lives_on(buffer)) plan_ranges_empty(&written[b]);
    }
}

/* Checks one step without deferred instructions. If the update is deferred, a second step follows,
 * with the update of the first. */
static sifr_status run_steps(const plan_schedule *s, plan_ranges *written, const bool *filled,
                             sifr_error *error) {
    bool defers = s->spread > 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        if (!s->instructions[i].deferred) BASE_TRY(check_contents(s, i, written, filled, error));
    }
    if (!defers) return SIFR_OK;
    end_step(s, written);
    for (size_t i = 0; i < s->instruction_count; i++)
        BASE_TRY(check_contents(s, i, written, filled, error));
    return SIFR_OK;
}

static sifr_status check_all_contents(const plan_schedule *s, sifr_error *error) {
    plan_ranges *written = NULL; /* by buffer */
    bool *filled = NULL;
    sifr_status status = base_alloc(s->buffer_count, sizeof *written, &written, error);
    if (status == SIFR_OK) status = base_alloc(s->buffer_count, sizeof *filled, &filled, error);
    for (size_t b = 0; filled && b < s->buffer_count; b++) filled[b] = is_filled(s, (int32_t)b);
    if (status == SIFR_OK) status = run_steps(s, written, filled, error);
    for (size_t b = 0; written && b < s->buffer_count; b++) plan_ranges_free(&written[b]);
    free(written);
    free(filled);
    return status;
}

/* --- a list, and a finished plan --- */

/* With `finished`, every transfer must have been waited for. */
static sifr_status check_waits(const plan_schedule *s, bool finished, sifr_error *error) {
    char name[VERIFY_NAME_LENGTH];
    bool *waited;
    BASE_TRY(base_alloc(s->instruction_count, sizeof *waited, &waited, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < s->instruction_count && status == SIFR_OK; i++)
        status = check_wait(s, i, waited, error);
    for (size_t i = 0; i < s->instruction_count && status == SIFR_OK && finished; i++) {
        if (!waited[i] && plan_is_transfer(&s->instructions[i]))
            status = base_fail(error, SIFR_FAILED, VERIFY_FAULT("nothing waits for %s"),
                               verify_name_instruction(s, i, name));
    }
    free(waited);
    return status;
}

/* Of plain steps and of compressed ones. */
static sifr_status check_kinds(const plan_schedule *s,
                               sifr_status (*check)(const plan_schedule *s, sifr_error *error),
                               sifr_error *error) {
    plan_schedule other = *s;
    other.compressed = !s->compressed;
    BASE_TRY(check(s, error));
    return s->compresses ? check(&other, error) : SIFR_OK;
}

static sifr_status check_list(const plan_schedule *s, bool finished, sifr_error *error) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        BASE_TRY(check_indices(s, i, error));
        BASE_TRY(check_queue(s, i, error));
        if (plan_is_collective(&s->instructions[i])) BASE_TRY(check_collective(s, i, error));
    }
    BASE_TRY(check_waits(s, finished, error));
    return check_kinds(s, check_all_contents, error);
}

sifr_status plan_verify_list(const plan_schedule *s, sifr_error *error) {
    return check_list(s, false, error);
}

sifr_status plan_verify(const plan_schedule *s, sifr_error *error) {
    BASE_TRY(check_list(s, true, error));
    BASE_TRY(verify_memory(s, error));
    BASE_TRY(plan_check_order(s, error));
    return check_kinds(s, plan_check_content, error);
}
