/* What a model's head learns in place of the cross entropy of its labels, or beside it. A model
 * with none of these calls learns its labels alone. Call one of them before the head. */
#ifndef SIFR_OBJECTIVE_H
#define SIFR_OBJECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_model sifr_model;

/* Trains a model that ends with sifr_head_loss on pairs of answers: sequences are the chosen one
 * and the rejected one in turns, and the loss is that of a pair, so that micro_batch_size is even.
 * Targets (sifr_batch.targets) are a number for each token: the log-probability that a reference
 * gives its label; for ORPO 1 where the label belongs to the answer and 0 where it belongs to the
 * prompt. Losses: DPO's (Rafailov et al. 2023) by the logistic function, the hinge, or as IPO (Azar
 * et al. 2023), and ORPO (Hong et al. 2024). */
typedef enum sifr_preference {
    SIFR_PREFERENCE_NONE,
    SIFR_PREFERENCE_SIGMOID,
    SIFR_PREFERENCE_HINGE,
    SIFR_PREFERENCE_IPO,
    SIFR_PREFERENCE_ORPO
} sifr_preference;
SIFR_API void sifr_prefer(sifr_model *model, sifr_preference loss, double beta);

/* Trains a model that ends with sifr_head_loss on another model's distribution as well: the loss is
 * (1 - weight) times the cross entropy of the labels, plus weight times temperature^2 times the
 * Kullback-Leibler divergence from the other's distribution to this one's, both at the temperature,
 * with all of the vocabulary beyond the given entries as one class (Hinton et al. 2015). Targets
 * are the ids of `words` entries for each token, no two of them the same, then the logarithms of
 * their probabilities at the temperature. Evaluation has the cross entropy alone and needs none. */
typedef struct sifr_distil_args {
    int64_t words;
    double temperature, weight;
} sifr_distil_args;
SIFR_API void sifr_distil(sifr_model *model, sifr_distil_args args);

/* Rows of logits for an own loss: labelled tokens of one micro batch, in their order. All arrays
 * are the engine's, and there during the call alone. */
typedef struct sifr_loss_chunk {
    size_t size; /* of the struct that the library has */
    int64_t rows, words;
    const float *logits;   /* rows x words, as the head makes them: scaled and capped */
    const int32_t *labels; /* [rows] words; those without a label are not among the rows */
    const int32_t *tokens; /* [rows] which token of the micro batch each row is of */
    /* rows x words, zeros at the call: to be filled with the derivatives of `loss` by the logits.
     * They are not to be divided by the number of labels, nor multiplied by a loss scale: the
     * engine does that. NULL in an evaluation. */
    float *gradient;
    double loss; /* to be set: the sum of the losses of the rows; NaN at the call */
} sifr_loss_chunk;

/* Called by sifr_engine_step and sifr_engine_evaluate on the thread that called them, once for each
 * chunk of each micro batch; calls of the engine from there are refused. `error` is never NULL. A
 * status that is not SIFR_OK fails the step or the evaluation on all ranks, with the message that
 * was written into `error`, and nothing has changed. A loss or a gradient that is not finite
 * changes nothing either: `updated` is false. */
typedef sifr_status sifr_loss_function(void *user, sifr_loss_chunk *chunk, sifr_error *error);

/* Trains a model that ends with sifr_head_loss by a loss of the caller's, a function of logits and
 * labels. Rows of a chunk: as many as keep logits and gradient within `memory`, 1024 at most. This
 * memory is part of the plan. The bits of a run follow from its numbers as without an own loss
 * where the loss is a function of the chunk alone, and `memory` stays what it was; sifr cannot see
 * whether it is one. On the CPU alone. */
typedef struct sifr_own_loss_args {
    sifr_loss_function *loss;
    void *user;     /* as the function: must outlive the model */
    int64_t memory; /* bytes; 0: SIFR_OWN_LOSS_MEMORY */
} sifr_own_loss_args;
enum { SIFR_OWN_LOSS_MEMORY = 64 << 20 };
SIFR_API void sifr_own_loss(sifr_model *model, sifr_own_loss_args args);

#ifdef __cplusplus
}
#endif

#endif
