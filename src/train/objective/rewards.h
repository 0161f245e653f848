/* Rewards of preferences, by TRL's names. The reward of an answer is beta times its log-probability
 * less the reference's; with ORPO, which has no reference, beta times its mean log-probability. */
#ifndef TRAIN_REWARDS_H
#define TRAIN_REWARDS_H

#include "data/rows.h"
#include "sifr/model.h"
#include "train/evaluate/measure.h"

enum { TRAIN_REWARD_MARGIN = 3, TRAIN_REWARDS };
#define TRAIN_REWARD_NAMES                                                                         \
    "rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins"
extern const char *const train_reward_names[TRAIN_REWARDS];

/* In the order of the names: means over pairs. */
typedef struct train_rewards {
    double values[TRAIN_REWARDS];
} train_rewards;

/* Writes the rewards of `sequences` / 2 pairs, which begin at sequence `first` of the rows: two
 * for each pair, NaN if it has no labels. log_probabilities: of those sequences' labels. */
void train_rewards_take(const sifr_model *model, const data_rows *rows, int64_t first,
                        int64_t sequences, const float *log_probabilities, float *out);

/* The means over `pairs` pairs in their order; pairs that are NaN are left out. */
train_rewards train_rewards_mean(const float *numbers, int64_t pairs);

/* Of an evaluation. */
extern const train_measure train_measure_rewards;

#endif
