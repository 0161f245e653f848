/* The groups of settings that weights are trained by, and what is said of them. */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "train/prepare/run_settings.h"

enum { SAID_ALONE = 8, TEXT = 96 };

static const char *rate_text(double scale, char out[TEXT]) {
    if (scale < 1 || scale > 1)
        snprintf(out, TEXT, "%.4g times the learning rate and ", scale);
    else
        out[0] = 0;
    return out;
}

static const char *decay_text(double decay, char out[TEXT]) {
    if (decay > 0)
        snprintf(out, TEXT, "weight decay %g", decay);
    else
        snprintf(out, TEXT, "no weight decay");
    return out;
}

static void say_group(const sifr_model *model, int32_t group, const sifr_log *log) {
    char parameters[32], rate[TEXT], decay[TEXT];
    int64_t weights = 0, elements = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->frozen || weight->group != group) continue;
        weights++;
        elements += weight->rows * weight->columns;
    }
    base_log(log, SIFR_LOG_INFO, "trains %lld weight%s of %s parameters with %s%s",
             (long long)weights, weights == 1 ? "" : "s", base_format_count(elements, parameters),
             rate_text(model->groups[group].lr_scale, rate),
             decay_text(model->groups[group].weight_decay, decay));
}

static void say_range(const sifr_model *model, const sifr_log *log) {
    model_group least = model->groups[0], most = model->groups[0];
    for (size_t g = 0; g < model->group_count; g++) {
        least.lr_scale = fmin(least.lr_scale, model->groups[g].lr_scale);
        least.weight_decay = fmin(least.weight_decay, model->groups[g].weight_decay);
        most.lr_scale = fmax(most.lr_scale, model->groups[g].lr_scale);
        most.weight_decay = fmax(most.weight_decay, model->groups[g].weight_decay);
    }
    base_log(log, SIFR_LOG_INFO,
             "trains %zu groups of weights with %.4g to %.4g times the learning rate and weight "
             "decay from %g to %g",
             model->group_count, least.lr_scale, most.lr_scale, least.weight_decay,
             most.weight_decay);
}

sifr_status train_group(const sifr_config *config, sifr_model *model, const sifr_log *log,
                        sifr_error *error) {
    BASE_TRY(sifr_model_group(model, &config->step.optimizer, error));
    if (model->group_count > SAID_ALONE) {
        say_range(model, log);
        return SIFR_OK;
    }
    for (int32_t g = 0; g < (int32_t)model->group_count && model->group_count > 1; g++)
        say_group(model, g, log);
    return SIFR_OK;
}
