/* The engine: trains a model on this process's share of the work. It owns every buffer of a step,
 * takes its memory once, when it is created, and allocates nothing while it steps.
 *
 *     sifr_settings settings = sifr_settings_defaults();
 *     settings.micro_batch_size = 4, settings.seq_length = 256;
 *     sifr_engine_create(model, &settings, &engine, &error);
 *     sifr_engine_initialise(engine, 42, &error);
 *     for (...) sifr_engine_step(engine, tokens, labels, 3e-4, &result, &error);
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
    double loss;          /* mean over the labelled tokens of the step */
    int64_t labelled;     /* tokens that have a label */
    double gradient_norm; /* L2, before clipping; loss scale divided out */
    double loss_scale;    /* of this step; 1 in fp32 and bf16 */
    bool updated;         /* false: a loss or gradient was not finite (or no token had a label), and
                             nothing was changed but, in fp16, the loss scale */
} sifr_step_result;

/* The model is borrowed: finished, and alive as long as the engine. SIFR_NO_MEMORY when the system
 * refuses what the plan needs; SIFR_USAGE for settings that contradict each other. Weights are zero
 * until they are initialised or written. */
SIFR_API sifr_status sifr_engine_create(const sifr_model *model, const sifr_settings *settings,
                                        sifr_engine **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_engine_free(sifr_engine *engine); /* NULL is harmless */

/* Random weights by each weight's rule: a function of (seed, weight, element) alone. */
SIFR_API sifr_status sifr_engine_initialise(sifr_engine *engine, uint64_t seed,
                                            sifr_error *error) SIFR_MUST_CHECK;

/* Weights by name, in fp32, row-major; count must be rows x columns. Writing resets nothing else.
 * Both copy. With several ranks each of them makes the same calls. */
SIFR_API sifr_status sifr_engine_write_weight(sifr_engine *engine, const char *name,
                                              const float *values, size_t count,
                                              sifr_error *error) SIFR_MUST_CHECK;
SIFR_API sifr_status sifr_engine_read_weight(const sifr_engine *engine, const char *name,
                                             float *values, size_t count,
                                             sifr_error *error) SIFR_MUST_CHECK;

/* One step. tokens and labels: gradient_accumulation_steps x micro_batch_size x seq_length ids,
 * row-major; the label of a token is the id that follows it, or -100 for none. Both are copied
 * before any work. Ids outside of the model's vocabulary are SIFR_FAILED, and nothing changes.
 * SIFR_FAILED, too, for a step in fp16 that overflows at the least loss scale: no later one can do
 * better. Where state is on disk a step may leave its update to the next one; all other functions
 * find it done, and a disk that fails is then said by them. */
SIFR_API sifr_status sifr_engine_step(sifr_engine *engine, const int32_t *tokens,
                                      const int32_t *labels, double learning_rate,
                                      sifr_step_result *result, sifr_error *error) SIFR_MUST_CHECK;

/* Adam's betas from the next step on, for schedules that move them; the options' until then. The
 * bias corrections are 1 - beta^t with the betas of the step, as torch has them. An update that is
 * left to a later step keeps the betas of its own. SIFR_USAGE outside of 0 to below 1. */
SIFR_API sifr_status sifr_engine_set_betas(sifr_engine *engine, double beta1, double beta2,
                                           sifr_error *error) SIFR_MUST_CHECK;

/* Sum of the losses of one micro batch (micro_batch_size x seq_length), without training. */
SIFR_API sifr_status sifr_engine_evaluate(sifr_engine *engine, const int32_t *tokens,
                                          const int32_t *labels, double *loss_sum,
                                          int64_t *labelled, sifr_error *error) SIFR_MUST_CHECK;

/* Steps so far, and how many of them changed the weights. */
SIFR_API int64_t sifr_engine_steps(const sifr_engine *engine);
SIFR_API int64_t sifr_engine_updates(const sifr_engine *engine);

/* Loss scale of the step to come; 1 in fp32 and bf16. */
SIFR_API double sifr_engine_loss_scale(const sifr_engine *engine);

/* Bytes that the plan asks for: all of the engine's buffers at their peak. */
SIFR_API int64_t sifr_engine_planned_bytes(const sifr_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
