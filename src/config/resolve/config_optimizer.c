/* The "optimizer" section: what single types have as defaults, and what they do not go with. */
#include <string.h>

#include "config/config_private.h"

#define CONFIG_FREE "AdamWScheduleFree"
#define CONFIG_MUON "Muon"
#define CONFIG_FACTOR "Adafactor"

static bool config_section_given(const sifr_config *config, const char *prefix) {
    for (size_t i = 0; i < config_key_count(); i++) {
        if (config->settings[i].given &&
            strncmp(config_key_at(i)->path, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

static bool config_has_type(const sifr_config *config, const char *section, const char *type) {
    const json_t *value = config_setting_at(config, section)->value;
    return value && strcmp(json_string_value(value), type) == 0;
}

/* Defaults of single types, as their libraries have them. */
static sifr_status config_type_defaults(sifr_config *config, sifr_error *error) {
    static const struct {
        const char *type, *path, *value;
    } defaults[] = {{"Adagrad", CONFIG_LR, "0.01"},
                    {"Adagrad", "optimizer.params.eps", "1e-10"},
                    {"Lion", "optimizer.params.betas", "[0.9, 0.99]"},
                    {CONFIG_FREE, CONFIG_LR, "0.0025"},
                    {"AdamW8bit", "optimizer.params.weight_decay", "0.01"},
                    {CONFIG_FACTOR, "optimizer.params.eps", "1e-30"},
                    {CONFIG_MUON, "optimizer.params.adam_lr", "3e-4"},
                    {CONFIG_MUON, CONFIG_LR, "0.02"},
                    {CONFIG_MUON, "optimizer.params.momentum", "0.95"},
                    {CONFIG_MUON, "optimizer.params.betas", "[0.9, 0.95]"},
                    {CONFIG_MUON, "optimizer.params.eps", "1e-10"}};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        const char *type = defaults[i].type, *path = defaults[i].path;
        bool rate = (strcmp(path, CONFIG_LR) == 0 || strstr(path, "adam_lr")) &&
                    (config_setting_given(config, "sifr.learning_rate") ||
                     config_setting_at(config, CONFIG_LR)->given);
        if (!config_has_type(config, "optimizer.type", type) || rate ||
            config_setting_given(config, path))
            continue;
        BASE_TRY(config_setting_put(config, path,
                                    json_loads(defaults[i].value, JSON_DECODE_ANY, NULL), error,
                                    "default of %s", type));
    }
    return SIFR_OK;
}

bool config_trains_average(const sifr_config *config) {
    return config_has_type(config, "optimizer.type", CONFIG_FREE);
}

static sifr_status config_check_free(const sifr_config *config, sifr_error *error) {
    bool cycles = config_has_type(config, "scheduler.type", "OneCycle") &&
                  config_is_true(config, "scheduler.params.cycle_momentum");
    if (!cycles || !config_trains_average(config)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "scheduler.params.cycle_momentum is true, and the weights that "
                     "AdamWScheduleFree trains follow from its first beta, which cannot "
                     "change; set it to false");
}

static sifr_status config_check_nesterov(const sifr_config *config, sifr_error *error) {
    char where[300];
    bool momentum = config_setting_number(config, "optimizer.params.momentum") > 0;
    bool fits = momentum && config_setting_number(config, "optimizer.params.dampening") == 0;
    if (fits || !config_is_true(config, "optimizer.params.nesterov")) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is true: Nesterov's momentum takes optimizer.params.momentum above 0 and "
                     "a dampening of 0, as in PyTorch",
                     config_path_where(config, "optimizer.params.nesterov", where));
}

static sifr_status config_check_8bit(const sifr_config *config, sifr_error *error) {
    static const char *const path = "bf16.bf16_optimizer_states";
    char where[300];
    bool coded = config_has_type(config, "optimizer.type", "Adam8bit") ||
                 config_has_type(config, "optimizer.type", "AdamW8bit");
    if (!coded || !config_is_true(config, path)) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "%s is true, and 8-bit Adam keeps its states in types of its own; leave it out",
        config_path_where(config, path, where));
}

/* DeepSpeed has the key for these too, and only false for it. */
static sifr_status config_check_amsgrad(const sifr_config *config, sifr_error *error) {
    static const char *const types[] = {"Lamb", "Adagrad"};
    static const char *const path = "optimizer.params.amsgrad";
    char where[300];
    for (size_t i = 0; config_is_true(config, path) && i < 2; i++)
        if (config_has_type(config, "optimizer.type", types[i]))
            return base_fail(error, SIFR_USAGE,
                             "%s is true, and %s has no AMSGrad variant; leave it out",
                             config_path_where(config, path, where), types[i]);
    return SIFR_OK;
}

static sifr_status config_check_lamb(const sifr_config *config, sifr_error *error) {
    static const char *const least = "optimizer.params.min_coeff";
    static const char *const most = "optimizer.params.max_coeff";
    char where[300];
    double min = config_setting_number(config, least), max = config_setting_number(config, most);
    if (!config_has_type(config, "optimizer.type", "Lamb") || min <= max) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s is %g, above max_coeff %g; give a smaller one",
                     config_path_where(config, least, where), min, max);
}

/* What transformers' Adafactor raises on, and a scheduler, which it does not see. */
static sifr_status config_check_factor(const sifr_config *config, sifr_error *error) {
    static const char *const own[] = {CONFIG_LR, "sifr.learning_rate", "scheduler.type"};
    static const char *const warms = "optimizer.params.warmup_init";
    static const char *const narrow = "bf16.bf16_optimizer_states";
    char where[300];
    bool relative = config_is_true(config, "optimizer.params.relative_step");
    if (!config_has_type(config, "optimizer.type", CONFIG_FACTOR)) return SIFR_OK;
    for (size_t i = 0; relative && i < sizeof own / sizeof *own; i++)
        if (config_setting_given(config, own[i]))
            return base_fail(error, SIFR_USAGE,
                             "%s is given, and Adafactor's relative_step has rates of its own; set "
                             "optimizer.params.relative_step to false, or leave it out",
                             config_path_where(config, own[i], where));
    if (!relative && config_is_true(config, warms))
        return base_fail(error, SIFR_USAGE,
                         "%s is true, which is a part of relative_step; set "
                         "optimizer.params.relative_step to true, or leave it out",
                         config_path_where(config, warms, where));
    if (!config_is_true(config, narrow)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is true, and Adafactor keeps its states in fp32; leave it out",
                     config_path_where(config, narrow, where));
}

/* What has no average of its weights beside them. */
static sifr_status config_check_ema(const sifr_config *config, sifr_error *error) {
    static const char *const types[] = {"Adam8bit", "AdamW8bit", CONFIG_FREE, CONFIG_MUON};
    static const char *const adapters[] = {"sifr.lora", "sifr.adapter"};
    static const char *const path = "sifr.ema.decay";
    const char *beside = NULL;
    char where[300], text[64];
    if (!(config_setting_number(config, path) > 0)) return SIFR_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (config_has_type(config, "optimizer.type", types[i])) beside = types[i];
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++)
        if (config_setting_given(config, adapters[i])) beside = adapters[i];
    if (!beside) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is %s: an average of the weights is not supported yet with %s; leave one "
                     "of them out",
                     config_path_where(config, path, where),
                     config_value_text(config_setting_at(config, path)->value, text, sizeof text),
                     beside);
}

sifr_status config_resolve_optimizer(sifr_config *config, sifr_error *error) {
    BASE_TRY(config_type_defaults(config, error));
    BASE_TRY(config_check_free(config, error));
    BASE_TRY(config_check_nesterov(config, error));
    BASE_TRY(config_check_8bit(config, error));
    BASE_TRY(config_check_ema(config, error));
    BASE_TRY(config_check_amsgrad(config, error));
    BASE_TRY(config_check_lamb(config, error));
    BASE_TRY(config_check_factor(config, error));
    bool chosen = config_setting_given(config, CONFIG_LR) ||
                  config_setting_given(config, "sifr.learning_rate");
    bool automatic = config_setting_at(config, CONFIG_LR)->given != NULL;
    if (!chosen && (automatic || !config_section_given(config, "optimizer."))) {
        BASE_TRY(config_setting_put(config, CONFIG_LR, json_real(5e-5), error,
                                    "default of the Hugging Face Trainer"));
    }
    const json_t *betas = config_setting_at(config, "optimizer.params.betas")->value;
    if (json_array_size(betas) != 2) {
        return base_fail(error, SIFR_USAGE,
                         "optimizer.params.betas must be a list of two numbers, such as "
                         "[0.9, 0.999], not of %zu",
                         json_array_size(betas));
    }
    return SIFR_OK;
}
