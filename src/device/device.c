/* The functions of device.h, by the backend. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "device/backend.h"
#include "device/check/check.h"

bool device_is_separate(const device *dev) {
    return dev->backend->count != NULL;
}

void device_close(device *dev) {
    if (dev) dev->backend->close(dev);
}

int device_threads(const device *dev) {
    return host_team_threads(dev->team);
}

void device_parallel(device *dev, int64_t tiles,
                     void (*run)(void *argument, int64_t tile, int thread), void *argument) {
    host_parallel(dev->team, tiles, run, argument);
}

const char *device_isa(const device *dev) {
    return dev->backend->isa(dev);
}

int64_t device_token_chunk(const device *dev) {
    return dev->backend->token_chunk ? dev->backend->token_chunk(dev) : DEVICE_CPU_CHUNK;
}

void device_describe(const device *dev, char *out, size_t size) {
    dev->backend->describe(dev, out, size);
}

const char *device_notice(const device *dev) {
    return dev->backend->notice ? dev->backend->notice(dev) : "";
}

sifr_status device_prepare(device *dev, device_call *call, sifr_error *error) {
    call->scratch_bytes = 0;
    call->prepared = NULL;
    BASE_TRY(device_check_call(call, error));
    return dev->backend->prepare(dev, call, error);
}

void device_only_plan(device *dev) {
    dev->plans_only = true;
    if (dev->backend->only_plan) dev->backend->only_plan(dev);
}

sifr_status device_run(device *dev, const device_call *call, sifr_error *error) {
    base_assert(call->scratch || !call->scratch_bytes);
    if (dev->plans_only)
        return base_fail(error, SIFR_USAGE, "%s: this device only plans",
                         device_kernel_name(call->kernel));
    return dev->backend->run(dev, call, error);
}

sifr_status device_take_failure(device *dev, sifr_error *error) {
    sifr_status status = dev->failure.status;
    if (status == SIFR_OK) return SIFR_OK;
    dev->failure.status = SIFR_OK;
    return base_fail(error, status, "%s", dev->failure.message);
}

sifr_status device_measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                           sifr_error *error) {
    return dev->backend->measure(dev, memory, bytes, out, error);
}

sifr_status device_take(device *dev, int64_t bytes, void **out, sifr_error *error) {
    base_assert(bytes > 0);
    return dev->backend->take(dev, DEVICE_MEMORY, bytes, out, error);
}

sifr_status device_take_host(device *dev, int64_t bytes, void **out, sifr_error *error) {
    base_assert(bytes > 0);
    return dev->backend->take(dev, DEVICE_HOST, bytes, out, error);
}

sifr_status device_take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    return dev->backend->take_shared(dev, bytes, out, file, error);
}

sifr_status device_share_block(device *dev, void *block, device_share *out, sifr_error *error) {
    base_assert(dev->backend->hidden);
    return dev->backend->share(dev, block, out, error);
}

sifr_status device_open_shared(device *dev, const device_share *share, int64_t bytes, void **out,
                               sifr_error *error) {
    base_assert(dev->backend->hidden && bytes > 0);
    return dev->backend->open_shared(dev, share, bytes, out, error);
}

void device_close_shared(device *dev, void *block, int64_t bytes) {
    base_assert(dev->backend->hidden);
    dev->backend->close_shared(dev, block, bytes);
}

void device_give(device *dev, void *block, int64_t bytes) {
    dev->backend->give(dev, block, bytes);
}

sifr_status device_copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    return dev->backend->copy(dev, to, from, bytes, error);
}

bool device_is_hidden(const device *dev) {
    return dev->backend->hidden;
}

int64_t device_capacity(const device *dev) {
    return dev->backend->capacity ? dev->backend->capacity(dev) : 0;
}

device_counts device_count(const device *dev) {
    return dev->backend->count ? dev->backend->count(dev) : (device_counts){0};
}

void device_ran_of(const device *dev, device_ran *out) {
    *out = (device_ran){.word_waits = dev->waits.by_word, .host_waits = dev->waits.by_host};
    memcpy(out->waits_why, dev->waits.why, sizeof out->waits_why);
    if (dev->backend->ran) dev->backend->ran(dev, out);
}

/* --- queues --- */

sifr_status device_mark_here(device *dev, device_queue queue, device_mark *out, sifr_error *error) {
    base_assert((int)queue >= 0 && queue < DEVICE_QUEUES);
    *out = (device_mark){.queue = queue};
    return dev->backend->mark ? dev->backend->mark(dev, queue, out, error) : SIFR_OK;
}

sifr_status device_queue_wait(device *dev, device_queue queue, device_mark mark,
                              sifr_error *error) {
    base_assert((int)queue >= 0 && queue < DEVICE_QUEUES && mark.number >= 0);
    return dev->backend->follow ? dev->backend->follow(dev, queue, mark, error) : SIFR_OK;
}

sifr_status device_finish(device *dev, device_mark mark, sifr_error *error) {
    base_assert((int)mark.queue >= 0 && mark.queue < DEVICE_QUEUES && mark.number >= 0);
    return dev->backend->finish ? dev->backend->finish(dev, mark, error) : SIFR_OK;
}

sifr_status device_finish_queue(device *dev, device_queue queue, sifr_error *error) {
    device_mark here;
    BASE_TRY(device_mark_here(dev, queue, &here, error));
    return device_finish(dev, here, error);
}

static sifr_status queue_wait_flag(device *dev, const device_flag *flag, uint32_t value,
                                   sifr_error *error) {
    if (dev->backend->wait_flag) return dev->backend->wait_flag(dev, flag, value, error);
    return base_fail(error, SIFR_FAILED, "this device does not wait for words of host memory");
}

sifr_status device_wait_flag(device *dev, const device_flag *flag, uint32_t value,
                             sifr_error *error) {
    BASE_TRY(queue_wait_flag(dev, flag, value, error));
    dev->waits.by_word++;
    return SIFR_OK;
}

bool device_can_wait_flags(device *dev, const device_flag *flag) {
    sifr_error error = {.message = ""};
    bool can = queue_wait_flag(dev, flag, 0, &error) == SIFR_OK;
    snprintf(dev->waits.refused, sizeof dev->waits.refused, "%.255s", can ? "" : error.message);
    return can;
}

void device_note_host_wait(device *dev, const char *why) {
    device_waits *waits = &dev->waits;
    waits->by_host++;
    snprintf(waits->why, sizeof waits->why, "%s", waits->refused[0] ? waits->refused : why);
}

sifr_status device_start_copy(device *dev, device_queue queue, void *to, const void *from,
                              int64_t bytes, sifr_error *error) {
    base_assert((int)queue >= 0 && queue < DEVICE_QUEUES && bytes >= 0);
    return dev->backend->start_copy(dev, queue, to, from, bytes, error);
}

sifr_status device_reached(device *dev, device_mark mark, bool *reached, sifr_error *error) {
    if (dev->backend->reached) return dev->backend->reached(dev, mark, reached, error);
    BASE_TRY(device_finish(dev, mark, error));
    *reached = true;
    return SIFR_OK;
}

sifr_status device_enter(device *dev, device_queue queue, void **stream, sifr_error *error) {
    if (dev->backend->enter) return dev->backend->enter(dev, queue, stream, error);
    return base_fail(error, SIFR_FAILED,
                     "this device is no GPU of NVIDIA's: it has no streams for other libraries");
}

void device_times(device *dev, device_mark mark, double *begun, double *ended) {
    *begun = *ended = 0;
    if (dev->backend->times) dev->backend->times(dev, mark, begun, ended);
}

/* --- the numbers of a step --- */

sifr_status device_fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                               sifr_error *error) {
    base_assert(rows >= 0);
    return dev->backend->fold_losses(dev, losses, rows, sum, error);
}

sifr_status device_decide(device *dev, const device_decision *decision, sifr_error *error) {
    base_assert(decision->owners >= 1 && decision->ranks % decision->owners == 0);
    return dev->backend->decide(dev, decision, error);
}

sifr_status device_start_sum(device *dev, device_queue queue, const device_sum *sum,
                             sifr_error *error) {
    if (sum->count < 1 || sum->count > DEVICE_MOST_SLICES)
        return base_fail(error, SIFR_FAILED, "sum of %d slices: 1 to %d are added at once",
                         sum->count, DEVICE_MOST_SLICES);
    base_assert(sum->sum == BASE_FP32 || sum->sum == sum->type);
    return dev->backend->start_sum(dev, queue, sum, error);
}
