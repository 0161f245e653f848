#include "engine/executor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"

struct engine_executor {
    plan_schedule *schedule;
    comm_group *group;
    char **base; /* by buffer */
    void *block;
    int64_t block_bytes; /* 0: the block is the owner's */
    int file;            /* of a block that is no window yet; -1: none */
    bool shared;         /* the owner's, and overwritten by each of its runs */
    float *seconds;
    engine_span *spans;      /* the caller's; NULL: not asked for */
    comm_handle *transfers;  /* by the instruction that started them */
    engine_swap *swap;       /* borrowed; NULL: nothing is on disk */
    engine_host_store *host; /* NULL: nothing is in host memory that is not the device's */
    bool borrows_host;       /* it is the owner's */
    char *window;            /* for what the host looks at, of a separate device; else NULL */
    engine_io_handle *moves; /* transfers of both, by the instruction that started them; -1: none */
    engine_io_times move_times;          /* of the last one that was waited for */
    bool skip;                           /* the rest of this step changes nothing */
    bool defers;                         /* some of the schedule's instructions are deferred */
    bool pending;                        /* what is deferred is still to be carried out ... */
    device_step last;                    /* ... with the numbers of the step before */
    double *losses;                      /* by micro batch of this rank */
    double *all_losses, *ordered_losses; /* of all ranks: as gathered, by global micro batch */
    device_step step;
    engine_kernel kernel; /* NULL: the device's own */
    void *kernel_user;
};

/* Between steps nothing of a training schedule lives but what always lives, and until
 * engine_run_deferred what is pending needs. */
static int64_t permanent_bytes(const plan_schedule *s) {
    int64_t end = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (buffer->first < 0 && !plan_is_away(s, (int32_t)b))
            end = base_max_i64(end, buffer->offset + buffer->bytes);
    }
    return base_ceil_to(end, 4096);
}

/* The other ranks of this host read gradients and parameters in place. All ranks have to open their
 * windows together: in the first run, as one that could not even take its memory gets no further.
 */
static sifr_status open_window(engine_executor *e, sifr_error *error) {
    if (e->file < 0) return SIFR_OK;
    sifr_status status = comm_open_window(e->group, e->block, e->block_bytes, e->file, error);
    close(e->file);
    e->file = -1;
    return status;
}

static sifr_status take_memory(engine_executor *e, const engine_executor *owner,
                               sifr_error *error) {
    plan_schedule *s = e->schedule;
    if (owner) {
        int64_t start = permanent_bytes(owner->schedule);
        if (owner->schedule->total_bytes - start >= s->total_bytes) {
            e->block = (char *)owner->block + start;
            return SIFR_OK;
        }
    }
    if (comm_shares_memory(e->group))
        BASE_TRY(device_take_shared(s->dev, s->total_bytes, &e->block, &e->file, error));
    else
        BASE_TRY(device_take(s->dev, s->total_bytes, &e->block, error));
    e->block_bytes = s->total_bytes;
    return SIFR_OK;
}

/* Where the host makes what a buffer is to hold: in place, or in the window; then `put` has it
 * there. */
static void *place_to_fill(const engine_executor *e, int32_t buffer) {
    void *at = engine_host_buffer(e, buffer);
    return at ? at : e->window;
}

static sifr_status put(const engine_executor *e, int32_t buffer, sifr_error *error) {
    if (engine_host_buffer(e, buffer)) return SIFR_OK;
    return engine_set(e, buffer, 0, e->window, e->schedule->buffers[buffer].bytes, error);
}

static void fill_table(const model_table *table, int64_t positions, float *at) {
    int64_t half = table->head_dim / 2;
    for (int64_t p = 0; p < positions; p++, at += table->head_dim) {
        for (int64_t i = 0; i < half; i++) {
            /* As transformers: the frequency in fp32, the angle in fp32. */
            float angle = (float)p * (float)table->frequencies[i];
            at[i] = (float)cos((double)angle);
            at[half + i] = (float)sin((double)angle);
        }
    }
}

static sifr_status fill_tables(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    bool cached = s->settings.mode == PLAN_GENERATE;
    int64_t positions = cached ? s->settings.cache_length : s->settings.length;
    for (size_t t = 0; t < s->model->table_count; t++) {
        fill_table(&s->model->tables[t], positions, place_to_fill(e, s->tables[t]));
        BASE_TRY(put(e, s->tables[t], error));
    }
    if (cached) return SIFR_OK;
    int32_t *position = place_to_fill(e, s->positions[0]);
    for (int64_t q = 0; q < s->settings.sequences; q++) {
        for (int64_t i = 0; i < s->settings.length; i++) {
            position[q * s->settings.length + i] = (int32_t)i;
        }
    }
    return put(e, s->positions[0], error);
}

/* Parameters, and where both generate, caches, are the owner's; so are their places on disk. */
static void borrow(engine_executor *e, const engine_executor *owner) {
    plan_schedule *s = e->schedule;
    const plan_schedule *o = owner->schedule;
    for (size_t u = 0; u < s->model->unit_count; u++) {
        e->base[s->parameters[u]] = owner->base[o->parameters[u]];
        s->buffers[s->parameters[u]].offset = o->buffers[o->parameters[u]].offset;
    }
    for (size_t c = 0; c < 2 * s->model->node_count; c++) {
        if (s->caches[c] >= 0 && o->caches[c] >= 0)
            e->base[s->caches[c]] = owner->base[o->caches[c]];
    }
}

static bool is_move(const plan_instruction *i) {
    return i->action == PLAN_READ || i->action == PLAN_WRITE;
}

static sifr_status take_move_handles(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    size_t count = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        if (is_move(&s->instructions[i])) count = s->instruction_count;
    }
    BASE_TRY(base_alloc(count, sizeof *e->moves, &e->moves, error));
    for (size_t i = 0; i < count; i++) e->moves[i] = -1;
    return SIFR_OK;
}

static sifr_status take_host(engine_executor *e, const engine_executor *owner, sifr_error *error) {
    plan_schedule *s = e->schedule;
    if (owner) {
        e->host = owner->host;
        e->borrows_host = true;
        return SIFR_OK;
    }
    if (!s->host_bytes) return SIFR_OK;
    return engine_host_store_open(s->dev, s->host_bytes, engine_transfers(s, PLAN_COPY), &e->host,
                                  error);
}

/* The largest of what the host itself reads and writes of a step, and of the tables. */
static sifr_status take_window(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    int64_t most = 0;
    if (!device_is_separate(s->dev)) return SIFR_OK;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        bool looked_at = buffer->class == PLAN_INPUTS || buffer->class == PLAN_CONSTANTS;
        looked_at |= (int32_t)b == s->squares || (int32_t)b == s->all_squares;
        if (looked_at) most = base_max_i64(most, buffer->bytes);
    }
    return base_alloc((size_t)most, 1, &e->window, error);
}

static char *place_of(const engine_executor *e, size_t index) {
    const plan_buffer *buffer = &e->schedule->buffers[index];
    if (!plan_is_away(e->schedule, (int32_t)index)) {
        int64_t offset = buffer->offset;
        if (buffer->aligned) offset = base_ceil_to(offset, PLAN_DISK_ALIGNMENT);
        return (char *)e->block + offset;
    }
    bool host = buffer->tier == PLAN_HOST && e->host;
    return host ? engine_host_store_file(e->host)->memory + buffer->offset : NULL;
}

/* What transfers move is aligned for them; the plan left room for that. */
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
        if (under_way > most) most = under_way;
    }
    return most;
}

bool engine_use_swap(engine_executor *e, engine_swap *swap, bool pin) {
    enum { MOST = 256 };
    struct iovec memory[MOST];
    unsigned count = 0;
    const plan_schedule *s = e->schedule;
    e->swap = swap;
    for (size_t b = 0; b < s->buffer_count && pin; b++) {
        if (s->buffers[b].class != PLAN_SWAP || s->buffers[b].unit >= 0) continue;
        if (count == MOST) return false;
        size_t bytes = (size_t)(s->buffers[b].bytes - PLAN_DISK_ALIGNMENT);
        memory[count++] = (struct iovec){e->base[b], bytes};
    }
    return pin && engine_io_pin(engine_swap_io(swap), memory, count);
}

sifr_status engine_executor_create(plan_schedule *schedule, comm_group *group,
                                   engine_executor *owner, engine_executor **out,
                                   sifr_error *error) {
    engine_executor *e;
    sifr_status status;
    BASE_TRY(base_alloc(1, sizeof *e, &e, error));
    e->schedule = schedule;
    e->group = group;
    e->file = -1;
    size_t buffers = schedule->buffer_count;
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *e->base, &e->base, error), fail);
    BASE_TRY_GOTO(status,
                  base_alloc(schedule->instruction_count, sizeof *e->seconds, &e->seconds, error),
                  fail);
    BASE_TRY_GOTO(
        status,
        base_alloc((size_t)schedule->settings.micro_batches, sizeof *e->losses, &e->losses, error),
        fail);
    BASE_TRY_GOTO(
        status, base_alloc(schedule->instruction_count, sizeof *e->transfers, &e->transfers, error),
        fail);
    size_t all = (size_t)(schedule->settings.micro_batches * schedule->settings.world_size);
    BASE_TRY_GOTO(status, base_alloc(all, sizeof *e->all_losses, &e->all_losses, error), fail);
    BASE_TRY_GOTO(status, base_alloc(all, sizeof *e->ordered_losses, &e->ordered_losses, error),
                  fail);
    BASE_TRY_GOTO(status, take_move_handles(e, error), fail);
    BASE_TRY_GOTO(status, take_memory(e, owner, error), fail);
    BASE_TRY_GOTO(status, take_host(e, owner, error), fail);
    BASE_TRY_GOTO(status, take_window(e, error), fail);
    place_buffers(e);
    if (owner) borrow(e, owner);
    e->shared = owner && !e->block_bytes;
    for (size_t i = 0; i < schedule->instruction_count; i++)
        e->defers |= schedule->instructions[i].deferred;
    BASE_TRY_GOTO(status, fill_tables(e, error), fail);
    *out = e;
    return SIFR_OK;
fail:
    engine_executor_free(e);
    return status;
}

void engine_executor_free(engine_executor *e) {
    if (!e) return;
    if (!e->borrows_host) engine_host_store_close(e->host); /* before what it may be moving */
    if (e->file >= 0) close(e->file);
    if (e->block_bytes) comm_close_window(e->group, e->block);
    if (e->block_bytes) device_give(e->schedule->dev, e->block, e->block_bytes);
    free(e->base);
    free(e->seconds);
    free(e->transfers);
    free(e->moves);
    free(e->window);
    free(e->losses);
    free(e->all_losses);
    free(e->ordered_losses);
    free(e);
}

void *engine_buffer(const engine_executor *e, int32_t buffer) {
    return buffer < 0 ? NULL : e->base[buffer];
}

/* On disk, or in memory that the host does not reach. */
static bool is_hidden(const engine_executor *e, int32_t buffer) {
    const plan_schedule *s = e->schedule;
    plan_tier tier = s->buffers[buffer].tier;
    return tier == PLAN_NVME || (tier == PLAN_DEVICE && device_is_separate(s->dev));
}

void *engine_host_buffer(const engine_executor *e, int32_t buffer) {
    return buffer < 0 || is_hidden(e, buffer) ? NULL : e->base[buffer];
}

sifr_status engine_get(const engine_executor *e, int32_t buffer, int64_t at, void *to,
                       int64_t bytes, sifr_error *error) {
    if (is_hidden(e, buffer))
        return device_copy(e->schedule->dev, to, e->base[buffer] + at, bytes, error);
    memcpy(to, e->base[buffer] + at, (size_t)bytes);
    return SIFR_OK;
}

sifr_status engine_set(const engine_executor *e, int32_t buffer, int64_t at, const void *from,
                       int64_t bytes, sifr_error *error) {
    if (is_hidden(e, buffer))
        return device_copy(e->schedule->dev, e->base[buffer] + at, from, bytes, error);
    memcpy(e->base[buffer] + at, from, (size_t)bytes);
    return SIFR_OK;
}

engine_host_store *engine_host(const engine_executor *e) {
    return e->host;
}

/* All of a buffer for the host to read: in place, or in the window, until that is asked for again.
 */
static sifr_status look(const engine_executor *e, int32_t buffer, const void **out,
                        sifr_error *error) {
    *out = engine_host_buffer(e, buffer);
    if (*out) return SIFR_OK;
    *out = e->window;
    return engine_get(e, buffer, 0, e->window, e->schedule->buffers[buffer].bytes, error);
}

int64_t engine_taken_bytes(const engine_executor *e) {
    return e->block_bytes;
}

void engine_replace_kernels(engine_executor *e, engine_kernel kernel, void *user) {
    e->kernel = kernel;
    e->kernel_user = user;
}

void engine_note_spans(engine_executor *e, engine_span *spans) {
    e->spans = spans;
}

const float *engine_seconds(const engine_executor *e) {
    return e->seconds;
}

void *engine_idle_memory(const engine_executor *e, int64_t *bytes) {
    int64_t start = permanent_bytes(e->schedule);
    *bytes = base_max_i64(0, e->schedule->total_bytes - start);
    return (char *)e->block + start;
}

static sifr_status count_labels(const engine_executor *e, int64_t *count, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    int64_t tokens = s->settings.sequences * s->settings.length;
    *count = 0;
    for (int32_t j = 0; j < s->settings.micro_batches; j++) {
        const void *seen;
        BASE_TRY(look(e, s->labels[j], &seen, error));
        const int32_t *labels = seen;
        for (int64_t i = 0; i < tokens; i++) *count += labels[i] >= 0;
    }
    return SIFR_OK;
}

/* Rows one after the other, in double. */
static sifr_status fold_losses(const engine_executor *e, int32_t micro_batch, double *sum,
                               sifr_error *error) {
    const plan_schedule *s = e->schedule;
    const void *seen;
    BASE_TRY(look(e, s->losses[micro_batch], &seen, error));
    const float *rows = seen;
    int64_t tokens = s->settings.sequences * s->settings.length;
    *sum = 0;
    for (int64_t i = 0; i < tokens; i++) *sum += (double)rows[i];
    return SIFR_OK;
}

/* Blocks in the order of the whole parameters: unit by unit, and within a unit rank by rank. */
static sifr_status fold_squares(const engine_executor *e, double *sum, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    bool cut = s->all_squares >= 0;
    const void *seen;
    BASE_TRY(look(e, cut ? s->all_squares : s->squares, &seen, error));
    const double *squares = seen;
    int64_t ranks = cut ? s->settings.world_size : 1, own = s->square_count / ranks, at = 0;
    *sum = 0;
    for (size_t u = 0; u < s->model->unit_count; u++) {
        int64_t blocks = s->unit_elements[u] / DEVICE_BLOCK / ranks;
        for (int64_t r = 0; r < ranks; r++) {
            for (int64_t i = 0; i < blocks; i++) *sum += squares[r * own + at + i];
        }
        at += blocks;
    }
    return SIFR_OK;
}

/* The losses of all micro batches of all ranks, in the order of the global batch. */
static sifr_status gather_losses(engine_executor *e, double *sum, sifr_error *error) {
    const plan_settings *settings = &e->schedule->settings;
    int32_t k = settings->micro_batches;
    BASE_TRY(comm_all_gather_control(e->group, e->losses, k * (int64_t)sizeof *e->losses,
                                     e->all_losses, error));
    for (int32_t r = 0; r < settings->world_size; r++) {
        for (int32_t j = 0; j < k; j++) {
            e->ordered_losses[plan_global_micro_batch(settings, r, j)] = e->all_losses[r * k + j];
        }
    }
    *sum = 0;
    for (int32_t g = 0; g < k * settings->world_size; g++) *sum += e->ordered_losses[g];
    return SIFR_OK;
}

/* Every rank folds the same numbers in the same order, so all decide alike. */
static sifr_status finish_norm(engine_executor *e, const engine_step_input *input,
                               engine_result *result, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    if (s->all_squares >= 0) {
        BASE_TRY(comm_all_gather_control(e->group, engine_buffer(e, s->squares),
                                         s->square_count / s->settings.world_size *
                                             (int64_t)sizeof(double),
                                         engine_buffer(e, s->all_squares), error));
    }
    double sum, scale = 1;
    BASE_TRY(fold_squares(e, &sum, error));
    BASE_TRY(gather_losses(e, &result->loss_sum, error));
    result->gradient_norm = sqrt(sum) / input->loss_scale;
    result->updated = isfinite(sum) && isfinite(result->loss_sum) && result->labelled > 0;
    if (input->gradient_clipping > 0) { /* DeepSpeed's coefficient */
        scale = 1 / fmax(1, (result->gradient_norm + 1e-6) / input->gradient_clipping);
    }
    e->step.update_scale = (float)(scale / input->loss_scale);
    e->step.update = result->updated;
    e->skip = !result->updated;
    e->pending = e->defers;
    e->last = e->step;
    return SIFR_OK;
}

static void *operand_address(const engine_executor *e, const plan_instruction *i, int32_t index) {
    const plan_operand *operand = &e->schedule->operands[i->first_operand + index];
    return e->base[operand->buffer] + operand->offset;
}

static void begin_step(engine_executor *e, const engine_step_input *input) {
    const device_attributes *adam = &e->schedule->settings.adam;
    double t = (double)input->updates + 1;
    double c1 = 1 - pow((double)adam->adam.beta1, t), c2 = 1 - pow((double)adam->adam.beta2, t);
    e->skip = false;
    e->step = (device_step){.seed = input->seed,
                            .step = input->step,
                            .learning_rate = (float)input->learning_rate,
                            .correction1 = input->bias_correction ? (float)c1 : 1.0f,
                            .correction2 = input->bias_correction ? (float)c2 : 1.0f,
                            .training = e->schedule->settings.mode == PLAN_TRAIN};
}

static comm_type comm_type_of(device_dtype dtype) {
    if (dtype == DEVICE_BF16) return COMM_BF16;
    return dtype == DEVICE_FP16 ? COMM_FP16 : COMM_FP32;
}

static sifr_status start_reduction(engine_executor *e, const plan_instruction *i,
                                   comm_handle *handle, sifr_error *error) {
    const plan_settings *settings = &e->schedule->settings;
    comm_type sum = comm_type_of(settings->gradients);
    comm_type type = sum == COMM_FP32 ? comm_type_of(settings->travel) : sum;
    return comm_start_reduce_typed(e->group, operand_address(e, i, 0), type, sum,
                                   i->bytes / comm_type_bytes(type), operand_address(e, i, 1),
                                   handle, error);
}

/* What carries out the transfers of a queue. */
static engine_io *io_of(const engine_executor *e, plan_queue queue) {
    return queue == PLAN_DISK ? engine_swap_io(e->swap) : engine_host_store_io(e->host);
}

static sifr_status start_move(engine_executor *e, const plan_instruction *i, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    bool disk = i->queue == PLAN_DISK, read = i->action == PLAN_READ;
    const plan_operand *away = &s->operands[i->first_operand + (read ? 0 : 1)];
    int64_t offset = s->buffers[away->buffer].offset + away->offset;
    engine_io_handle *handle = &e->moves[i - s->instructions];
    if (i->deferred ? !e->last.update : e->skip) return SIFR_OK;
    engine_io *io = io_of(e, (plan_queue)i->queue);
    const engine_io_file *file = disk ? engine_swap_file(e->swap) : engine_host_store_file(e->host);
    if (read)
        return engine_io_start_read(io, file, offset, operand_address(e, i, 1), i->bytes, handle,
                                    error);
    return engine_io_start_write(io, file, offset, operand_address(e, i, 0), i->bytes, handle,
                                 error);
}

/* Nothing where the step left the transfer out. */
static sifr_status wait_for_move(engine_executor *e, int32_t transfer, sifr_error *error) {
    engine_io_handle handle = e->moves[transfer];
    e->move_times = (engine_io_times){0};
    if (handle < 0) return SIFR_OK;
    e->moves[transfer] = -1;
    plan_queue queue = (plan_queue)e->schedule->instructions[transfer].queue;
    return engine_io_wait(io_of(e, queue), handle, &e->move_times, error);
}

static bool is_for_move(const engine_executor *e, const plan_instruction *i) {
    return i->action == PLAN_WAIT && is_move(&e->schedule->instructions[i->wait]);
}

/* What is no kernel. */
static sifr_status run_action(engine_executor *e, const plan_instruction *i,
                              const engine_step_input *input, engine_result *result,
                              sifr_error *error) {
    comm_handle *handle = &e->transfers[i - e->schedule->instructions];
    bool training = e->schedule->settings.mode == PLAN_TRAIN;
    comm_set_label(e->group, &(comm_label){.step = training ? input->step + !i->deferred : 0,
                                           .noun = i->unit >= 0 ? "unit" : NULL,
                                           .number = i->unit});
    switch ((plan_action)i->action) {
    case PLAN_COUNT:
        BASE_TRY(count_labels(e, &result->labelled, error));
        BASE_TRY(comm_sum(e->group, &result->labelled, 1, error));
        e->step.gradient_scale = 0.0f;
        if (result->labelled) /* scales that are powers of two change no digit */
            e->step.gradient_scale = (float)input->loss_scale * (1.0f / (float)result->labelled);
        return SIFR_OK;
    case PLAN_LOSS:
        return fold_losses(e, i->micro_batch, &e->losses[i->micro_batch], error);
    case PLAN_NORM:
        return finish_norm(e, input, result, error);
    case PLAN_GATHER:
        BASE_TRY(comm_start_all_gather(e->group, operand_address(e, i, 0), i->bytes,
                                       operand_address(e, i, 1), handle, error));
        return SIFR_OK;
    case PLAN_REDUCE:
        BASE_TRY(start_reduction(e, i, handle, error));
        return SIFR_OK;
    case PLAN_READ:
    case PLAN_WRITE:
        return start_move(e, i, error);
    case PLAN_WAIT:
        if (is_for_move(e, i)) return wait_for_move(e, i->wait, error);
        return comm_wait(e->transfers[i->wait], error);
    default:
        return base_fail(error, SIFR_FAILED, "executor: instruction %s is not built",
                         plan_action_name((plan_action)i->action));
    }
}

/* The queue's times of a transfer are known when it has been waited for. */
static void note_span(engine_executor *e, const plan_instruction *i, double before, double after) {
    engine_span *span = &e->spans[i - e->schedule->instructions];
    *span = (engine_span){.start = before, .end = after};
    if (is_for_move(e, i)) {
        e->spans[i->wait].begun = e->move_times.begun;
        e->spans[i->wait].over = e->move_times.ended;
    } else if (i->action == PLAN_WAIT) {
        const comm_event *event = comm_last(e->group);
        e->spans[i->wait].begun = event->begun;
        e->spans[i->wait].over = event->ended;
    }
}

static sifr_status run_kernel(engine_executor *e, size_t index, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    const plan_instruction *i = &s->instructions[index];
    device_call call = s->calls[i->call];
    for (int32_t o = 0; o < i->operands; o++) {
        plan_role role = (plan_role)s->operands[i->first_operand + o].role;
        plan_role_matrix(&call, role)->data = operand_address(e, i, o);
    }
    call.attributes.micro_batch =
        plan_global_micro_batch(&s->settings, s->settings.rank, i->micro_batch);
    call.attributes.element = i->element;
    call.accumulate_dw = i->accumulate_dw;
    call.scratch = engine_buffer(e, s->scratch);
    call.step = i->deferred ? &e->last : &e->step;
    if (e->kernel) return e->kernel(e->kernel_user, index, &call, error);
    return device_run(s->dev, &call, error);
}

static sifr_status run_instruction(engine_executor *e, size_t n, const engine_step_input *input,
                                   engine_result *result, sifr_error *error) {
    const plan_instruction *i = &e->schedule->instructions[n];
    return i->call < 0 ? run_action(e, i, input, result, error) : run_kernel(e, n, error);
}

sifr_status engine_run(engine_executor *e, const engine_step_input *input, engine_result *result,
                       sifr_error *error) {
    plan_schedule *s = e->schedule;
    *result = (engine_result){0};
    BASE_TRY(open_window(e, error));
    if (e->swap) BASE_TRY(engine_swap_flush(e->swap, error));
    begin_step(e, input);
    if (e->shared) BASE_TRY(fill_tables(e, error));
    if (s->settings.mode != PLAN_TRAIN) BASE_TRY(count_labels(e, &result->labelled, error));
    bool deferred = e->pending;
    double before = comm_seconds();
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *i = &s->instructions[n];
        if (i->deferred && !deferred) {
            e->seconds[n] = 0;
            if (e->spans) e->spans[n] = (engine_span){0};
            continue;
        }
        BASE_TRY(run_instruction(e, n, input, result, error));
        double after = comm_seconds();
        e->seconds[n] = (float)(after - before);
        if (e->spans) note_span(e, i, before, after);
        before = after;
    }
    if (s->settings.mode == PLAN_EVALUATE) result->loss_sum = e->losses[0];
    return SIFR_OK;
}

bool engine_is_pending(const engine_executor *e) {
    return e->pending;
}

sifr_status engine_run_deferred(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    engine_step_input input = {.step = e->last.step + 1};
    engine_result result = {0};
    for (size_t n = 0; n < s->instruction_count && e->pending; n++) {
        if (s->instructions[n].deferred) BASE_TRY(run_instruction(e, n, &input, &result, error));
    }
    e->pending = false;
    return SIFR_OK;
}
