/* Another model's distribution beside the labels: the section "distill" (docs/distillation.md). */
#include <math.h>
#include <stdio.h>

#include "train/objective/objectives.h"
#include "train/run.h"

static const char scores_key[] = "sifr.distill.scores";
static const char temperature_key[] = "sifr.distill.temperature";
static const char weight_key[] = "sifr.distill.weight";

static bool asked(const sifr_config *config) {
    return config_get_word(config, scores_key) != NULL;
}

/* What the file of the other model's distributions says of itself. */
static sifr_status choose(const sifr_config *config, model_objective *out, sifr_error *error) {
    const char *scores = config_get_word(config, scores_key);
    sifr_distil_args args = {.weight = config_get_number(config, weight_key)};
    BASE_TRY(data_token_scores_peek(scores, &args.words, &args.temperature, error));
    *out = (model_objective){.row = &model_objective_distil, .distil = args};
    if (!args.words)
        return base_fail(error, SIFR_FAILED,
                         "%s: it has no top words; make it with `sifr score --top-k N`", scores);
    double wanted = config_get_number(config, temperature_key);
    if (wanted <= 0 || fabs(wanted - args.temperature) <= 1e-6 * wanted) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "distill: temperature %g, but %s is of %g: leave temperature out, or make the "
                     "file with `sifr score --temperature %g`",
                     wanted, scores, args.temperature, wanted);
}

static sifr_status open_tops(train_state *t, sifr_error *error) {
    return train_objective_scores(t, t->data, DATA_USE_TOPS, config_get_word(t->config, scores_key),
                                  error);
}

static void describe(const model_objective *objective, bool undropped, char *out, size_t size) {
    const sifr_distil_args *d = &objective->distil;
    (void)undropped;
    snprintf(out, size, "%lld words, temperature %.9g, weight %.9g", (long long)d->words,
             d->temperature, d->weight);
}

const train_objective train_distil = {.tasks = 1u << MODEL_NEXT_TOKEN,
                                      .key = "distill",
                                      .keys = {scores_key, temperature_key, weight_key},
                                      .file = scores_key,
                                      .asked = asked,
                                      .choose = choose,
                                      .chats = true,
                                      .open = open_tops,
                                      .describe = describe,
                                      .perplexity = true};
