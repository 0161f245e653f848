/* What a model's head learns in place of the cross entropy of its labels, or beside it. A model
 * with none of these calls learns its labels alone. Call one of them before the head. */
#ifndef SIFR_OBJECTIVE_H
#define SIFR_OBJECTIVE_H

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

#ifdef __cplusplus
}
#endif

#endif
