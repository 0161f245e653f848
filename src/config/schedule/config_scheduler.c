/* The schedule of the learning rate: which parameters count, what "auto" and the run's length say.
 * DeepSpeed's kinds, and those that transformers' get_scheduler knows by the Trainer's names. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

#define CONFIG_MAX_LR "scheduler.params.warmup_max_lr"
#define CONFIG_TOTAL "scheduler.params.total_num_steps"
#define CONFIG_RUN "scheduler.params.num_training_steps"
#define CONFIG_WARM "scheduler.params.warmup_num_steps"
#define CONFIG_TRAINER_WARM "scheduler.params.num_warmup_steps"

bool config_lr_is_trainer(config_lr_kind kind) {
    return kind >= CONFIG_LR_TRAINER_LINEAR;
}

/* The flag or key that says how long the warm-up is, as messages name it; NULL where none does. */
static const char *config_warmup_giver(const sifr_config *config, char where[300]) {
    static const char *const paths[] = {"sifr.warmup_steps", "sifr.warmup_ratio"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const json_t *given = config_setting_at(config, paths[i])->given;
        if (json_number_value(given) > 0) return config_path_where(config, paths[i], where);
    }
    return NULL;
}

/* As TrainingArguments.get_warmup_steps: below 1, a share of the run's steps. */
static int64_t config_warmup_count(double steps, int64_t total) {
    double count = steps >= 1 ? floor(steps) : ceil((double)total * steps);
    return count < 0x1p62 ? (int64_t)count : (int64_t)1 << 62;
}

static int64_t config_max_steps(const sifr_config *config) {
    return config_setting_int(config, "sifr.max_steps");
}

/* What "auto" stands for, as under the Hugging Face Trainer. */
static sifr_status config_resolve_warmup_steps(sifr_config *config, sifr_error *error) {
    config_setting *steps = config_setting_at(config, CONFIG_WARM);
    double given = config_setting_number(config, CONFIG_TRAINER_WARM);
    int64_t total = config_max_steps(config);
    char where[300];
    const char *giver = config_warmup_giver(config, where);
    if (!config_value_is_auto(steps->given)) {
        if (!giver) return SIFR_OK;
        return base_fail(error, SIFR_USAGE,
                         "%s would have no effect: set " CONFIG_WARM " to \"auto\", or leave %s "
                         "out",
                         giver, giver);
    }
    if (!giver)
        return config_setting_put(config, CONFIG_WARM, json_integer(0), error,
                                  "default of the Hugging Face Trainer; DeepSpeed counts at least "
                                  "2");
    if (given >= 1 || total > 0)
        return config_setting_put(config, CONFIG_WARM,
                                  json_integer(config_warmup_count(given, total)), error,
                                  "from %.100s", giver);
    json_decref(steps->value);
    steps->value = NULL;
    snprintf(steps->note, CONFIG_NOTE, "a share of the steps, known once the data is read");
    return SIFR_OK;
}

static sifr_status config_resolve_warmup(sifr_config *config, config_lr_kind kind,
                                         sifr_error *error) {
    BASE_TRY(config_resolve_warmup_steps(config, error));
    if (kind == CONFIG_LR_WARMUP_COSINE) return SIFR_OK;
    const config_setting *rate = config_setting_at(config, "sifr.learning_rate");
    double lr = config_setting_number(config, CONFIG_LR);
    bool automatic = config_value_is_auto(config_setting_at(config, CONFIG_MAX_LR)->given);
    if (config_setting_given(config, CONFIG_MAX_LR)) {
        double top = config_setting_number(config, CONFIG_MAX_LR);
        if (config_setting_given(config, "sifr.learning_rate") && top != lr) {
            size_t index;
            char where[300];
            config_key_find("sifr.learning_rate", &index);
            return base_fail(error, SIFR_USAGE,
                             "%s %g would have no effect: " CONFIG_MAX_LR
                             " is %g; set that to \"auto\" or to the same",
                             config_setting_where(config, index, where, sizeof where), lr, top);
        }
        return SIFR_OK;
    }
    if (!automatic && !rate->given && kind == CONFIG_LR_WARMUP_DECAY) {
        return config_setting_put(config, CONFIG_MAX_LR, json_real(0.001), error, "default");
    }
    return config_setting_put(config, CONFIG_MAX_LR, json_real(lr), error, "the optimizer's rate");
}

static sifr_status config_resolve_total(sifr_config *config, const char *type, sifr_error *error) {
    const config_setting *total = config_setting_at(config, CONFIG_TOTAL);
    if (!total->given) {
        return base_fail(error, SIFR_USAGE,
                         CONFIG_TOTAL " is missing: %s needs it; give a number of steps, or "
                                      "\"auto\" for those of the run",
                         type);
    }
    if (!config_value_is_auto(total->given)) return SIFR_OK;
    const json_t *steps = config_setting_at(config, "sifr.max_steps")->value;
    if (steps) {
        return config_setting_put(config, CONFIG_TOTAL, json_incref((json_t *)steps), error,
                                  "the steps of the run");
    }
    config_setting *setting = config_setting_at(config, CONFIG_TOTAL);
    snprintf(setting->note, CONFIG_NOTE, "the steps of the run, known once the data is read");
    return SIFR_OK;
}

static sifr_status config_resolve_cycle(sifr_config *config, sifr_error *error) {
    static const char *const needed[] = {"scheduler.params.cycle_min_lr",
                                         "scheduler.params.cycle_max_lr"};
    for (size_t i = 0; i < 2; i++) {
        if (config_setting_at(config, needed[i])->value) continue;
        return base_fail(error, SIFR_USAGE, "%s is missing: OneCycle needs it; give a rate",
                         needed[i]);
    }
    static const char *const pairs[][2] = {
        {"scheduler.params.cycle_second_step_size", "scheduler.params.cycle_first_step_size"},
        {"scheduler.params.cycle_second_stair_count", "scheduler.params.cycle_first_stair_count"},
    };
    for (size_t i = 0; i < 2; i++) {
        if (config_setting_at(config, pairs[i][0])->value) continue;
        json_t *first = config_setting_at(config, pairs[i][1])->value;
        BASE_TRY(config_setting_put(config, pairs[i][0], json_incref(first), error,
                                    "that of the first half"));
    }
    return SIFR_OK;
}

config_lr_kind config_scheduler_kind(const sifr_config *config) {
    const json_t *type = config_setting_at(config, "scheduler.type")->value;
    int kind = -1;
    size_t index;
    const config_key *key = config_key_find("scheduler.type", &index);
    if (type) config_key_has_word(key->choices, json_string_value(type), &kind, NULL);
    return (config_lr_kind)(kind + 1);
}

/* A number that the kind has a default of its own for. */
static sifr_status config_default_number(sifr_config *config, const char *path, double value,
                                         sifr_error *error) {
    if (config_setting_at(config, path)->value) return SIFR_OK;
    return config_setting_put(config, path, json_real(value), error, "default");
}

/* min_lr or min_lr_rate, not both. */
static sifr_status config_resolve_least(const sifr_config *config, const char *type,
                                        sifr_error *error) {
    static const char *const rate = "scheduler.params.min_lr";
    static const char *const share = "scheduler.params.min_lr_rate";
    const json_t *least = config_setting_at(config, rate)->value;
    bool both = least && config_setting_at(config, share)->value;
    bool none = !least && !config_setting_at(config, share)->value;
    double lr = config_setting_number(config, CONFIG_LR);
    char where[300];
    if (both || none)
        return base_fail(error, SIFR_USAGE, "%s needs %s of %s, a rate, and %s, a share; give one",
                         type, both ? "only one" : "one", rate, share);
    if (least && json_number_value(least) > lr)
        return base_fail(error, SIFR_USAGE,
                         "%s is %g, more than the learning rate %g; give a lower one",
                         config_path_where(config, rate, where), json_number_value(least), lr);
    return SIFR_OK;
}

static sifr_status config_resolve_end(const sifr_config *config, sifr_error *error) {
    static const char *const path = "scheduler.params.lr_end";
    double end = config_setting_number(config, path), lr = config_setting_number(config, CONFIG_LR);
    char where[300];
    if (end < lr) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is %g, which must be below the learning rate %g; give a lower one",
                     config_path_where(config, path, where), end, lr);
}

/* The forms of both slopes of warmup_stable_decay; DeepSpeed's kinds have forms of their own. */
static sifr_status config_resolve_slopes(sifr_config *config, config_lr_kind kind, const char *type,
                                         sifr_error *error) {
    static const char *const path = "scheduler.params.warmup_type";
    static const char *const decay = "scheduler.params.num_decay_steps";
    bool stable = kind == CONFIG_LR_TRAINER_STABLE_DECAY;
    const config_setting *form = config_setting_at(config, path);
    if (stable && !config_setting_at(config, decay)->value)
        return base_fail(error, SIFR_USAGE, "%s is missing: %s needs it; give a number of steps",
                         decay, type);
    if (stable && !config_setting_given(config, path))
        return config_setting_put(config, path, json_string("linear"), error, "default");
    const char *words = stable ? "linear|cosine|1-sqrt" : "log|linear";
    char where[300];
    if (!form->value || config_key_has_word(words, json_string_value(form->value), NULL, NULL))
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s is \"%s\", which %s does not have; its kinds are %s",
                     config_path_where(config, path, where), json_string_value(form->value), type,
                     stable ? "linear, cosine and 1-sqrt" : "log and linear");
}

static sifr_status config_resolve_trainer(sifr_config *config, config_lr_kind kind,
                                          const char *type, sifr_error *error) {
    static const char *const cycles = "scheduler.params.num_cycles";
    char where[300];
    bool restarts = kind == CONFIG_LR_TRAINER_RESTARTS;
    BASE_TRY(config_default_number(config, cycles, restarts ? 1 : 0.5, error));
    BASE_TRY(config_default_number(config, CONFIG_TRAINER_WARM, 0, error));
    if (kind == CONFIG_LR_TRAINER_MIN_LR || kind == CONFIG_LR_TRAINER_WARMUP_MIN_LR)
        BASE_TRY(config_resolve_least(config, type, error));
    if (kind == CONFIG_LR_TRAINER_POLYNOMIAL) BASE_TRY(config_resolve_end(config, error));
    if (kind == CONFIG_LR_TRAINER_CONSTANT && config_warmup_giver(config, where))
        for (int i = 0; i < 2; i++)
            snprintf(config_setting_at(config, i ? "sifr.warmup_ratio" : "sifr.warmup_steps")->note,
                     CONFIG_NOTE,
                     "no effect, constant has no warm-up; constant_with_warmup has one");
    const json_t *steps = config_setting_at(config, "sifr.max_steps")->value;
    if (!config_setting_at(config, CONFIG_RUN)->value && steps)
        return config_setting_put(config, CONFIG_RUN, json_incref((json_t *)steps), error,
                                  "the steps of the run");
    return SIFR_OK;
}

/* A warm-up that the schedule does not have. */
static sifr_status config_check_warmup(const sifr_config *config, config_lr_kind kind,
                                       sifr_error *error) {
    char where[300];
    const char *giver = config_warmup_giver(config, where);
    if (!giver || config_lr_is_trainer(kind)) return SIFR_OK;
    if (kind == CONFIG_LR_CONSTANT)
        return base_fail(error, SIFR_USAGE,
                         "%s is given without a schedule; give sifr.lr_scheduler_type, such as "
                         "\"linear\"",
                         giver);
    if (kind != CONFIG_LR_ONE_CYCLE && kind != CONFIG_LR_RANGE_TEST) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s would have no effect: %s has no warm-up; leave it out",
                     giver, json_string_value(config_setting_at(config, "scheduler.type")->value));
}

sifr_status config_resolve_scheduler(sifr_config *config, sifr_error *error) {
    config_lr_kind kind = config_scheduler_kind(config);
    const json_t *type = config_setting_at(config, "scheduler.type")->value;
    bool own_rates = kind == CONFIG_LR_ONE_CYCLE || kind == CONFIG_LR_RANGE_TEST;
    if (own_rates && config_setting_given(config, "sifr.learning_rate")) {
        size_t index;
        char where[300];
        config_key_find("sifr.learning_rate", &index);
        return base_fail(
            error, SIFR_USAGE, "%s would have no effect: %s has rates of its own; leave it out",
            config_setting_where(config, index, where, sizeof where), json_string_value(type));
    }
    BASE_TRY(config_check_warmup(config, kind, error));
    if (type) BASE_TRY(config_resolve_slopes(config, kind, json_string_value(type), error));
    if (config_lr_is_trainer(kind))
        return config_resolve_trainer(config, kind, json_string_value(type), error);
    if (kind >= CONFIG_LR_WARMUP && kind <= CONFIG_LR_WARMUP_COSINE) {
        BASE_TRY(config_resolve_warmup(config, kind, error));
    }
    if (kind == CONFIG_LR_WARMUP_DECAY || kind == CONFIG_LR_WARMUP_COSINE) {
        BASE_TRY(config_resolve_total(config, json_string_value(type), error));
    }
    if (kind == CONFIG_LR_ONE_CYCLE) BASE_TRY(config_resolve_cycle(config, error));
    config_setting *lr = config_setting_at(config, CONFIG_LR);
    bool unused = own_rates || kind == CONFIG_LR_WARMUP_DECAY || kind == CONFIG_LR_WARMUP;
    if (unused && config_setting_given(config, CONFIG_LR) &&
        (own_rates ||
         config_setting_number(config, CONFIG_MAX_LR) != json_number_value(lr->value))) {
        snprintf(lr->note, CONFIG_NOTE, "no effect, scheduler.type %s sets the rate",
                 json_string_value(type));
    }
    return SIFR_OK;
}

/* What of a schedule follows from the run's length, once that is known. */
static sifr_status config_settle_trainer(sifr_config *config, sifr_error *error) {
    config_lr_schedule *s = &config->schedule;
    if (!config_lr_is_trainer(s->kind) || s->total_num_steps == 0) return SIFR_OK;
    double share = config_setting_number(config, CONFIG_TRAINER_WARM);
    s->trainer_warmup = config_warmup_count(share, s->total_num_steps);
    if (!config_setting_at(config, "scheduler.params.num_stable_steps")->value)
        s->num_stable_steps =
            (double)s->total_num_steps - (double)s->trainer_warmup - (double)s->num_decay_steps;
    if (share <= 0 || share >= 1) return SIFR_OK;
    return config_setting_put(config, CONFIG_TRAINER_WARM, json_real((double)s->trainer_warmup),
                              error, "%g of the steps", share);
}

sifr_status config_fill_schedule(sifr_config *config, sifr_error *error) {
    config_lr_schedule *s = &config->schedule;
    s->kind = config_scheduler_kind(config);
    s->base_lr = config->lr;
    s->relative_step &= config->step.optimizer.type == SIFR_ADAFACTOR;
    double least = config_setting_number(config, "scheduler.params.min_lr");
    if (config_setting_at(config, "scheduler.params.min_lr")->value)
        s->min_lr_rate = s->base_lr > 0 ? least / s->base_lr : 0;
    if (!config_setting_at(config, "scheduler.params.warmup_lr_rate")->value)
        s->warmup_lr_rate = -1;
    s->num_stable_steps = (double)config_setting_int(config, "scheduler.params.num_stable_steps");
    const json_t *form = config_setting_at(config, "scheduler.params.decay_type")->value;
    int slope = 0;
    config_key_has_word("linear|cosine|1-sqrt", json_string_value(form), &slope, NULL);
    s->decay_type = (config_lr_slope)(slope + CONFIG_LR_LINEAR);
    return config_settle_trainer(config, error);
}

/* DeepSpeed lets the first beta grow without end after the cycle. */
static sifr_status check_momentum(const sifr_config *config, int64_t steps, sifr_error *error) {
    const config_lr_schedule *s = &config->schedule;
    double last = config_lr_beta1_at(s, steps - 2, 0);
    const char *range = config_key_find("optimizer.params.betas", NULL)->range;
    if (config_range_holds(range, last)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "scheduler.params.decay_mom_rate %g: the first beta grows to %.9g by step "
                     "%lld, the run's last, and must be at most %.9g; lower it, or run fewer steps",
                     s->decay_mom_rate, last, (long long)steps, config_range_of(range).high);
}

/* A warm-up of DeepSpeed's kinds that is a share of the run. */
static sifr_status config_settle_warmup(sifr_config *config, int64_t steps, sifr_error *error) {
    double share = config_setting_number(config, CONFIG_TRAINER_WARM);
    config_lr_kind kind = config->schedule.kind;
    bool warms = kind >= CONFIG_LR_WARMUP && kind <= CONFIG_LR_WARMUP_COSINE;
    if (!warms || config_setting_at(config, CONFIG_WARM)->value) return SIFR_OK;
    config->schedule.warmup_num_steps = config_warmup_count(share, steps);
    return config_setting_put(config, CONFIG_WARM, json_integer(config->schedule.warmup_num_steps),
                              error, "%g of the steps", share);
}

void config_note_length(sifr_config *config) {
    const config_lr_schedule *s = &config->schedule;
    if (s->total_num_steps == 0 || s->total_num_steps >= s->warmup_num_steps) return;
    if (config_lr_is_trainer(s->kind)) return;
    snprintf(config_setting_at(config, CONFIG_TOTAL)->note, CONFIG_NOTE,
             "less than warmup_num_steps %lld: the rate never reaches its top",
             (long long)s->warmup_num_steps);
}

sifr_status config_set_total_steps(sifr_config *config, int64_t steps, sifr_error *error) {
    config_lr_kind kind = config->schedule.kind;
    bool decays = kind == CONFIG_LR_WARMUP_DECAY || kind == CONFIG_LR_WARMUP_COSINE;
    bool trainer = config_lr_is_trainer(kind);
    BASE_TRY(check_momentum(config, steps, error));
    BASE_TRY(config_settle_warmup(config, steps, error));
    if ((!decays && !trainer) || config->schedule.total_num_steps > 0) return SIFR_OK;
    if (steps < 1) return base_fail(error, SIFR_USAGE, "the run has no steps");
    BASE_TRY(config_setting_put(config, trainer ? CONFIG_RUN : CONFIG_TOTAL, json_integer(steps),
                                error, "the steps of the run"));
    config->schedule.total_num_steps = steps;
    config_note_length(config);
    return config_settle_trainer(config, error);
}
