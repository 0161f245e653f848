/* Runs a schedule: takes its memory in one block and executes its instructions in order. */
#ifndef ENGINE_EXECUTOR_H
#define ENGINE_EXECUTOR_H

#include "engine/groups.h"
#include "engine/store/swap.h"
#include "plan/pass/passes.h"
#include "plan/schedule.h"

typedef struct engine_executor engine_executor;

/* The results of running the schedule. */
typedef struct engine_result {
    double loss_sum;      /* mean over the labelled tokens of the global batch */
    int64_t labelled;     /* tokens */
    double gradient_norm; /* L2 norm of the mean loss's gradient, before clipping, unscaled */
    bool updated;         /* false: a gradient or loss was not finite, and nothing was changed */
    bool refused;         /* a rank cannot make the step, and none has begun it */
    bool differs;         /* likewise, since ranks were not given the same */
} engine_result;

/* The inputs of a step. Only training uses all of them. */
typedef struct engine_step_input {
    uint64_t seed;
    int64_t step;    /* seed of the run, for dropout */
    int64_t updates; /* updates before this one: Adam's t - 1 */
    double learning_rate;
    const sifr_optimizer *optimizer; /* as it is in this step */
    optim_memory *memory;            /* becomes what it is if the step updates */
    double gradient_clipping;        /* 0: none */
    double loss_scale;               /* the loss is multiplied by this */
    int64_t labelled;                /* tokens of this rank's batch that have a label */
    bool refused;                    /* in training: this rank has no batch that it can learn */
    uint64_t given;                  /* in training: a hash of what all ranks give alike */
} engine_step_input;

/* The executor borrows the schedule, the groups (the struct is copied) and `owner`, which must
 * outlive it. With an `owner` (a training executor of the same model) the owner's parameters are
 * used, and also its memory that is idle between steps, if it is large enough. So the two must
 * never run at the same time. */
sifr_status engine_executor_create(plan_schedule *schedule, const engine_groups *groups,
                                   engine_executor *owner, engine_executor **out,
                                   sifr_error *error) SIFR_MUST_CHECK;
void engine_executor_free(engine_executor *executor); /* NULL is harmless */

/* Lets the other ranks read this one's memory. All ranks call it, and engine_run does so; does
 * nothing the next time. */
sifr_status engine_open_window(engine_executor *executor, sifr_error *error) SIFR_MUST_CHECK;

/* What ranks exchange: of collectives no operand is larger than a segment in fp32. */
comm_operands engine_operands(const plan_schedule *schedule);

/* The most transfers of a queue, PLAN_DISK or PLAN_COPY, that the schedule has in progress at a
 * time. */
int32_t engine_transfers(const plan_schedule *schedule, plan_queue queue);

/* Sets the store of the schedule's buffers on disk, before the first run of a schedule that has
 * any. The swap is borrowed. Close it before the executor is freed, since transfers may still be in
 * progress after a failed run. */
void engine_use_swap(engine_executor *executor, engine_swap *swap);

/* How much of a rank's memory is pinned for disk transfers. */
typedef struct engine_pinned {
    int64_t asked, bytes; /* bytes that are pinned */
    int number;           /* if not all are: the kernel's reason, or 0: there are no rings */
} engine_pinned;

/* Pins the buffers of disk transfers: of optimizer state and gradients, of parameters, or both; if
 * both do not fit, only the former. Call it after engine_use_swap and before the first run. */
sifr_status engine_pin(engine_executor *executor, bool optimizer, bool parameters,
                       engine_pinned *out, sifr_error *error) SIFR_MUST_CHECK;

/* The address of a buffer in device or host memory; NULL for index -1 and for a buffer on disk. */
void *engine_buffer(const engine_executor *executor, int32_t buffer);

/* The same, but NULL also if the host cannot access the buffer in place. */
void *engine_host_buffer(const engine_executor *executor, int32_t buffer);

/* Copies `bytes` between host memory and a buffer that is not on disk, starting at byte `at` of the
 * buffer. In hidden memory an input that is set is copied when the device gets to it, so it is set
 * once before each run. */
sifr_status engine_get(const engine_executor *executor, int32_t buffer, int64_t at, void *to,
                       int64_t bytes, sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_set(const engine_executor *executor, int32_t buffer, int64_t at,
                       const void *from, int64_t bytes, sifr_error *error) SIFR_MUST_CHECK;
/* Fills a buffer that is not on disk, at most as large as the largest input or table, with 0. */
sifr_status engine_clear(const engine_executor *executor, int32_t buffer,
                         sifr_error *error) SIFR_MUST_CHECK;
/* Writes the positions of a micro batch, each counted from the beginning of its sequence. */
sifr_status engine_count_positions(const engine_executor *executor, int32_t micro_batch,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* For rotary tables that depend on the sequence's length, which is `length` from now on: writes
 * their rows first … first + count - 1. Before the first call it is the plan's length. */
sifr_status engine_note_length(engine_executor *executor, int64_t first, int64_t count,
                               int64_t length, sifr_error *error) SIFR_MUST_CHECK;

/* The executor of one sequence, made with an owner that generates several: from now on it works on
 * the cache of the owner's sequence number `sequence`. */
void engine_use_cache(engine_executor *executor, const engine_executor *owner, int64_t sequence);

/* Bytes that the schedule's copies have moved between separate host memory and the device. */
void engine_count_copies(const engine_executor *executor, int64_t *to_device, int64_t *to_host);

/* Bytes of the block that are in memory. */
typedef struct engine_resident {
    int64_t classes[PLAN_CLASSES]; /* in the places that they have at the peak of a step */
    int64_t block;                 /* all of it, with what lies between them */
    bool shared;                   /* the ranks of this host map it, too */
} engine_resident;

/* Counts pages of the executor's own block, as the system has them now; between runs. SIFR_FAILED,
 * with the reason, where that cannot be known: a GPU's memory, a system that does not tell. */
sifr_status engine_count_resident(const engine_executor *executor, engine_resident *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Bytes taken from the device (0 if the block is the owner's). */
int64_t engine_taken_bytes(const engine_executor *executor);

/* The memory that is idle between runs, page-aligned. Not to be used while an update is pending. */
void *engine_idle_memory(const engine_executor *executor, int64_t *bytes);

/* Runs all instructions. All ranks run the same schedule together; the first run opens the window
 * through which ranks of a host read each other's buffers. Inputs (tokens and labels of each micro
 * batch) must be in place. In training a rank that has none refuses the step: then all of them come
 * back with result->refused, and have done nothing; likewise with result->differs. */
sifr_status engine_run(engine_executor *executor, const engine_step_input *input,
                       engine_result *result, sifr_error *error) SIFR_MUST_CHECK;

/* After a run for training: the sums of this rank's losses by micro batch, good until the next run;
 * NULL where this stage has none. */
const double *engine_micro_losses(const engine_executor *executor);

/* Whether the last run's update is delayed to the next run (plan_pass_delay_update). Until then, or
 * until engine_run_deferred, the state is from before the update and more memory is in use. */
bool engine_is_pending(const engine_executor *executor);

/* Runs a pending update now; does nothing if there is none. All ranks call it. */
sifr_status engine_run_deferred(engine_executor *executor, sifr_error *error) SIFR_MUST_CHECK;

/* For tests and benches: called instead of every kernel, with the instruction and the call. */
typedef sifr_status (*engine_kernel)(void *user, size_t instruction, const device_call *call,
                                     sifr_error *error);
void engine_replace_kernels(engine_executor *executor, engine_kernel kernel, void *user);

/* When an instruction ran, by base_seconds. An instruction that starts a transfer ends soon; its
 * communication, disk or copy queue runs the transfer from `begun` to `over`, which are 0 for other
 * instructions. All are 0 if it did not run (deferred instructions in the first step). */
typedef struct engine_span {
    double start, end, begun, over;
} engine_span;

/* From now on, runs write each instruction's span to `spans`, an array of the caller with an entry
 * for each instruction, which must live until the next call of this function. NULL: stop. */
void engine_note_spans(engine_executor *executor, engine_span *spans);

/* Whether a device that only begins its work ends each instruction before the next, so that its
 * time is its own; always so while spans are noted. Otherwise the seconds of such a device are
 * those of giving the work, and the last instruction's those of all of it. */
void engine_time_each(engine_executor *executor, bool each);

/* The seconds that each instruction of the last run took. */
const float *engine_seconds(const engine_executor *executor);

#endif
