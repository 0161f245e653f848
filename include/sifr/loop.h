/* A run whose loop is the caller's: the model folder of a config, and an engine with its weights,
 * as `sifr train` would have it on these ranks. The caller gives the batches (sifr/data.h reads
 * them) and decides when to evaluate (sifr_engine_evaluate), to save (sifr/checkpoint.h) and to
 * stop.
 *
 *     sifr_loop_open(context, config, ranks, &loop, &error);
 *     for (...) sifr_loop_step(loop, &batch, &result, &error);
 *     sifr_loop_save_model(loop, "trained", &error);
 *
 * All functions that can fail are of all ranks (sifr/ranks.h), and take one thread at a time. With
 * the run's own batches a loop gives the same bits as the run.
 */
#ifndef SIFR_LOOP_H
#define SIFR_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "sifr/config.h"
#include "sifr/context.h"
#include "sifr/engine.h"
#include "sifr/ranks.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_loop sifr_loop;

/* ranks: NULL for one rank. Of the config, data and output may be missing; it is read only. Context
 * and ranks must outlive the loop. SIFR_NO_MEMORY if the step does not fit. */
SIFR_API sifr_status sifr_loop_open(sifr_context *context, const sifr_config *config,
                                    sifr_ranks *ranks, sifr_loop **out,
                                    sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_loop_close(sifr_loop *loop); /* NULL is harmless */

/* The loop's, and closed with it. Any function of sifr/engine.h may be used on it. */
SIFR_API sifr_engine *sifr_loop_engine(sifr_loop *loop);

typedef struct sifr_loop_figures {
    size_t size; /* sizeof(sifr_loop_figures), set by the caller */
    int64_t parameters, trained_parameters;
    int64_t vocab_size;
    /* A step's batch has gradient_accumulation_steps x micro_batch_size x seq_length tokens of this
     * rank. */
    int64_t micro_batch_size, gradient_accumulation_steps, seq_length;
    int64_t total_steps; /* max_steps, or what was set; 0: not known */
    int64_t targets;     /* numbers that a batch must give for each token beside its label */
} sifr_loop_figures;
SIFR_API void sifr_loop_get(const sifr_loop *loop, sifr_loop_figures *out);

/* Which micro batch of the step's global batch this rank's micro batch `index` is, from 0: their
 * order is that of the sums. So micro batch 3 of a caller's rows belongs to the rank and the index
 * that have 3, and all numbers of ranks have the bits of one. -1: there is no such index. */
SIFR_API int64_t sifr_loop_micro_batch(const sifr_loop *loop, int64_t index);

/* How many steps there will be, where the config's max_steps does not say it: schedules follow from
 * it. Before the first step; once. */
SIFR_API sifr_status sifr_loop_set_steps(sifr_loop *loop, int64_t total,
                                         sifr_error *error) SIFR_MUST_CHECK;

/* The rate of the next step by the config's schedule. SIFR_USAGE while total_steps is not known. */
SIFR_API sifr_status sifr_loop_rate(const sifr_loop *loop, double *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* sifr_engine_step with the rate and the betas of the config's schedule. */
SIFR_API sifr_status sifr_loop_step(sifr_loop *loop, const sifr_batch *batch,
                                    sifr_step_result *result, sifr_error *error) SIFR_MUST_CHECK;

/* Writes the model as it is now, with config.json, tokenizer and the other files of the model
 * folder, into a folder that is new or empty; of a model with adapters the adapters. */
SIFR_API sifr_status sifr_loop_save_model(sifr_loop *loop, const char *path,
                                          sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
