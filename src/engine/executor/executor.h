/* Runs a schedule: takes its memory in one piece and carries out its instructions in order. */
#ifndef ENGINE_EXECUTOR_H
#define ENGINE_EXECUTOR_H

#include "comm/comm.h"
#include "engine/store/host_store.h"
#include "engine/store/swap.h"
#include "plan/pass/passes.h"
#include "plan/schedule.h"

typedef struct engine_executor engine_executor;

/* What a run of the schedule found out. */
typedef struct engine_result {
    double loss_sum;      /* over labelled tokens of the global batch */
    int64_t labelled;     /* tokens */
    double gradient_norm; /* L2, before clipping; of the mean loss, unscaled */
    bool updated;         /* false: a gradient or loss was not finite, nothing was changed */
} engine_result;

/* What a step is told. Training only reads what it needs. */
typedef struct engine_step_input {
    uint64_t seed;
    int64_t step;    /* of the run: a coordinate of dropout's numbers */
    int64_t updates; /* done before this one: Adam's t - 1 */
    double learning_rate, beta1, beta2;
    double gradient_clipping; /* 0: none */
    double loss_scale;        /* gradients are made of the loss times this */
    bool bias_correction;
} engine_step_input;

/* The executor borrows the schedule, the group and `owner`, which must outlive it. With an `owner`
 * (a training executor of the same model) parameters are the owner's, and the memory that its step
 * leaves unused between steps is used where it is large enough; so the two never run at once. */
sifr_status engine_executor_create(plan_schedule *schedule, comm_group *group,
                                   engine_executor *owner, engine_executor **out,
                                   sifr_error *error) SIFR_MUST_CHECK;
void engine_executor_free(engine_executor *executor); /* NULL is harmless */

/* Transfers of a queue, PLAN_DISK or PLAN_COPY, that the schedule has under way at a time, at most.
 */
int32_t engine_transfers(const plan_schedule *schedule, plan_queue queue);

/* Where the schedule's buffers on disk are: before the first run of a schedule that has such. The
 * swap is borrowed, and closed before the executor is freed, since transfers may be under way after
 * a run that failed. */
void engine_use_swap(engine_executor *executor, engine_swap *swap);

/* What of a rank's memory is pinned for the disk. */
typedef struct engine_pinned {
    int64_t asked, bytes; /* bytes: those of them that are */
    int number;           /* where that is not all: the kernel's reason, or 0: there are no rings */
} engine_pinned;

/* Pins what is read from disk to and written from, of optimizer state and gradients, or parameters,
 * or both; where not both can be, the former alone. After engine_use_swap, before the first run. */
sifr_status engine_pin(engine_executor *executor, bool optimizer, bool parameters,
                       engine_pinned *out, sifr_error *error) SIFR_MUST_CHECK;

/* Address of a buffer of the schedule, in the device's memory or the host's; NULL for an index of
 * -1, and for one on disk. */
void *engine_buffer(const engine_executor *executor, int32_t buffer);

/* The same where the host reads and writes it in place; else NULL, too. */
void *engine_host_buffer(const engine_executor *executor, int32_t buffer);

/* Copies between host memory and a buffer that is not on disk, `bytes` from byte `at` of it on. */
sifr_status engine_get(const engine_executor *executor, int32_t buffer, int64_t at, void *to,
                       int64_t bytes, sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_set(const engine_executor *executor, int32_t buffer, int64_t at,
                       const void *from, int64_t bytes, sifr_error *error) SIFR_MUST_CHECK;

/* What holds the buffers in host memory; NULL: none are there. */
engine_host_store *engine_host(const engine_executor *executor);

/* Memory taken from the device, in bytes (0 where it is the owner's). */
int64_t engine_taken_bytes(const engine_executor *executor);

/* The memory that holds nothing between runs, page-aligned; not while an update is pending. */
void *engine_idle_memory(const engine_executor *executor, int64_t *bytes);

/* Runs all instructions; ranks run the same schedule together, and the first run opens the window
 * in which those of a host read each other's buffers. Inputs must be in place (tokens, labels of
 * each micro batch). */
sifr_status engine_run(engine_executor *executor, const engine_step_input *input,
                       engine_result *result, sifr_error *error) SIFR_MUST_CHECK;

/* Whether the last run left its update to the next one (plan_pass_delay_update): until that, or
 * engine_run_deferred, state is that of before it, and more of the memory is in use. */
bool engine_is_pending(const engine_executor *executor);

/* Carries it out now; nothing where none is pending. All ranks call it. */
sifr_status engine_run_deferred(engine_executor *executor, sifr_error *error) SIFR_MUST_CHECK;

/* For tests and benches: stands in for every kernel; told which instruction, and the call. */
typedef sifr_status (*engine_kernel)(void *user, size_t instruction, const device_call *call,
                                     sifr_error *error);
void engine_replace_kernels(engine_executor *executor, engine_kernel kernel, void *user);

/* When an instruction ran, by base_seconds. One that starts a transfer is soon over, and its
 * communication, disk or copy queue carries that out later: from `begun` to `over`, both 0 for all
 * others. All 0 where it did not run: what is deferred, in the first step. */
typedef struct engine_span {
    double start, end, begun, over;
} engine_span;

/* Runs write the span of each instruction into `spans` from now on (as many as the schedule has,
 * the caller's, which lives until this is called again); NULL: no more. */
void engine_note_spans(engine_executor *executor, engine_span *spans);

/* Seconds that each instruction of the last run took; as many as the schedule has. */
const float *engine_seconds(const engine_executor *executor);

#endif
