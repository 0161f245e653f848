#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "engine/executor/executor_private.h"
#include "plan/queries.h"

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

/* Sums rows in order, in double. */
static sifr_status fold_losses(const engine_executor *e, int32_t micro_batch, double *sum,
                               sifr_error *error) {
    const plan_schedule *s = e->schedule;
    const void *seen;
    BASE_TRY(executor_look(e, s->losses[micro_batch], &seen, error));
    const float *rows = seen;
    int64_t tokens = s->settings.step.micro_batch_size * s->settings.step.seq_length;
    *sum = 0;
    for (int64_t i = 0; i < tokens; i++) *sum += (double)rows[i];
    return SIFR_OK;
}

/* Visits blocks in the order of the whole parameters: by unit, and within a unit by rank. */
static sifr_status fold_squares(const engine_executor *e, double *sum, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    bool cut = s->all_squares >= 0;
    const void *seen;
    BASE_TRY(executor_look(e, cut ? s->all_squares : s->squares, &seen, error));
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

/* Adds the losses of all ranks' micro batches in the order of the global batch. */
static sifr_status gather_losses(engine_executor *e, double *sum, sifr_error *error) {
    const plan_settings *settings = &e->schedule->settings;
    int32_t k = settings->step.gradient_accumulation_steps;
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

/* Every rank adds the same numbers in the same order, so all make the same decision. */
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
    /* PyTorch's rule for betas that change: this step's beta to the power of t. */
    float beta1 = (float)input->beta1, beta2 = (float)input->beta2;
    double t = (double)input->updates + 1;
    double c1 = 1 - pow((double)beta1, t), c2 = 1 - pow((double)beta2, t);
    e->skip = false;
    e->step = (device_step){.seed = input->seed,
                            .step = input->step,
                            .learning_rate = (float)input->learning_rate,
                            .beta1 = beta1,
                            .beta2 = beta2,
                            .correction1 = input->bias_correction ? (float)c1 : 1.0f,
                            .correction2 = input->bias_correction ? (float)c2 : 1.0f,
                            .training = e->schedule->settings.mode == PLAN_TRAIN};
}

static sifr_status start_reduction(engine_executor *e, const plan_instruction *i,
                                   comm_handle *handle, sifr_error *error) {
    const plan_settings *settings = &e->schedule->settings;
    base_dtype sum = device_dtype_of(settings->step.grad_accum_dtype);
    base_dtype type =
        sum == BASE_FP32 ? device_dtype_of(settings->step.communication_data_type) : sum;
    return comm_start_reduce_typed(e->group, operand_address(e, i, 0), type, sum,
                                   i->bytes / base_dtype_bytes(type), operand_address(e, i, 1),
                                   handle, error);
}

/* The store that runs the transfers of a queue. */
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

/* Does nothing if the step left the transfer out. */
static sifr_status wait_for_move(engine_executor *e, int32_t transfer, sifr_error *error) {
    engine_io_handle handle = e->moves[transfer];
    e->move_times = (engine_io_times){0};
    if (handle < 0) return SIFR_OK;
    e->moves[transfer] = -1;
    plan_queue queue = (plan_queue)e->schedule->instructions[transfer].queue;
    return engine_io_wait(io_of(e, queue), handle, &e->move_times, error);
}

static bool is_for_move(const engine_executor *e, const plan_instruction *i) {
    return i->action == PLAN_WAIT && executor_is_move(&e->schedule->instructions[i->wait]);
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
        result->labelled = input->labelled;
        BASE_TRY(comm_sum(e->group, &result->labelled, 1, error));
        e->step.gradient_scale = 0.0f;
        if (result->labelled) /* dividing by a power of two is exact */
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
        return base_fail(error, SIFR_FAILED, "executor: instruction %s is not supported",
                         plan_action_name((plan_action)i->action));
    }
}

/* A transfer's times on its queue are known after its wait. */
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
    BASE_TRY(executor_open_window(e, error));
    if (e->swap) BASE_TRY(engine_swap_flush(e->swap, error));
    begin_step(e, input);
    if (e->shared) BASE_TRY(executor_fill_tables(e, error));
    if (s->settings.mode != PLAN_TRAIN) result->labelled = input->labelled;
    bool deferred = e->pending;
    double before = base_seconds();
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *i = &s->instructions[n];
        if (i->deferred && !deferred) {
            e->seconds[n] = 0;
            if (e->spans) e->spans[n] = (engine_span){0};
            continue;
        }
        BASE_TRY(run_instruction(e, n, input, result, error));
        double after = base_seconds();
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
