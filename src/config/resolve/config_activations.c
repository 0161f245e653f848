/* What is kept of activations: DeepSpeed's activation_checkpointing, "recompute" and
 * "activation_memory" together. */
#include <string.h>

#include "config/config_private.h"

#define ACTIVATIONS "activation_checkpointing."
#define RECOMPUTE "sifr.recompute"
#define MEMORY "sifr.activation_memory"

static bool is_recompute(const sifr_config *config, const char *word) {
    const json_t *value = config_setting_at(config, RECOMPUTE)->value;
    return strcmp(json_string_value(value), word) == 0;
}

/* DeepSpeed asserts both. */
static sifr_status check_contiguous(const sifr_config *config, sifr_error *error) {
    static const char *const path = ACTIVATIONS "contiguous_memory_optimization";
    char where[300];
    if (!config_is_true(config, path)) return SIFR_OK;
    if (!config_is_true(config, ACTIVATIONS "partition_activations"))
        return base_fail(error, SIFR_USAGE,
                         "%s is true without partition_activations, which DeepSpeed refuses, too; "
                         "set that to true, or leave this out",
                         config_path_where(config, path, where));
    if (!config_setting_given(config, ACTIVATIONS "number_checkpoints"))
        return base_fail(error, SIFR_USAGE,
                         "%s is true without number_checkpoints, which DeepSpeed refuses, too; "
                         "give the model's layers there, or leave this out",
                         config_path_where(config, path, where));
    return SIFR_OK;
}

/* A limit decides what is recomputed. */
static sifr_status take_memory(sifr_config *config, sifr_error *error) {
    const config_setting *recompute = config_setting_at(config, RECOMPUTE);
    char where[300];
    if (!config_setting_at(config, MEMORY)->given) return SIFR_OK;
    if (recompute->given && !config_setting_given(config, MEMORY)) return SIFR_OK; /* "auto" */
    if (recompute->given && !is_recompute(config, "auto"))
        return base_fail(error, SIFR_USAGE,
                         "%s would have no effect: recompute is \"%s\"; set that to \"auto\", or "
                         "leave one of them out",
                         config_path_where(config, MEMORY, where),
                         json_string_value(recompute->value));
    return config_setting_put(config, RECOMPUTE, json_string("auto"), error,
                              "from activation_memory");
}

static sifr_status check_tiles(const sifr_config *config, sifr_error *error) {
    static const char *const path = "sifr.tile_tokens";
    int64_t tokens = config_setting_int(config, path);
    char where[300];
    if (tokens % CONFIG_TOKEN_CHUNK == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is %lld: tiles are whole chunks of %d tokens, in which gradients are "
                     "added; give a multiple of that, or 0",
                     config_path_where(config, path, where), (long long)tokens, CONFIG_TOKEN_CHUNK);
}

static bool asks_for_recomputation(const sifr_config *config) {
    return config_is_true(config, ACTIVATIONS "partition_activations") ||
           config_is_true(config, ACTIVATIONS "cpu_checkpointing") ||
           config_is_true(config, ACTIVATIONS "contiguous_memory_optimization") ||
           config_setting_given(config, ACTIVATIONS "number_checkpoints");
}

sifr_status config_resolve_activations(sifr_config *config, sifr_error *error) {
    static const char *const count = ACTIVATIONS "number_checkpoints";
    char where[300];
    BASE_TRY(check_contiguous(config, error));
    BASE_TRY(take_memory(config, error));
    BASE_TRY(check_tiles(config, error));
    if (config_setting_given(config, count) && is_recompute(config, "auto"))
        return base_fail(error, SIFR_USAGE,
                         "%s would have no effect: with recompute \"auto\" the memory says what is "
                         "kept; leave one of them out",
                         config_path_where(config, count, where));
    bool open = !config_setting_at(config, RECOMPUTE)->given && is_recompute(config, "none");
    if (!open || !asks_for_recomputation(config)) return SIFR_OK;
    return config_setting_put(config, RECOMPUTE, json_string("unit"), error,
                              "from activation_checkpointing");
}
