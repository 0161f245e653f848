#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "device/flag.h"
#include "engine/executor/executor_private.h"
#include "engine/meeting.h"
#include "plan/peers.h"
#include "plan/queries.h"

void engine_replace_kernels(engine_executor *e, engine_kernel kernel, void *user) {
    e->kernel = kernel;
    e->kernel_user = user;
}

void engine_note_spans(engine_executor *e, engine_span *spans) {
    e->spans = spans;
}

void engine_time_each(engine_executor *e, bool each) {
    e->times_each = each;
}

const float *engine_seconds(const engine_executor *e) {
    return e->seconds;
}

/* The numbers in device memory, for kernels alone. */
static plan_numbers *device_numbers(const engine_executor *e) {
    return engine_buffer(e, e->schedule->numbers);
}

/* Puts this step's numbers where kernels read them, and zeros where squares are added. */
static sifr_status send_numbers(engine_executor *e, sifr_error *error) {
    device *dev = e->schedule->dev;
    plan_numbers *numbers = device_numbers(e);
    char *to = (char *)numbers + offsetof(plan_numbers, step);
    const char *from = (const char *)e->numbers + offsetof(plan_numbers, step);
    if (e->numbers == numbers) return SIFR_OK;
    if (!device_is_hidden(dev)) return device_copy(dev, to, from, plan_begin_bytes(), error);
    return device_start_copy(dev, DEVICE_COMPUTE, to, from, plan_begin_bytes(), error);
}

/* Waits for all that the step gave to the device, and sees what it came to. */
static sifr_status see_numbers(engine_executor *e, sifr_error *error) {
    device *dev = e->schedule->dev;
    plan_numbers *from = device_numbers(e);
    if (e->numbers == from) return SIFR_OK;
    if (!device_is_hidden(dev)) return device_copy(dev, e->numbers, from, e->number_bytes, error);
    BASE_TRY(device_start_copy(dev, DEVICE_COMPUTE, e->numbers, from, e->number_bytes, error));
    return device_finish_queue(dev, DEVICE_COMPUTE, error);
}

static sifr_status fold_losses(const engine_executor *e, int32_t micro_batch, sifr_error *error) {
    base_assert(micro_batch >= 0 && e->schedule->losses[micro_batch] >= 0);
    const plan_schedule *s = e->schedule;
    return device_fold_losses(s->dev, engine_buffer(e, s->losses[micro_batch]),
                              plan_tokens(&s->settings), &device_numbers(e)->losses[micro_batch],
                              error);
}

/* Why the host waits for transfers; NULL: the device does, and the host goes on. Not where
 * instructions are timed. Not before each instruction has run once, since kernels may be loaded
 * then: a driver may wait for the whole device, and so for the transfer that this thread has still
 * to start. Not with stages, where the other ranks' transfers depend on sends, which have a line of
 * their own. */
static const char *host_waits_why(const engine_executor *e) {
    if (!e->has_run) return "the first step";
    if (e->times_each || e->spans) return "each instruction is timed";
    if (plan_mesh_ranks(&e->schedule->settings.mesh, PLAN_STAGES) > 1) return "pipeline stages";
    if (plan_mesh_ranks(&e->schedule->settings.mesh, PLAN_TENSORS) > 1) return "tensor ranks";
    if (plan_mesh_ranks(&e->schedule->settings.mesh, PLAN_CONTEXTS) > 1) return "context ranks";
    return NULL;
}

static sifr_status wait_for_transfer(const engine_executor *e, comm_handle handle,
                                     sifr_error *error) {
    device *dev = e->schedule->dev;
    if (!device_is_hidden(dev) || !handle.group || comm_size(handle.group) == 1)
        return comm_wait(handle, error);
    const char *why = host_waits_why(e);
    if (!why) return comm_follow(handle, error);
    device_note_host_wait(dev, why);
    return comm_wait(handle, error);
}

/* The parts of all ranks, one message from each: through pinned memory where the host does not
 * reach them. */
static sifr_status gather_parts(engine_executor *e, sifr_error *error) {
    device *dev = e->schedule->dev;
    plan_numbers *numbers = device_numbers(e);
    void *all = plan_all_parts(e->schedule, numbers);
    int64_t bytes = plan_part_bytes(e->schedule);
    if (!e->parts) {
        BASE_TRY(comm_all_gather_control(e->world, &numbers->squares, bytes, all, error));
        executor_join_parts(e, all);
        return SIFR_OK;
    }
    base_exact_sum *own = &e->numbers->squares;
    BASE_TRY(device_start_copy(dev, DEVICE_COMPUTE, own, &numbers->squares, bytes, error));
    comm_handle handle;
    BASE_TRY(comm_start_control(e->world, own, bytes, e->parts, &handle, error));
    BASE_TRY(wait_for_transfer(e, handle, error));
    executor_join_parts(e, e->parts); /* where there is something to join the host has waited */
    return device_start_copy(dev, DEVICE_COMPUTE, all, e->parts, comm_size(e->world) * bytes,
                             error);
}

/* Every rank decides by the same numbers, and so alike. */
static sifr_status decide(engine_executor *e, const engine_step_input *input, int64_t labelled,
                          sifr_error *error) {
    const plan_schedule *s = e->schedule;
    plan_numbers *numbers = device_numbers(e);
    device_decision decision = {.parts =
                                    (char *)plan_all_parts(s, numbers) + executor_before_last(e),
                                .ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_DATA),
                                .micro_batches = s->settings.step.gradient_accumulation_steps,
                                .owners = s->settings.mesh.ranks[PLAN_AXIS_SHARD],
                                .across_first = plan_batch_neighbours(&s->settings) > 1,
                                .labelled = labelled,
                                .loss_scale = input->loss_scale,
                                .clipping = input->gradient_clipping,
                                .step = &numbers->step,
                                .outcome = &numbers->outcome};
    return device_decide(s->dev, &decision, error);
}

/* A device that has only begun the step runs all of it: updates then leave the state as it is, and
 * what is written back is what was read. */
static sifr_status finish_norm(engine_executor *e, const engine_step_input *input,
                               engine_result *result, sifr_error *error) {
    device *dev = e->schedule->dev;
    plan_numbers *numbers = device_numbers(e);
    BASE_TRY(gather_parts(e, error));
    BASE_TRY(decide(e, input, result->labelled, error));
    if (e->defers)
        BASE_TRY(device_start_copy(dev, DEVICE_COMPUTE, &numbers->last, &numbers->step,
                                   sizeof numbers->step, error));
    e->last_step = input->step;
    e->pending = e->defers;
    if (device_is_hidden(dev)) return SIFR_OK;
    BASE_TRY(see_numbers(e, error));
    e->skip = e->skip_last = !e->numbers->outcome.updated;
    return SIFR_OK;
}

static void *operand_address(const engine_executor *e, const plan_instruction *i, int32_t index) {
    base_assert(index >= 0 && index < i->operands);
    const plan_operand *operand = &e->schedule->operands[i->first_operand + index];
    base_assert(e->base[operand->buffer]); /* on disk it has no address */
    base_assert(operand->offset >= 0);
    return e->base[operand->buffer] + operand->offset;
}

static void begin_step(engine_executor *e, const engine_step_input *input) {
    e->skip = false;
    memset(&e->numbers->squares, 0, sizeof e->numbers->squares);
    e->numbers->step = (device_step){.seed = input->seed,
                                     .step = input->step,
                                     .training = e->schedule->settings.mode == PLAN_TRAIN,
                                     .loss_scale = (float)input->loss_scale};
    e->schedule->compressed =
        e->schedule->compresses && input->step >= e->schedule->settings.step.compression.start;
    if (e->schedule->settings.mode != PLAN_TRAIN) return;
    optim_step step = {input->updates, input->learning_rate, input->memory};
    optim_set_step(input->optimizer, &step, &e->numbers->step);
}

static comm_group *group_of(const engine_executor *e, const plan_instruction *i) {
    return engine_groups_at(&e->groups, (plan_span)i->span);
}

static sifr_status start_reduction(engine_executor *e, const plan_instruction *i,
                                   comm_handle *handle, sifr_error *error) {
    plan_code code = (plan_code)i->encoding;
    return comm_start_reduce_typed(
        group_of(e, i), operand_address(e, i, 0), plan_encoding_of(code)->type, (base_dtype)i->sum,
        plan_encoded_values(code, i->bytes), operand_address(e, i, 1), handle, error);
}

/* A sum's second half, its gather, begins when this rank waits for it: others read this rank's
 * slice, which its first half makes. */
static sifr_status wait_for_sum(engine_executor *e, const plan_instruction *i, sifr_error *error) {
    comm_handle *handle = &e->transfers[i - e->schedule->instructions];
    int64_t slice = plan_summed_bytes(i);
    char *whole = operand_address(e, i, 1);
    int32_t place = plan_mesh_place(&e->schedule->settings.mesh, (plan_span)i->span);
    BASE_TRY(wait_for_transfer(e, *handle, error));
    e->sum_begun = comm_last(handle->group)->begun;
    BASE_TRY(
        comm_start_all_gather(handle->group, whole + place * slice, slice, whole, handle, error));
    return wait_for_transfer(e, *handle, error);
}

static sifr_status start_sum(engine_executor *e, const plan_instruction *i, comm_handle *handle,
                             sifr_error *error) {
    plan_code code = (plan_code)i->encoding;
    int32_t place = plan_mesh_place(&e->schedule->settings.mesh, (plan_span)i->span);
    char *whole = operand_address(e, i, 1);
    return comm_start_reduce_typed(
        group_of(e, i), operand_address(e, i, 0), plan_encoding_of(code)->type, (base_dtype)i->sum,
        plan_encoded_values(code, i->bytes), whole + place * plan_summed_bytes(i), handle, error);
}

static sifr_status start_exchange(engine_executor *e, const plan_instruction *i,
                                  comm_handle *handle, sifr_error *error) {
    const comm_run *sent = e->schedule->runs + i->runs;
    comm_group *group = group_of(e, i);
    return comm_start_all_to_all(group, operand_address(e, i, 0), sent, operand_address(e, i, 1),
                                 sent + comm_size(group), handle, error);
}

static sifr_status start_gather(engine_executor *e, const plan_instruction *i, comm_handle *handle,
                                sifr_error *error) {
    return comm_start_all_gather(group_of(e, i), operand_address(e, i, 0), i->bytes,
                                 operand_address(e, i, 1), handle, error);
}

static sifr_status start_collective(engine_executor *e, const plan_instruction *i,
                                    sifr_error *error) {
    comm_handle *handle = &e->transfers[i - e->schedule->instructions];
    if (i->action == PLAN_GATHER) return start_gather(e, i, handle, error);
    if (i->action == PLAN_REDUCE) return start_reduction(e, i, handle, error);
    return i->action == PLAN_SUM ? start_sum(e, i, handle, error)
                                 : start_exchange(e, i, handle, error);
}

static bool is_left_out(const engine_executor *e, const plan_instruction *i) {
    return i->deferred ? e->skip_last : e->skip;
}

/* Through host memory, where the host does not reach the device's. */
static sifr_status start_staged_move(engine_executor *e, const plan_instruction *i, int64_t offset,
                                     sifr_error *error) {
    engine_staging *staging = engine_swap_staging(e->swap);
    engine_staged *handle = &e->moves[i - e->schedule->instructions];
    if (i->action == PLAN_READ)
        return engine_staging_read(staging, offset, operand_address(e, i, 1), i->bytes, handle,
                                   error);
    return engine_staging_write(staging, offset, operand_address(e, i, 0), i->bytes,
                                &e->written[i - e->schedule->instructions], handle, error);
}

static sifr_status start_disk_move(engine_executor *e, const plan_instruction *i,
                                   sifr_error *error) {
    const plan_schedule *s = e->schedule;
    bool read = i->action == PLAN_READ;
    const plan_operand *offloaded = &s->operands[i->first_operand + (read ? 0 : 1)];
    int64_t offset = s->buffers[offloaded->buffer].offset + offloaded->offset;
    engine_io_handle *handle = &e->moves[i - s->instructions];
    base_assert(*handle < 0); /* the one before was waited for */
    engine_io *io = engine_swap_io(e->swap);
    const engine_io_file *file = engine_swap_file(e->swap);
    if (engine_swap_staging(e->swap)) return start_staged_move(e, i, offset, error);
    if (read)
        return engine_io_start_read(io, file, offset, operand_address(e, i, 1), i->bytes, handle,
                                    error);
    return engine_io_start_write(io, file, offset, operand_address(e, i, 0), i->bytes, handle,
                                 error);
}

static sifr_status give_copy(engine_executor *e, const plan_instruction *i, device_queue queue,
                             sifr_error *error) {
    device *dev = e->schedule->dev;
    device_mark before;
    BASE_TRY(device_mark_here(dev, DEVICE_COMPUTE, &before, error));
    BASE_TRY(device_queue_wait(dev, queue, before, error));
    BASE_TRY(device_start_copy(dev, queue, operand_address(e, i, 1), operand_address(e, i, 0),
                               i->bytes, error));
    return device_mark_here(dev, queue, &e->copies[i - e->schedule->instructions], error);
}

/* Begins after all that was computed before. */
static sifr_status start_copy(engine_executor *e, const plan_instruction *i, sifr_error *error) {
    bool read = i->action == PLAN_READ;
    engine_staging *staging = e->swap ? engine_swap_staging(e->swap) : NULL;
    e->copied[read ? 0 : 1] += i->bytes;
    if (!read || !staging) return give_copy(e, i, read ? DEVICE_IN : DEVICE_OUT, error);
    engine_staging_hold_in(staging);
    sifr_status status = give_copy(e, i, DEVICE_IN, error);
    engine_staging_leave_in(staging);
    return status;
}

static sifr_status start_move(engine_executor *e, const plan_instruction *i, sifr_error *error) {
    if (is_left_out(e, i)) return SIFR_OK;
    return i->queue == PLAN_DISK ? start_disk_move(e, i, error) : start_copy(e, i, error);
}

static sifr_status wait_for_disk(engine_executor *e, int32_t transfer, sifr_error *error) {
    engine_staging *staging = engine_swap_staging(e->swap);
    int32_t handle = e->moves[transfer];
    e->moves[transfer] = -1;
    if (handle < 0) return SIFR_OK;
    if (staging) return engine_staging_wait(staging, handle, &e->move_times, error);
    return engine_io_wait(engine_swap_io(e->swap), handle, &e->move_times, error);
}

/* Does nothing if the step left the transfer out. */
static sifr_status wait_for_move(engine_executor *e, int32_t transfer, sifr_error *error) {
    device *dev = e->schedule->dev;
    e->move_times = (engine_io_times){0};
    e->move_mark = (device_mark){0};
    if (e->schedule->instructions[transfer].queue == PLAN_DISK)
        return wait_for_disk(e, transfer, error);
    device_mark mark = e->copies[transfer];
    e->copies[transfer] = (device_mark){0};
    BASE_TRY(device_queue_wait(dev, DEVICE_COMPUTE, mark, error));
    e->move_mark = mark;
    return SIFR_OK;
}

static bool is_for_move(const engine_executor *e, const plan_instruction *i) {
    base_assert(i->action != PLAN_WAIT || i->wait >= 0);
    return i->action == PLAN_WAIT && executor_is_move(&e->schedule->instructions[i->wait]);
}

static bool is_for_sum(const engine_executor *e, const plan_instruction *i) {
    return i->action == PLAN_WAIT && e->schedule->instructions[i->wait].action == PLAN_SUM;
}

/* Labels of the global batch, which the ranks of one stage have, of those that share a batch the
 * first, whether a rank refuses the step, and whether they give it the same. They meet here before
 * the list begins, in which transfers may come before PLAN_COUNT. */
static sifr_status count_labels(const engine_executor *e, const engine_step_input *input,
                                engine_result *result, sifr_error *error) {
    const plan_mesh *mesh = &e->schedule->settings.mesh;
    int32_t stages = mesh->ranks[PLAN_AXIS_STAGE];
    bool shared = stages > 1 || plan_mesh_ranks(mesh, PLAN_TENSORS) > 1 ||
                  plan_mesh_ranks(mesh, PLAN_CONTEXTS) > 1; /* a batch, by ranks */
    comm_group *group = shared ? e->world : engine_groups_at(&e->groups, PLAN_DATA);
    bool counts = mesh->place[PLAN_AXIS_STAGE] == stages - 1 &&
                  mesh->place[PLAN_AXIS_TENSOR] == 0 && mesh->place[PLAN_AXIS_CONTEXT] == 0;
    engine_meeting meeting = {
        .count = counts ? input->labelled : 0, .given = input->given, .refuses = input->refused};
    engine_groups_label(&e->groups, &(comm_label){.step = input->step + 1});
    if (group) BASE_TRY(engine_meet(group, &meeting, error));
    result->refused = meeting.refuses;
    result->differs = meeting.differs;
    result->labelled = meeting.count;
    return SIFR_OK;
}

static comm_group *peers_of(const engine_executor *e, const plan_instruction *i) {
    base_assert(i->peer >= 0);
    bool second = plan_is_on_second_line(&e->schedule->settings.pipeline, i);
    return second ? engine_groups_back(&e->groups) : engine_groups_at(&e->groups, PLAN_STAGES);
}

/* What is no kernel. */
static sifr_status run_action(engine_executor *e, const plan_instruction *i,
                              const engine_step_input *input, engine_result *result,
                              sifr_error *error) {
    comm_handle *handle = &e->transfers[i - e->schedule->instructions];
    bool training = e->schedule->settings.mode == PLAN_TRAIN;
    engine_groups_label(&e->groups, &(comm_label){.step = training ? input->step + !i->deferred : 0,
                                                  .noun = i->unit >= 0 ? "unit" : NULL,
                                                  .number = i->unit});
    switch ((plan_action)i->action) {
    case PLAN_COUNT:
        e->numbers->step.gradient_scale = 0.0f;
        if (result->labelled) /* dividing by a power of two is exact */
            e->numbers->step.gradient_scale =
                (float)input->loss_scale * (1.0f / (float)result->labelled);
        return send_numbers(e, error);
    case PLAN_LOSS:
        return fold_losses(e, i->micro_batch, error);
    case PLAN_NORM:
        return finish_norm(e, input, result, error);
    case PLAN_GATHER:
    case PLAN_REDUCE:
    case PLAN_SUM:
    case PLAN_EXCHANGE:
        return start_collective(e, i, error);
    case PLAN_SEND:
        return comm_send(peers_of(e, i), i->peer, operand_address(e, i, 0), i->bytes, handle,
                         error);
    case PLAN_RECEIVE:
        return comm_receive(peers_of(e, i), i->peer, operand_address(e, i, 0), i->bytes, handle,
                            error);
    case PLAN_READ:
    case PLAN_WRITE:
        return start_move(e, i, error);
    case PLAN_WAIT:
        if (is_for_move(e, i)) return wait_for_move(e, i->wait, error);
        if (is_for_sum(e, i)) return wait_for_sum(e, &e->schedule->instructions[i->wait], error);
        return wait_for_transfer(e, e->transfers[i->wait], error);
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
        engine_span *move = &e->spans[i->wait];
        if (e->move_mark.number)
            device_times(e->schedule->dev, e->move_mark, &move->begun, &move->over);
        else
            move->begun = e->move_times.begun, move->over = e->move_times.ended;
    } else if (i->action == PLAN_WAIT) {
        const comm_event *event = comm_last(e->transfers[i->wait].group);
        e->spans[i->wait].begun = is_for_sum(e, i) ? e->sum_begun : event->begun;
        e->spans[i->wait].over = event->ended;
    }
}

static sifr_status run_kernel(engine_executor *e, size_t index, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    const plan_instruction *i = &s->instructions[index];
    base_assert(i->call >= 0 && (size_t)i->call < s->call_count);
    device_call call = s->calls[i->call];
    for (int32_t o = 0; o < i->operands; o++) {
        plan_role role = (plan_role)s->operands[i->first_operand + o].role;
        plan_role_matrix(&call, role)->data = operand_address(e, i, o);
    }
    call.attributes.micro_batch = plan_global_micro_batch(
        &s->settings, plan_mesh_place(&s->settings.mesh, PLAN_DATA), i->micro_batch);
    call.attributes.element = i->element;
    call.accumulate_dw = i->accumulate_dw;
    call.scratch = engine_buffer(e, s->scratch);
    call.step = i->deferred ? &device_numbers(e)->last : &device_numbers(e)->step;
    if (e->kernel) return e->kernel(e->kernel_user, index, &call, error);
    return device_run(s->dev, &call, error);
}

/* What the device was given has ended, and what took time was this instruction. */
static sifr_status end_instruction(const engine_executor *e, sifr_error *error) {
    device *dev = e->schedule->dev;
    if (!device_is_hidden(dev) || !(e->times_each || e->spans)) return SIFR_OK;
    return device_finish_queue(dev, DEVICE_COMPUTE, error);
}

static sifr_status run_instruction(engine_executor *e, size_t n, const engine_step_input *input,
                                   engine_result *result, sifr_error *error) {
    const plan_instruction *i = &e->schedule->instructions[n];
    return i->call < 0 ? run_action(e, i, input, result, error) : run_kernel(e, n, error);
}

/* What the file gets beside later work. */
static sifr_status finish_staging(const engine_executor *e, sifr_error *error) {
    engine_staging *staging = e->swap ? engine_swap_staging(e->swap) : NULL;
    return staging ? engine_staging_finish(staging, error) : SIFR_OK;
}

/* Files that were written beside later work. */
static void note_written(engine_executor *e) {
    const plan_schedule *s = e->schedule;
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *i = &s->instructions[n];
        if (i->queue != PLAN_DISK || i->action != PLAN_WRITE || e->spans[n].end <= 0) continue;
        e->spans[n].begun = e->written[n].begun;
        e->spans[n].over = e->written[n].ended;
    }
}

/* The end of a step, where the host waits for a device that had only begun it. `whole`: no deferred
 * instruction was left out. */
static sifr_status see_step(engine_executor *e, bool whole, sifr_error *error) {
    bool training = e->schedule->settings.mode == PLAN_TRAIN;
    double before = base_seconds();
    if (training && !device_is_hidden(e->schedule->dev)) return SIFR_OK; /* the norm has seen it */
    BASE_TRY(see_numbers(e, error));
    BASE_TRY(comm_catch_up(e->world, error));
    e->has_run |= whole;
    BASE_TRY(finish_staging(e, error));
    if (e->spans && e->written) note_written(e);
    if (e->schedule->instruction_count)
        e->seconds[e->schedule->instruction_count - 1] += (float)(base_seconds() - before);
    return SIFR_OK;
}

sifr_status engine_run(engine_executor *e, const engine_step_input *input, engine_result *result,
                       sifr_error *error) {
    base_assert(e->swap || !e->schedule->nvme_bytes);
    plan_schedule *s = e->schedule;
    *result = (engine_result){0};
    BASE_TRY(engine_open_window(e, error));
    if (e->swap) BASE_TRY(engine_swap_flush(e->swap, error));
    begin_step(e, input);
    if (e->shared) BASE_TRY(executor_fill_tables(e, error));
    bool training = s->settings.mode == PLAN_TRAIN, deferred = e->pending;
    double counting = base_seconds();
    if (training) {
        BASE_TRY(count_labels(e, input, result, error));
        if (result->refused || result->differs) return SIFR_OK;
    } else {
        result->labelled = input->labelled;
        BASE_TRY(send_numbers(e, error));
    }
    double begun = base_seconds(), before = begun;
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *i = &s->instructions[n];
        if ((i->deferred && !deferred) || !plan_runs(s, i)) {
            e->seconds[n] = 0;
            if (e->spans) e->spans[n] = (engine_span){0};
            continue;
        }
        BASE_TRY(run_instruction(e, n, input, result, error));
        BASE_TRY(end_instruction(e, error));
        double after = base_seconds();
        e->seconds[n] = (float)(after - before);
        if (i->action == PLAN_COUNT) e->seconds[n] += (float)(begun - counting);
        if (e->spans) note_span(e, i, before, after);
        before = after;
    }
    BASE_TRY(see_step(e, deferred || !e->defers, error));
    if (training) {
        result->loss_sum = e->numbers->outcome.loss_sum;
        result->gradient_norm = e->numbers->outcome.gradient_norm;
        result->updated = e->numbers->outcome.updated;
    } else if (s->settings.mode == PLAN_EVALUATE) {
        result->loss_sum = e->numbers->losses[0];
    }
    return SIFR_OK;
}

const double *engine_micro_losses(const engine_executor *e) {
    const plan_mesh *mesh = &e->schedule->settings.mesh;
    bool last = mesh->place[PLAN_AXIS_STAGE] == mesh->ranks[PLAN_AXIS_STAGE] - 1;
    return last ? e->numbers->losses : NULL;
}

bool engine_is_pending(const engine_executor *e) {
    return e->pending;
}

sifr_status engine_run_deferred(engine_executor *e, sifr_error *error) {
    const plan_schedule *s = e->schedule;
    engine_step_input input = {.step = e->last_step + 1};
    engine_result result = {0};
    for (size_t n = 0; n < s->instruction_count && e->pending; n++) {
        if (s->instructions[n].deferred) BASE_TRY(run_instruction(e, n, &input, &result, error));
    }
    e->has_run |= e->pending; /* weights are filled before the first step, and call this, too */
    e->pending = false;
    BASE_TRY(device_finish_queue(s->dev, DEVICE_COMPUTE, error));
    BASE_TRY(comm_catch_up(e->world, error));
    return finish_staging(e, error);
}
