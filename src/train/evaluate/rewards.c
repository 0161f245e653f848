#include "train/evaluate/rewards.h"

#include <math.h>

#include "model/description.h"

const char *const train_reward_names[TRAIN_REWARDS] = {TRAIN_REWARD_NAMES};

/* Of sequence `at` of the rows. */
static float reward_of(const sifr_model *model, const data_rows *rows, int64_t at,
                       const float *log_probabilities) {
    bool orpo = model->objective.pairs.loss == SIFR_PREFERENCE_ORPO;
    const int32_t *labels = rows->labels + at * rows->length;
    const float *targets = rows->targets + at * rows->length;
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < rows->length; i++) {
        if (labels[i] < 0 || (orpo && targets[i] <= 0)) continue;
        sum += (double)log_probabilities[i] - (orpo ? 0 : (double)targets[i]);
        count++;
    }
    if (count == 0) return NAN;
    return (float)(model->objective.pairs.beta * (orpo ? sum / (double)count : sum));
}

void train_rewards_take(const sifr_model *model, const data_rows *rows, int64_t first,
                        int64_t sequences, const float *log_probabilities, float *out) {
    for (int64_t i = 0; i < sequences; i++)
        out[i] = reward_of(model, rows, first + i, log_probabilities + i * rows->length);
}

train_rewards train_rewards_mean(const float *numbers, int64_t pairs) {
    train_rewards out = {{0}};
    int64_t count = 0;
    for (int64_t p = 0; p < pairs; p++) {
        double chosen = (double)numbers[2 * p], rejected = (double)numbers[2 * p + 1];
        if (isnan(chosen) || isnan(rejected)) continue;
        out.values[0] += chosen;
        out.values[1] += rejected;
        out.values[2] += chosen > rejected;
        out.values[3] += chosen - rejected;
        count++;
    }
    for (int i = 0; i < TRAIN_REWARDS; i++) out.values[i] /= (double)(count ? count : 1);
    return out;
}
