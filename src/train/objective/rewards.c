#include "train/objective/rewards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "engine/handle.h"
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

/* --- of an evaluation --- */

typedef struct evaluated_rewards {
    sifr_engine *engine;
    int64_t pairs;
    float *all, *log_probabilities; /* of all windows; of a micro batch */
} evaluated_rewards;

static sifr_status take(void *user, const infer_batch *batch, float *out, sifr_error *error) {
    const evaluated_rewards *r = user;
    BASE_TRY(engine_read_log_probabilities(r->engine, true, 0, r->log_probabilities, error));
    train_rewards_take(engine_model(r->engine), batch->rows, 0, batch->rows->count,
                       r->log_probabilities, out);
    return SIFR_OK;
}

static void put(void *user, int64_t first, int64_t count, const float *numbers) {
    const evaluated_rewards *r = user;
    memcpy(r->all + first, numbers, (size_t)count * sizeof *numbers);
}

static sifr_status open_rewards(const train_measured *of, infer_evaluator *pass, void **out,
                                sifr_error *error) {
    evaluated_rewards *r;
    BASE_TRY(base_alloc(1, sizeof *r, &r, error));
    *out = r;
    *r = (evaluated_rewards){.engine = of->engine, .pairs = of->windows / 2};
    pass->numbers = (infer_row_numbers){.width = 1, .user = r, .take = take, .put = put};
    BASE_TRY(base_alloc((size_t)of->windows, sizeof *r->all, &r->all, error));
    return base_alloc((size_t)(of->sequences * of->length), sizeof *r->log_probabilities,
                      &r->log_probabilities, error);
}

static sifr_status score_rewards(const void *measure, train_scores *out, sifr_error *error) {
    const evaluated_rewards *r = measure;
    train_rewards means = train_rewards_mean(r->all, r->pairs);
    (void)error;
    out->count = TRAIN_REWARDS;
    for (int i = 0; i < TRAIN_REWARDS; i++)
        out->items[i] = (train_score){train_reward_names[i], means.values[i]};
    return SIFR_OK;
}

static void close_rewards(void *measure) {
    evaluated_rewards *r = measure;
    if (!r) return;
    free(r->all);
    free(r->log_probabilities);
    free(r);
}

const train_measure train_measure_rewards = {
    .pairs = true, .open = open_rewards, .score = score_rewards, .close = close_rewards};
