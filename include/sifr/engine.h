/* The engine: trains a model on this process's share of the work. It owns every buffer of a step.
 * All memory is taken when the engine is created; a step allocates nothing.
 *
 *     sifr_settings settings = sifr_settings_defaults();
 *     settings.micro_batch_size = 4, settings.seq_length = 256;
 *     sifr_engine_create(model, &settings, &engine, &error);
 *     sifr_engine_initialise(engine, 42, &error);
 *     for (...) sifr_engine_step(engine, &batch, 3e-4, &result, &error);
 *
 * An engine is used by one thread at a time.
 */
#ifndef SIFR_ENGINE_H
#define SIFR_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/model.h"
#include "sifr/settings.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_engine sifr_engine;

typedef struct sifr_step_result {
    double loss;          /* mean over the labelled tokens of this step */
    int64_t labelled;     /* tokens that have a label */
    double gradient_norm; /* L2 norm before clipping, without the loss scale */
    double loss_scale;    /* of this step; 1 in fp32 and bf16 */
    bool updated; /* false: a loss or gradient was not finite, or no token had a label; then nothing
                     was changed, except the loss scale in fp16 */
    /* This rank's losses, each the sum over the labelled tokens of one of its micro batches, in
     * their order. They belong to the engine and are good until its next call. Of the ranks of a
     * pipeline those of the last stage have them; others have NULL and 0. */
    const double *micro_losses;
    int32_t micro_batches;
} sifr_step_result;

/* Arranges a finished model for an optimizer that does not train all weights alike: by its
 * no_decay, layer_decay and groups, and 8-bit Adam, whose small weights keep 32 bits. Harmless for
 * others. Call it after sifr_model_freeze, and before an engine is created from the model.
 * SIFR_USAGE for a group that no trained weight belongs to. */
SIFR_API sifr_status sifr_model_group(sifr_model *model, const sifr_optimizer *optimizer,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* The model is borrowed: it must be finished and must outlive the engine. SIFR_NO_MEMORY if the
 * system refuses the memory that the plan needs; SIFR_USAGE for settings that contradict each
 * other. Weights are zero until they are initialised or written. */
SIFR_API sifr_status sifr_engine_create(const sifr_model *model, const sifr_settings *settings,
                                        sifr_engine **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_engine_free(sifr_engine *engine); /* NULL is harmless */

/* Sets every weight to random values by its rule (sifr_init). A value depends only on seed, weight
 * and element. */
SIFR_API sifr_status sifr_engine_initialise(sifr_engine *engine, uint64_t seed,
                                            sifr_error *error) SIFR_MUST_CHECK;

/* A weight of the engine's model. */
typedef struct sifr_weight_facts {
    size_t size;      /* sizeof(sifr_weight_facts), set by the caller */
    const char *name; /* belongs to the model */
    int64_t shape[3]; /* as files have it */
    int32_t rank;     /* 1 to 3 numbers of it count */
    bool trained;
} sifr_weight_facts;
/* The weight number `index`, from 0, in the order of the model; false behind the last one. */
SIFR_API bool sifr_engine_weight_at(const sifr_engine *engine, size_t index,
                                    sifr_weight_facts *out);

/* Writes or reads a weight by name, in fp32, row-major; count must be rows x columns. The values
 * are copied. Writing a weight leaves all other state as it is. All ranks must make the same calls,
 * with the same names and values. A read of what ranks hold in parts fails on all of them where it
 * is not the same; what was written is compared by the next step: of a write of more than 1 MiB, 64
 * pieces of 16 KiB that are spread over it. */
SIFR_API sifr_status sifr_engine_write_weight(sifr_engine *engine, const char *name,
                                              const float *values, size_t count,
                                              sifr_error *error) SIFR_MUST_CHECK;
SIFR_API sifr_status sifr_engine_read_weight(const sifr_engine *engine, const char *name,
                                             float *values, size_t count,
                                             sifr_error *error) SIFR_MUST_CHECK;
/* Of all of them only elements first ... first + count - 1, row-major. SIFR_USAGE beyond the
 * weight. */
SIFR_API sifr_status sifr_engine_write_piece(sifr_engine *engine, const char *name, int64_t first,
                                             const float *values, size_t count,
                                             sifr_error *error) SIFR_MUST_CHECK;
SIFR_API sifr_status sifr_engine_read_piece(const sifr_engine *engine, const char *name,
                                            int64_t first, float *values, size_t count,
                                            sifr_error *error) SIFR_MUST_CHECK;
/* *out: all values of a weight where the engine has them, without a copy: to read, as they are
 * after each step, until the engine is freed. SIFR_USAGE, with the reason, where they do not lie
 * so: with several ranks, on a device with memory of its own, with state on disk or an update that
 * may be delayed, of frozen weights in another type, and of master weights in bf16. */
SIFR_API sifr_status sifr_engine_view_weight(const sifr_engine *engine, const char *name,
                                             const float **out, sifr_error *error) SIFR_MUST_CHECK;
/* What sifr_engine_read_weight does, of a trained weight's average (ema_decay): zeros before the
 * first update. SIFR_USAGE where none is kept. */
SIFR_API sifr_status sifr_engine_read_average(const sifr_engine *engine, const char *name,
                                              float *values, size_t count,
                                              sifr_error *error) SIFR_MUST_CHECK;

/* What a step reads: micro batches x micro_batch_size x seq_length numbers for each input,
 * row-major. Inputs that the model does not read may be left out; token types and segments are all
 * 0 where they are left out. */
typedef struct sifr_batch {
    const int32_t *tokens;
    const int32_t *labels; /* of a decoder: the id that follows the token; -100: none */
    const int32_t *token_types, *segments;
    /* Of a packed model (sifr_pack): in 0 ... seq_length - 1, and where they are left out, counted
     * from the beginning of the sequence, as those of other models, which must leave them out. */
    const int32_t *positions;
    /* Of models with sifr_targets: as many numbers for each token as it has columns. */
    const float *targets;
} sifr_batch;

/* One step on gradient_accumulation_steps micro batches. The batch is copied first. With nothing
 * changed: SIFR_USAGE for a rate that is not finite, and for tokens, labels or targets that are
 * missing and the model reads; SIFR_FAILED for ids outside the model's tables, for labels below 0
 * other than -100, and for targets that its head cannot read, in rows with a label. SIFR_FAILED
 * also for an fp16 step that overflows at the least loss scale, since no later step could do
 * better. On several ranks what one of them cannot take fails the step on all, with the message of
 * the first such rank; nothing has changed then, and the ranks may go on. Likewise SIFR_USAGE, with
 * what differs and on which ranks, where they do not give the same: learning_rate and betas (as
 * fp32), the number of steps so far, and values and seeds of weights, until all write a weight
 * alike. Batches are not compared, since each rank has its own. If state is on disk, a
 * step may leave its update to the next step; every other function completes that update first, so
 * a disk error may be reported by any of them. */
SIFR_API sifr_status sifr_engine_step(sifr_engine *engine, const sifr_batch *batch,
                                      double learning_rate, sifr_step_result *result,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Sets Adam's betas from the next step on, for schedules that change them; until then the options'
 * betas apply. Bias corrections are 1 - beta^t with the current step's betas, as in PyTorch. A
 * delayed update uses the betas of the step it belongs to. SIFR_USAGE unless 0 <= beta <=
 * 0.99999997: larger ones are 1 in fp32. */
SIFR_API sifr_status sifr_engine_set_betas(sifr_engine *engine, double beta1, double beta2,
                                           sifr_error *error) SIFR_MUST_CHECK;

/* Computes the sum of the losses over one micro batch (micro_batch_size x seq_length) without
 * training. Where ranks share weights or layers they make it together, and what one cannot take
 * fails it on all. */
SIFR_API sifr_status sifr_engine_evaluate(sifr_engine *engine, const sifr_batch *batch,
                                          double *loss_sum, int64_t *labelled,
                                          sifr_error *error) SIFR_MUST_CHECK;

/* The same, with the logits of all tokens in fp32, row-major: micro_batch_size x seq_length x
 * sifr_engine_logits numbers, which `count` has to be. What the engine needs for them is taken at
 * the first call, beyond the plan: as much again, in the precision of the step. */
SIFR_API sifr_status sifr_engine_evaluate_logits(sifr_engine *engine, const sifr_batch *batch,
                                                 float *logits, size_t count, double *loss_sum,
                                                 int64_t *labelled,
                                                 sifr_error *error) SIFR_MUST_CHECK;
/* Logits of a token: the words or the classes of the model's head. */
SIFR_API int64_t sifr_engine_logits(const sifr_engine *engine);

/* In place of a call of all ranks, on one that has failed in making its batch: ends the call on all
 * ranks with this message, as a batch that is refused would. Gives that status, SIFR_FAILED, also
 * where there is one rank. */
typedef enum sifr_engine_call {
    SIFR_CALL_STEP, /* or sifr_loop_step */
    SIFR_CALL_EVALUATE,
    SIFR_CALL_EVALUATE_LOGITS
} sifr_engine_call;
SIFR_API sifr_status sifr_engine_fail(sifr_engine *engine, sifr_engine_call call,
                                      const char *message, sifr_error *error) SIFR_MUST_CHECK;

/* The number of steps so far, and of those that changed the weights. */
SIFR_API int64_t sifr_engine_steps(const sifr_engine *engine);
SIFR_API int64_t sifr_engine_updates(const sifr_engine *engine);

/* Loss scale of the next step; 1 in fp32 and bf16. */
SIFR_API double sifr_engine_loss_scale(const sifr_engine *engine);

/* Planned memory in bytes: all buffers of the engine at their peak. */
SIFR_API int64_t sifr_engine_planned_bytes(const sifr_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
