/* From settings to the fields of sifr_config: "auto", defaults, what one key says for another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "config/config_private.h"

/* Once for each config. */
static sifr_status config_take_notes(sifr_config *config, sifr_error *error) {
    size_t count = config_key_count() + 1;
    if (config->notes) return SIFR_OK;
    BASE_TRY(base_alloc(count, CONFIG_NOTE, &config->notes, error));
    for (size_t i = 0; i < count; i++) config->settings[i].note = config->notes + i * CONFIG_NOTE;
    return SIFR_OK;
}

/* Each value as given, else the table's default. */
static void config_take_given(sifr_config *config) {
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        config_setting *setting = &config->settings[i];
        json_decref(setting->value);
        setting->value = NULL;
        setting->note[0] = 0;
        if (key->type == CONFIG_SECTION || key->status == CONFIG_ALIAS) continue;
        bool own_auto = key->choices && config_key_has_word(key->choices, "auto", NULL, NULL);
        if (setting->given &&
            (own_auto || key->type == CONFIG_TEXT || !config_value_is_auto(setting->given))) {
            setting->value = json_incref(setting->given);
        } else {
            setting->value = config_value_default(key);
            snprintf(setting->note, CONFIG_NOTE, "default");
        }
    }
}

/* As in the Trainer: warmup_steps counts before warmup_ratio, unless it is 0. */
static bool config_is_outranked(const sifr_config *config, const config_key *key) {
    const json_t *steps = config_setting_at(config, "sifr.warmup_steps")->given;
    const json_t *ratio = config_setting_at(config, "sifr.warmup_ratio")->given;
    bool by_ratio = json_is_number(ratio) && json_number_value(steps) == 0;
    if (strcmp(key->path, "sifr.warmup_ratio") == 0) return json_number_value(steps) > 0;
    return strcmp(key->path, "sifr.warmup_steps") == 0 && by_ratio;
}

/* Keys of "sifr" and flags that give a value to a key of DeepSpeed. */
static sifr_status config_take_over(sifr_config *config, sifr_error *error) {
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        const config_setting *from = &config->settings[i];
        if (!key->over || !from->given || config_value_is_auto(from->given)) continue;
        if (config_is_outranked(config, key)) continue;
        size_t index;
        config_key_find(key->over, &index);
        const config_setting *to = &config->settings[index];
        bool explicit = to->given && !config_value_is_auto(to->given);
        if (explicit && to->origin == CONFIG_FROM_FLAG && from->origin == CONFIG_FROM_FILE)
            continue;
        char where[300], mine[64], theirs[64];
        config_setting_where(config, i, where, sizeof where);
        if (explicit && from->origin == to->origin && !config_value_equal(from->given, to->given)) {
            return base_fail(error, SIFR_USAGE, "%s is %s, but %s is %s; leave one of them out",
                             where, config_value_text(from->given, mine, sizeof mine), key->over,
                             config_value_text(to->given, theirs, sizeof theirs));
        }
        char flag[64];
        bool named = from->origin == CONFIG_FROM_FLAG && config_key_flag_name(key, flag);
        BASE_TRY(config_setting_put(config, key->over, json_incref(from->given), error, "from %s%s",
                                    named ? "--" : "", named ? flag : key->path));
    }
    return SIFR_OK;
}

/* A parameter that the chosen type of optimizer or scheduler does not have. */
static sifr_status config_check_parameters(const sifr_config *config, sifr_error *error) {
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        if (!config->settings[i].given || config_setting_applies(config, i)) continue;
        char where[300], kinds[200];
        config_setting_where(config, i, where, sizeof where);
        size_t used = 0;
        for (const char *c = key->only ? key->only : ""; *c && used < sizeof kinds - 4; c++) {
            used +=
                (size_t)snprintf(kinds + used, sizeof kinds - used, *c == '|' ? ", " : "%c", *c);
        }
        kinds[used] = 0;
        bool scheduler = strncmp(key->path, "scheduler.", 10) == 0;
        const json_t *type =
            config_setting_at(config, scheduler ? "scheduler.type" : "optimizer.type")->value;
        if (!type) {
            return base_fail(error, SIFR_USAGE,
                             "%s is given without scheduler.type; add the type (%s%s)", where,
                             used ? "one of "
                                  : "WarmupLR, WarmupDecayLR, WarmupCosineLR, "
                                    "OneCycle, LRRangeTest or one of the Trainer's",
                             kinds);
        }
        return base_fail(error, SIFR_USAGE, "%s is no parameter of %s; %s of: %s", where,
                         json_string_value(type), "leave it out, it is one", kinds);
    }
    return SIFR_OK;
}

static sifr_status config_check_loss_scale(const sifr_config *config, sifr_error *error) {
    size_t index;
    char where[300], text[64];
    double fixed = config_setting_number(config, "fp16.loss_scale");
    const char *path = fixed > 0 ? "fp16.loss_scale" : "fp16.initial_scale_power";
    double value = fixed > 0 ? fixed : (double)config_setting_int(config, path);
    const config_key *key = config_key_find(path, &index);
    bool small = key->least && fixed > 0 && value < strtod(key->least, NULL);
    if (!small && value <= strtod(key->most, NULL)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s is %s; the %s loss scale is 2^%s%s",
                     config_setting_where(config, index, where, sizeof where),
                     config_value_text(config_setting_at(config, path)->value, text, sizeof text),
                     small ? "smallest" : "largest", small ? "-" : "",
                     config_key_find("fp16.initial_scale_power", NULL)->most);
}

/* bf16, fp16 or neither, and what else says so. */
static sifr_status config_resolve_precision(const sifr_config *config, sifr_error *error) {
    bool bf16 = config_is_true(config, "bf16.enabled");
    bool fp16 = config_is_true(config, "fp16.enabled");
    if (bf16 && fp16) {
        char one[300], other[300];
        size_t first, second;
        config_key_find("fp16.enabled", &first);
        config_key_find("bf16.enabled", &second);
        return base_fail(error, SIFR_USAGE, "%s and %s are both true; switch one of them off",
                         config_setting_where(config, first, one, sizeof one),
                         config_setting_where(config, second, other, sizeof other));
    }
    if (fp16) BASE_TRY(config_check_loss_scale(config, error));
    const json_t *type = config_setting_at(config, "data_types.param_dtype")->value;
    const char *mode = fp16 ? "fp16" : bf16 ? "bf16" : "fp32";
    if (!type || strcmp(json_string_value(type), mode) == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "data_types.param_dtype is %s, but %s.enabled %s means %s; leave param_dtype "
                     "out, or change %s.enabled",
                     json_string_value(type), fp16 ? "fp16" : "bf16",
                     fp16 || bf16 ? "true" : "false", mode, fp16 ? "fp16" : "bf16");
}

static bool config_has_word(const sifr_config *config, const char *path, const char *word) {
    const json_t *value = config_setting_at(config, path)->value;
    return value && strcmp(json_string_value(value), word) == 0;
}

/* Sums of gradients in 16 bits are sent as they are. */
static sifr_status config_resolve_gradients(sifr_config *config, sifr_error *error) {
    static const char *const path = "data_types.grad_accum_dtype";
    static const char *const sent_as = "communication_data_type";
    static const char *const masters = "bf16.bf16_master_weights_and_grads";
    bool bf16 = config_is_true(config, "bf16.enabled");
    bool fp16 = config_is_true(config, "fp16.enabled");
    const char *mode = fp16 ? "fp16" : bf16 ? "bf16" : "fp32";
    size_t index;
    char where[300];
    if (bf16 && config_is_true(config, masters)) {
        if (!config_setting_given(config, path))
            BASE_TRY(
                config_setting_put(config, path, json_string("bf16"), error, "from %s", masters));
        config_key_find(masters, &index);
        if (!config_has_word(config, path, "bf16"))
            return base_fail(error, SIFR_USAGE,
                             "%s is true, which keeps gradients in bf16, but %s is %s; leave one "
                             "of them out",
                             config_setting_where(config, index, where, sizeof where), path,
                             json_string_value(config_setting_at(config, path)->value));
    }
    if (config_has_word(config, path, "fp32")) return SIFR_OK;
    config_key_find(path, &index);
    config_setting_where(config, index, where, sizeof where);
    if (!config_has_word(config, path, mode))
        return base_fail(error, SIFR_USAGE,
                         "%s is not the model's type, %s; sums of gradients are kept in that or in "
                         "fp32",
                         where, mode);
    if (config_setting_given(config, sent_as) && !config_has_word(config, sent_as, mode))
        return base_fail(error, SIFR_USAGE,
                         "%s is %s, and sums kept in 16 bits are sent in that type; leave "
                         "communication_data_type out",
                         where, mode);
    return config_setting_put(config, sent_as, json_string(mode), error, "as gradients are kept");
}

static sifr_status config_resolve_run(sifr_config *config, sifr_error *error) {
    config_setting *steps = config_setting_at(config, "sifr.max_steps");
    if (steps->value && json_integer_value(steps->value) == 0) {
        size_t index;
        char where[300];
        config_key_find("sifr.max_steps", &index);
        return base_fail(error, SIFR_USAGE,
                         "%s is 0; give at least 1, or -1 to let num_train_epochs count",
                         config_setting_where(config, index, where, sizeof where));
    }
    if (steps->value && json_integer_value(steps->value) < 0) {
        json_decref(steps->value);
        steps->value = NULL;
    }
    if (steps->value) {
        snprintf(config_setting_at(config, "sifr.num_train_epochs")->note, CONFIG_NOTE,
                 "no effect, max_steps counts");
    }
    BASE_TRY(config_resolve_precision(config, error));
    return config_resolve_gradients(config, error);
}

/* DeepSpeed overlaps at stage 3 unless told otherwise. */
static sifr_status config_resolve_zero(sifr_config *config, sifr_error *error) {
    if (config_setting_at(config, "zero_optimization.overlap_comm")->value) return SIFR_OK;
    bool overlap = config_setting_int(config, "zero_optimization.stage") == 3;
    return config_setting_put(config, "zero_optimization.overlap_comm", json_boolean(overlap),
                              error, "default at %s", overlap ? "stage 3" : "stages 0 to 2");
}

/* A whole number goes to a field of 4 or 8 bytes. */
static sifr_status config_fill_integer(const sifr_config *config, const config_key *key,
                                       void *field, int64_t value, sifr_error *error) {
    int32_t narrow = (int32_t)value;
    char where[300];
    if (key->size == sizeof value) {
        memcpy(field, &value, sizeof value);
        return SIFR_OK;
    }
    if (value < 0 || value > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "%s is %lld; the most that is supported is %d",
                         config_path_where(config, key->path, where), (long long)value, INT32_MAX);
    memcpy(field, &narrow, sizeof narrow);
    return SIFR_OK;
}

/* The typed field that a row's value goes to. */
static sifr_status config_fill_field(sifr_config *config, const config_key *key,
                                     const json_t *value, sifr_error *error) {
    void *field = (char *)config + key->field - 1;
    int choice = 0;
    int64_t integer = (int64_t)json_integer_value(value);
    double number = json_number_value(value);
    bool truth = json_is_true(value);
    const char *text = json_string_value(value);
    switch (key->type) {
    case CONFIG_BOOL:
        memcpy(field, &truth, sizeof truth);
        break;
    case CONFIG_INT:
    case CONFIG_BYTES:
        return config_fill_integer(config, key, field, integer, error);
    case CONFIG_NUMBER:
        memcpy(field, &number, sizeof number);
        break;
    case CONFIG_TEXT:
        memcpy(field, &text, sizeof text);
        break;
    case CONFIG_CHOICE:
        config_key_has_word(key->choices, text, &choice, NULL);
        if (!choice) text = NULL;
        if (key->size == sizeof text)
            memcpy(field, &text, sizeof text);
        else
            memcpy(field, &choice, sizeof choice);
        break;
    case CONFIG_SECTION:
    case CONFIG_TEXTS:
    case CONFIG_NUMBERS:
    case CONFIG_ANY:
        break;
    }
    return SIFR_OK;
}

_Static_assert(sizeof(sifr_optimizer_type) == sizeof(int), "a choice is stored as an int");

/* The texts of a list; *list is the array that holds them, freed here when it is made anew. */
static sifr_status config_fill_texts(const sifr_config *config, const char *path,
                                     const char ***list, size_t *count, sifr_error *error) {
    const json_t *texts = config_setting_at(config, path)->value;
    *count = json_array_size(texts);
    free(*list);
    *list = NULL;
    BASE_TRY(base_alloc(*count, sizeof **list, list, error));
    for (size_t i = 0; i < *count; i++) (*list)[i] = json_string_value(json_array_get(texts, i));
    return SIFR_OK;
}

/* A value that others read; NULL where it is absent. */
static const json_t *config_fill_object(const sifr_config *config, const char *path) {
    const json_t *value = config_setting_at(config, path)->value;
    return json_is_null(value) ? NULL : value;
}

static sifr_status config_fill_variables(sifr_config *config, sifr_error *error) {
    static const char path[] = "sifr.chat_template_kwargs";
    char where[300];
    const json_t *value = config_fill_object(config, path);
    config->chat_template_kwargs = value;
    if (!value || json_is_object(value)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s must be an object such as {\"enable_thinking\": false}",
                     config_path_where(config, path, where));
}

static sifr_status config_fill_lists(sifr_config *config, sifr_error *error) {
    BASE_TRY(
        config_fill_texts(config, "sifr.data", &config->data_list, &config->data_count, error));
    BASE_TRY(config_fill_texts(config, "sifr.freeze", &config->freeze_list, &config->freeze_count,
                               error));
    BASE_TRY(
        config_fill_texts(config, "sifr.labels", &config->label_list, &config->label_count, error));
    BASE_TRY(config_fill_turns(config, error));
    BASE_TRY(config_fill_dataset(config, error));
    BASE_TRY(config_check_turns(config, error));
    BASE_TRY(config_fill_data_fields(config, error));
    BASE_TRY(config_fill_variables(config, error));
    config->lora = config_fill_object(config, "sifr.lora");
    config->quantization = config_fill_object(config, "sifr.quantization");
    config->data = config->data_list;
    config->labels = config->label_list;
    config->freeze = config->freeze_list;
    return SIFR_OK;
}

static sifr_status config_fill(sifr_config *config, int64_t world_size, sifr_error *error) {
    sifr_config kept = *config;
    memset(config, 0, sizeof *config);
    config->settings = kept.settings;
    config->notes = kept.notes;
    config->ignored = kept.ignored;
    config->name = kept.name;
    config->loss = kept.loss;
    config->loss_user = kept.loss_user;
    config->data_list = kept.data_list;
    config->source_list = kept.source_list;
    config->fields_made = kept.fields_made;
    config->group_list = kept.group_list;
    config->freeze_list = kept.freeze_list;
    config->label_list = kept.label_list;
    config->world_size = world_size;
    config->step.zero.reduce_bucket_size = SIFR_BY_UNITS;
    config->step.zero.max_live_parameters = SIFR_BY_UNITS;
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        if (key->field && config->settings[i].value) {
            BASE_TRY(config_fill_field(config, key, config->settings[i].value, error));
        }
    }
    BASE_TRY(config_fill_lists(config, error));
    const json_t *betas = config_setting_at(config, "optimizer.params.betas")->value;
    config->step.optimizer.beta1 = json_number_value(json_array_get(betas, 0));
    config->step.optimizer.beta2 = json_number_value(json_array_get(betas, 1));
    const json_t *momentum = config_setting_at(config, "optimizer.params.beta1")->value;
    config->step.optimizer.has_momentum = json_is_number(momentum);
    if (json_is_number(momentum)) config->step.optimizer.beta1 = json_number_value(momentum);
    if (config->step.optimizer.type == SIFR_ADAMW) config->step.optimizer.decoupled = true;
    bool bf16 = config_is_true(config, "bf16.enabled");
    bool fp16 = config_is_true(config, "fp16.enabled");
    config->step.precision = fp16 ? SIFR_FP16 : bf16 ? SIFR_BF16 : SIFR_FP32;
    config->step.bf16_master_weights &= bf16;
    config->step.bf16_optimizer_states &= bf16;
    config->activations.partition_activations = config->step.partition_activations;
    config->activations.cpu_checkpointing =
        config_is_true(config, "activation_checkpointing.cpu_checkpointing");
    BASE_TRY(config_fill_schedule(config, error));
    BASE_TRY(config_fill_groups(config, error));
    config->resolved = true;
    return SIFR_OK;
}

static void config_note_fixed_scale(sifr_config *config) {
    static const char *const dynamic[] = {"fp16.initial_scale_power", "fp16.loss_scale_window",
                                          "fp16.hysteresis", "fp16.consecutive_hysteresis",
                                          "fp16.min_loss_scale"};
    for (size_t i = 0; i < sizeof dynamic / sizeof *dynamic; i++) {
        snprintf(config_setting_at(config, dynamic[i])->note, CONFIG_NOTE,
                 "no effect, loss_scale is fixed");
    }
}

/* Notes on values that are right and yet surprise people. */
static void config_note_surprises(sifr_config *config) {
    bool fp16 = config->step.precision == SIFR_FP16;
    if (fp16 && config->step.fp16.loss_scale > 0) config_note_fixed_scale(config);
    if (config->step.optimizer.type == SIFR_ADAMW &&
        config_setting_given(config, "optimizer.params.adam_w_mode")) {
        snprintf(config_setting_at(config, "optimizer.params.adam_w_mode")->note, CONFIG_NOTE,
                 "no effect, the type is AdamW");
    }
    if (config->step.zero.stage > 0 && config->world_size == 1 &&
        !config_moves_parameters(config)) {
        snprintf(config_setting_at(config, "zero_optimization.stage")->note, CONFIG_NOTE,
                 "no effect with one rank");
    }
    if (config->step.zero.stage == 3 && !config->step.zero.overlap_comm &&
        config_setting_given(config, "zero_optimization.stage3_prefetch_bucket_size")) {
        snprintf(config_setting_at(config, "zero_optimization.stage3_prefetch_bucket_size")->note,
                 CONFIG_NOTE, "no effect, overlap_comm is false");
    }
    config_note_offload(config);
    config_note_length(config);
}

/* What keys say together, once the notes on each are written. */
static void config_settle(sifr_config *config) {
    sifr_settings *step = &config->step;
    config_settle_pipeline(config);
    config_settle_tensors(config);
    config_settle_contexts(config);
    config_note_mesh(config);
    config_settle_compression(config);
    step->mesh.shard_size = config_shard_size(config);
    if (config->activations.cpu_checkpointing && step->offload.activations == SIFR_TIER_NONE)
        step->offload.activations = SIFR_TIER_CPU;
    if (step->recompute != SIFR_RECOMPUTE_UNIT) step->number_checkpoints = 0;
    step->offload.nvme_path = config_nvme_path(config);
}

/* The effective config of a run with a loss of the caller's says so: it does not repeat the run
 * without. */
static sifr_status config_resolve_loss(sifr_config *config, sifr_error *error) {
    static const char memory[] = "sifr.own_loss.memory";
    if (!config->loss || config_setting_given(config, memory)) return SIFR_OK;
    return config_setting_put(config, memory, json_integer(SIFR_OWN_LOSS_MEMORY), error,
                              "the program has a loss of its own");
}

sifr_status config_resolve(sifr_config *config, int64_t world_size, sifr_error *error) {
    int64_t data_ranks;
    config->resolved = false;
    if (world_size < 1) return base_fail(error, SIFR_USAGE, "a run needs at least 1 rank");
    BASE_TRY(config_take_notes(config, error));
    config_take_given(config);
    BASE_TRY(config_verify(config, error));
    BASE_TRY(config_take_over(config, error));
    BASE_TRY(config_check_parameters(config, error));
    BASE_TRY(config_resolve_run(config, error));
    BASE_TRY(config_resolve_loss(config, error));
    BASE_TRY(config_resolve_zero(config, error));
    BASE_TRY(config_resolve_offload(config, world_size, error));
    BASE_TRY(config_resolve_activations(config, error));
    BASE_TRY(config_resolve_optimizer(config, error));
    BASE_TRY(config_resolve_scheduler(config, error));
    BASE_TRY(config_resolve_pipeline(config, world_size, &data_ranks, error));
    BASE_TRY(config_resolve_tensors(config, &data_ranks, error));
    BASE_TRY(config_resolve_contexts(config, &data_ranks, error));
    BASE_TRY(config_check_ranks(config, world_size, error));
    BASE_TRY(config_resolve_mesh(config, world_size, data_ranks, error));
    BASE_TRY(config_resolve_compression(config, error));
    BASE_TRY(config_resolve_batch(config, data_ranks, error));
    BASE_TRY(config_fill(config, world_size, error));
    BASE_TRY(config_resolve_profile(config, error));
    config_note_surprises(config);
    config_settle(config);
    return SIFR_OK;
}
