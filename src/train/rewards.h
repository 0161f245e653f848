/* Rewards of preferences, by TRL's names: how much likelier an answer is than by the reference,
 * times beta; of ORPO, which has none, its mean log-probability times beta. */
#ifndef TRAIN_REWARDS_H
#define TRAIN_REWARDS_H

#include "sifr/model.h"
#include "train/data/rows.h"

enum { TRAIN_REWARDS = 4 };
/* "rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins" */
extern const char *const train_reward_names[TRAIN_REWARDS];

/* In the order of the names: means over pairs. */
typedef struct train_rewards {
    double values[TRAIN_REWARDS];
} train_rewards;

/* Writes the rewards of the `sequences` / 2 pairs from sequence `first` of the rows on, two each;
 * those of a pair without labels are NaN. log_probabilities: of those sequences' labels. */
void train_rewards_take(const sifr_model *model, const train_rows *rows, int64_t first,
                        int64_t sequences, const float *log_probabilities, float *out);

/* The means over `pairs` pairs in their order, without those that are NaN. */
train_rewards train_rewards_mean(const float *numbers, int64_t pairs);

#endif
