/* The executor and its memory: one block, shared with the ranks of this host, that holds the
 * schedule's buffers; buffers outside of it; and the host's access to all of them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "engine/executor/executor_private.h"
#include "plan/queries.h"
#include "plan/verify/access.h"

static int64_t largest_operand(const plan_schedule *s, const plan_instruction *in) {
    plan_access accesses[PLAN_ACCESSES];
    int64_t bytes = 0;
    int count = plan_accesses(s, in, accesses);
    for (int a = 0; a < count; a++) bytes = base_max_i64(bytes, accesses[a].bytes);
    return bytes;
}

/* What an exchange sends to others and gets from them. */
static int64_t bytes_of_parts(const plan_schedule *s, const plan_instruction *in) {
    int32_t ranks = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span);
    int32_t own = plan_mesh_place(&s->settings.mesh, (plan_span)in->span);
    int64_t bytes = plan_delivered(s, in);
    for (int32_t r = 0; r < ranks; r++) bytes += r == own ? 0 : s->runs[in->runs + r].bytes;
    return bytes;
}

comm_operands engine_operands(const plan_schedule *s) {
    comm_operands out = {.sends = engine_transfers(s, PLAN_PEER)};
    for (size_t g = 0; g < s->model->segment_count; g++) {
        out.largest = base_max_i64(out.largest, s->segment_elements[g] * 4);
        if (s->weight_sums[g] >= 0)
            out.largest = base_max_i64(out.largest, s->buffers[s->weight_sums[g]].bytes);
    }
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->queue == PLAN_PEER) out.sent = base_max_i64(out.sent, in->bytes);
        if (!plan_is_collective(in)) continue;
        if (in->action == PLAN_EXCHANGE)
            out.parts = base_max_i64(out.parts, bytes_of_parts(s, in));
        else if (in->segment < 0)
            out.largest = base_max_i64(out.largest, largest_operand(s, in));
    }
    return out;
}

/* The other ranks of this host read gradients and parameters in place. All ranks open their windows
 * together, in the first run, since a rank that could not take its memory never gets there. */
sifr_status engine_open_window(engine_executor *e, sifr_error *error) {
    if (e->file < 0 && !e->opens_window) return SIFR_OK;
    sifr_status status = comm_open_window(e->world, e->block, e->block_bytes, e->file, error);
    if (e->file >= 0) close(e->file);
    e->file = -1;
    e->opens_window = false;
    if (status != SIFR_OK || !device_is_hidden(e->schedule->dev)) return status;
    comm_operands operands = engine_operands(e->schedule);
    return engine_groups_follow(&e->groups, e->schedule->dev, &operands, error);
}

/* Whether what the owner leaves idle is enough. Windows are opened by all ranks together, so if one
 * stage needs memory of its own, all take some. */
static sifr_status fits_beside(const engine_executor *e, const engine_executor *owner, bool *fits,
                               sifr_error *error) {
    const plan_schedule *o = owner->schedule;
    int64_t lacking = o->total_bytes - plan_idle_start(o) < e->schedule->total_bytes;
    if (plan_mesh_ranks(&o->settings.mesh, PLAN_STAGES) > 1)
        BASE_TRY(comm_sum(e->world, &lacking, 1, error));
    *fits = lacking == 0;
    return SIFR_OK;
}

static sifr_status take_memory(engine_executor *e, const engine_executor *owner,
                               sifr_error *error) {
    plan_schedule *s = e->schedule;
    bool fits = false;
    if (owner) BASE_TRY(fits_beside(e, owner, &fits, error));
    if (fits) {
        e->block = (char *)owner->block + plan_idle_start(owner->schedule);
        return SIFR_OK;
    }
    bool hidden = device_is_hidden(s->dev);
    e->opens_window = hidden && comm_size(e->world) > 1;
    if (comm_shares_memory(e->world) && !hidden)
        BASE_TRY(device_take_shared(s->dev, s->total_bytes, &e->block, &e->file, error));
    else
        BASE_TRY(device_take(s->dev, s->total_bytes, &e->block, error));
    e->block_bytes = s->total_bytes;
    return SIFR_OK;
}

/* Where the host writes a buffer's contents: in place, or in the window, from which `put` copies
 * them. */
static void *place_to_fill(const engine_executor *e, int32_t buffer) {
    void *at = engine_host_buffer(e, buffer);
    return at ? at : e->window;
}

static sifr_status put(const engine_executor *e, int32_t buffer, sifr_error *error) {
    if (engine_host_buffer(e, buffer)) return SIFR_OK;
    return engine_set(e, buffer, 0, e->window, e->schedule->buffers[buffer].bytes, error);
}

sifr_status engine_clear(const engine_executor *e, int32_t buffer, sifr_error *error) {
    base_assert(buffer >= 0 && e->schedule->buffers[buffer].tier != PLAN_NVME);
    memset(place_to_fill(e, buffer), 0, (size_t)e->schedule->buffers[buffer].bytes);
    return put(e, buffer, error);
}

sifr_status executor_fill_tables(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    bool cached = s->settings.mode == PLAN_GENERATE;
    int64_t positions = cached ? s->settings.cache_length : s->settings.step.seq_length;
    for (size_t t = 0; t < s->model->table_count; t++) {
        model_fill_table(&s->model->tables[t], 0, positions, e->length ? e->length : positions,
                         place_to_fill(e, s->tables[t]));
        BASE_TRY(put(e, s->tables[t], error));
    }
    bool given = cached || s->model->packed; /* with each batch */
    return given ? SIFR_OK : engine_count_positions(e, 0, error);
}

sifr_status engine_count_positions(const engine_executor *e, int32_t micro_batch,
                                   sifr_error *error) {
    const plan_schedule *s = e->schedule;
    int32_t buffer = s->inputs[SIFR_POSITIONS][micro_batch];
    base_assert(buffer >= 0);
    int32_t *position = place_to_fill(e, buffer);
    plan_token_runs runs = plan_runs_of_tokens(&s->settings);
    for (int64_t i = 0; i < plan_tokens(&s->settings); i++)
        position[i] = (int32_t)(runs.first[i / runs.length % runs.count] + i % runs.length);
    return put(e, buffer, error);
}

sifr_status engine_note_length(engine_executor *e, int64_t first, int64_t count, int64_t length,
                               sifr_error *error) {
    base_assert(first >= 0 && count >= 0 && first + count <= length);
    const plan_schedule *s = e->schedule;
    e->length = length;
    for (size_t t = 0; t < s->model->table_count; t++) {
        const model_table *table = &s->model->tables[t];
        if (!table->rule || !model_rope_varies(table->rule)) continue;
        int64_t row = table->rotary_dim * (int64_t)sizeof(float);
        char *at = engine_host_buffer(e, s->tables[t]);
        float *rows = (float *)(void *)(at ? at + first * row : e->window);
        model_fill_table(table, first, count, length, rows);
        if (!at) BASE_TRY(engine_set(e, s->tables[t], first * row, rows, count * row, error));
    }
    return SIFR_OK;
}

void engine_use_cache(engine_executor *e, const engine_executor *owner, int64_t sequence) {
    base_assert(sequence >= 0 && sequence < owner->schedule->settings.step.micro_batch_size);
    plan_schedule *s = e->schedule;
    const plan_schedule *o = owner->schedule;
    for (size_t c = 0; c < 2 * s->model->node_count; c++) {
        if (s->caches[c] < 0 || o->caches[c] < 0) continue;
        int64_t bytes = o->buffers[o->caches[c]].bytes / o->settings.step.micro_batch_size;
        base_assert(bytes >= s->buffers[s->caches[c]].bytes);
        e->base[s->caches[c]] = owner->base[o->caches[c]] + sequence * bytes;
    }
}

/* Parameters, and in generation also the caches, are the owner's, including their places on disk.
 */
static void borrow(engine_executor *e, const engine_executor *owner) {
    plan_schedule *s = e->schedule;
    const plan_schedule *o = owner->schedule;
    for (size_t g = 0; g < s->model->segment_count; g++) {
        base_assert(s->parameters[g] >= 0 && o->parameters[g] >= 0);
        e->base[s->parameters[g]] = owner->base[o->parameters[g]];
        s->buffers[s->parameters[g]].offset = o->buffers[o->parameters[g]].offset;
    }
    engine_use_cache(e, owner, 0);
}

static sifr_status take_move_handles(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    size_t disk = 0, copies = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        if (!executor_is_move(&s->instructions[i])) continue;
        *(s->instructions[i].queue == PLAN_DISK ? &disk : &copies) = s->instruction_count;
    }
    BASE_TRY(base_alloc(copies, sizeof *e->copies, &e->copies, error));
    BASE_TRY(base_alloc(disk, sizeof *e->moves, &e->moves, error));
    for (size_t i = 0; i < disk; i++) e->moves[i] = -1;
    if (device_is_hidden(s->dev))
        BASE_TRY(base_alloc(disk, sizeof *e->written, &e->written, error));
    return SIFR_OK;
}

static sifr_status take_host(engine_executor *e, const engine_executor *owner, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    void *block;
    if (owner) {
        e->host = owner->host;
        return SIFR_OK;
    }
    if (!s->host_bytes) return SIFR_OK;
    BASE_TRY(device_take_host(s->dev, s->host_bytes, &block, error));
    e->host = block;
    e->host_bytes = s->host_bytes;
    return SIFR_OK;
}

static int64_t all_parts_bytes(const engine_executor *e) {
    return comm_size(e->world) * plan_part_bytes(e->schedule);
}

/* A device that has only begun what it was given copies from and to memory of its own. */
static sifr_status take_numbers(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    void *numbers = engine_host_buffer(e, s->numbers);
    e->number_bytes = plan_own_number_bytes(s);
    if (!numbers && device_is_hidden(s->dev))
        BASE_TRY(device_take_host(s->dev, e->number_bytes, &numbers, error));
    else if (!numbers)
        BASE_TRY(base_alloc((size_t)e->number_bytes, 1, (char **)&numbers, error));
    e->numbers = numbers;
    bool decides = s->settings.mode == PLAN_TRAIN && comm_size(e->world) > 1;
    if (!device_is_hidden(s->dev) || !decides) return SIFR_OK;
    return device_take_host(s->dev, all_parts_bytes(e), &e->parts, error);
}

static bool is_loss(const plan_schedule *s, int32_t buffer) {
    for (int32_t j = 0; j < s->settings.step.gradient_accumulation_steps; j++)
        if (s->losses[j] == buffer) return true;
    return false;
}

static sifr_status take_stage(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    void *staged;
    if (!device_is_hidden(s->dev)) return SIFR_OK;
    BASE_TRY(base_alloc(s->buffer_count, sizeof *e->staged_at, &e->staged_at, error));
    for (int32_t b = 0; b < (int32_t)s->buffer_count; b++) {
        bool input = s->buffers[b].class == PLAN_INPUTS && b != s->numbers && !is_loss(s, b);
        e->staged_at[b] = input ? e->staged_bytes : -1;
        e->staged_bytes += input ? base_ceil_to(s->buffers[b].bytes, PLAN_ALIGNMENT) : 0;
    }
    BASE_TRY(device_take_host(s->dev, e->staged_bytes, &staged, error));
    e->staged = staged;
    return SIFR_OK;
}

static void give_numbers(engine_executor *e) {
    const plan_schedule *s = e->schedule;
    if (e->parts) device_give(s->dev, e->parts, all_parts_bytes(e));
    if (!e->numbers || e->numbers == engine_host_buffer(e, s->numbers)) return;
    if (device_is_hidden(s->dev))
        device_give(s->dev, e->numbers, e->number_bytes);
    else
        free(e->numbers);
}

/* The largest input or table, which the host itself writes. */
static sifr_status take_window(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    int64_t most = 0;
    if (!device_is_separate(s->dev)) return SIFR_OK;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        bool looked_at = buffer->class == PLAN_INPUTS || buffer->class == PLAN_CONSTANTS;
        if (looked_at) most = base_max_i64(most, buffer->bytes);
    }
    return base_alloc((size_t)most, 1, &e->window, error);
}

static char *place_of(const engine_executor *e, size_t index) {
    const plan_buffer *buffer = &e->schedule->buffers[index];
    if (!plan_is_offloaded(e->schedule, (int32_t)index)) {
        int64_t offset = buffer->offset;
        base_assert(offset >= 0 && offset + buffer->bytes <= e->schedule->total_bytes);
        if (buffer->aligned) offset = base_ceil_to(offset, PLAN_DISK_ALIGNMENT);
        return (char *)e->block + offset;
    }
    return buffer->tier == PLAN_HOST && e->host ? e->host + buffer->offset : NULL;
}

/* Buffers of transfers are aligned; the plan has room for that. */
static void place_buffers(engine_executor *e) {
    const plan_schedule *s = e->schedule;
    for (size_t b = 0; b < s->buffer_count; b++) e->base[b] = place_of(e, b);
}

int32_t engine_transfers(const plan_schedule *s, plan_queue queue) {
    int32_t under_way = 0, most = 1;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        under_way += in->queue == queue;
        under_way -= in->wait >= 0 && s->instructions[in->wait].queue == queue;
        base_assert(under_way >= 0);
        if (under_way > most) most = under_way;
    }
    return most;
}

void engine_use_swap(engine_executor *e, engine_swap *swap) {
    e->swap = swap;
}

sifr_status engine_executor_create(plan_schedule *schedule, const engine_groups *groups,
                                   engine_executor *owner, engine_executor **out,
                                   sifr_error *error) {
    base_assert(!owner || owner->schedule->model == schedule->model);
    engine_executor *e;
    sifr_status status;
    BASE_TRY(base_alloc(1, sizeof *e, &e, error));
    e->schedule = schedule;
    e->groups = *groups;
    e->world = engine_groups_at(groups, PLAN_WORLD);
    e->file = -1;
    size_t buffers = schedule->buffer_count;
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *e->base, &e->base, error), fail);
    BASE_TRY_GOTO(status,
                  base_alloc(schedule->instruction_count, sizeof *e->seconds, &e->seconds, error),
                  fail);
    BASE_TRY_GOTO(
        status, base_alloc(schedule->instruction_count, sizeof *e->transfers, &e->transfers, error),
        fail);
    BASE_TRY_GOTO(status, take_move_handles(e, error), fail);
    BASE_TRY_GOTO(status, take_memory(e, owner, error), fail);
    BASE_TRY_GOTO(status, take_host(e, owner, error), fail);
    BASE_TRY_GOTO(status, take_window(e, error), fail);
    place_buffers(e);
    if (owner) borrow(e, owner);
    BASE_TRY_GOTO(status, take_numbers(e, error), fail);
    BASE_TRY_GOTO(status, take_stage(e, error), fail);
    e->shared = owner && !e->block_bytes;
    for (size_t i = 0; i < schedule->instruction_count; i++)
        e->defers |= schedule->instructions[i].deferred;
    BASE_TRY_GOTO(status, executor_fill_tables(e, error), fail);
    /* The first run may set inputs again, whose host memory is then free. */
    BASE_TRY_GOTO(status, device_finish_queue(schedule->dev, DEVICE_COMPUTE, error), fail);
    *out = e;
    return SIFR_OK;
fail:
    engine_executor_free(e);
    return status;
}

/* A failed run may have left some under way. */
static void finish_copies(engine_executor *e) {
    for (int queue = 0; queue < DEVICE_QUEUES; queue++)
        (void)!device_finish_queue(e->schedule->dev, (device_queue)queue, NULL);
}

void engine_executor_free(engine_executor *e) {
    if (!e) return;
    const plan_schedule *s = e->schedule;
    finish_copies(e); /* before freeing memory that they may be moving */
    give_numbers(e);
    if (e->staged) device_give(s->dev, e->staged, e->staged_bytes);
    if (e->host_bytes) device_give(s->dev, e->host, e->host_bytes);
    if (e->file >= 0) close(e->file);
    if (e->block_bytes) comm_close_window(e->world, e->block);
    if (e->block_bytes) device_give(s->dev, e->block, e->block_bytes);
    free(e->base);
    free(e->seconds);
    free(e->transfers);
    free(e->moves);
    free(e->copies);
    free(e->written);
    free(e->staged_at);
    free(e->window);
    free(e);
}

void *engine_buffer(const engine_executor *e, int32_t buffer) {
    base_assert(buffer < (int32_t)e->schedule->buffer_count);
    return buffer < 0 ? NULL : e->base[buffer];
}

/* On disk, or in memory that the host cannot access. */
static bool is_hidden(const engine_executor *e, int32_t buffer) {
    base_assert(buffer >= 0 && buffer < (int32_t)e->schedule->buffer_count);
    const plan_schedule *s = e->schedule;
    plan_tier tier = s->buffers[buffer].tier;
    return tier == PLAN_NVME || (tier == PLAN_DEVICE && device_is_separate(s->dev));
}

void *engine_host_buffer(const engine_executor *e, int32_t buffer) {
    return buffer < 0 || is_hidden(e, buffer) ? NULL : e->base[buffer];
}

sifr_status engine_get(const engine_executor *e, int32_t buffer, int64_t at, void *to,
                       int64_t bytes, sifr_error *error) {
    base_assert(buffer >= 0 && e->schedule->buffers[buffer].tier != PLAN_NVME);
    base_assert(at >= 0 && at + bytes <= e->schedule->buffers[buffer].bytes);
    if (is_hidden(e, buffer))
        return device_copy(e->schedule->dev, to, e->base[buffer] + at, bytes, error);
    memcpy(to, e->base[buffer] + at, (size_t)bytes);
    return SIFR_OK;
}

sifr_status engine_set(const engine_executor *e, int32_t buffer, int64_t at, const void *from,
                       int64_t bytes, sifr_error *error) {
    base_assert(buffer >= 0 && e->schedule->buffers[buffer].tier != PLAN_NVME);
    base_assert(at >= 0 && at + bytes <= e->schedule->buffers[buffer].bytes);
    if (e->staged && e->staged_at[buffer] >= 0) {
        char *staged = e->staged + e->staged_at[buffer] + at;
        memcpy(staged, from, (size_t)bytes);
        return device_start_copy(e->schedule->dev, DEVICE_COMPUTE, e->base[buffer] + at, staged,
                                 bytes, error);
    }
    if (is_hidden(e, buffer))
        return device_copy(e->schedule->dev, e->base[buffer] + at, from, bytes, error);
    memcpy(e->base[buffer] + at, from, (size_t)bytes);
    return SIFR_OK;
}

void engine_count_copies(const engine_executor *e, int64_t *to_device, int64_t *to_host) {
    *to_device = e->copied[0];
    *to_host = e->copied[1];
}

int64_t engine_taken_bytes(const engine_executor *e) {
    return e->block_bytes;
}

void *engine_idle_memory(const engine_executor *e, int64_t *bytes) {
    base_assert(!e->pending);
    int64_t start = plan_idle_start(e->schedule);
    *bytes = base_max_i64(0, e->schedule->total_bytes - start);
    return (char *)e->block + start;
}
