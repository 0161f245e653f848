/* sifr.context_parallel, or DeepSpeed's sequence_parallel_size: how many ranks share each sequence,
 * and so a batch. */
#include "config/config_private.h"

#define CONFIG_CONTEXTS "sifr.context_parallel.size"
#define CONFIG_ULYSSES "sequence_parallel_size"

/* The key that gives it; NULL: none gives more than one rank. */
const char *config_context_key(const sifr_config *config) {
    if (config_setting_int(config, CONFIG_CONTEXTS) > 1) return CONFIG_CONTEXTS;
    return config_setting_int(config, CONFIG_ULYSSES) > 1 ? CONFIG_ULYSSES : NULL;
}

bool config_opens_contexts(const sifr_config *config) {
    bool open = config_value_is_auto(config_setting_at(config, CONFIG_CONTEXTS)->given) ||
                config_value_is_auto(config_setting_at(config, CONFIG_ULYSSES)->given);
    return open && !config_context_key(config);
}

sifr_status config_resolve_contexts(sifr_config *config, int64_t *ranks, sifr_error *error) {
    const char *key = config_context_key(config);
    char where[300];
    if (!key) return SIFR_OK;
    int64_t size = config_setting_int(config, key), other;
    other = config_setting_int(config, CONFIG_ULYSSES);
    if (other > 1 && other != size)
        return base_fail(error, SIFR_USAGE, "%s is %lld and " CONFIG_ULYSSES " is %lld; give one",
                         config_path_where(config, key, where), (long long)size, (long long)other);
    *ranks /= size;
    return SIFR_OK;
}

int32_t config_context_ranks(const sifr_config *config) {
    const char *key = config_context_key(config);
    return key ? (int32_t)config_setting_int(config, key) : 1;
}

void config_settle_contexts(sifr_config *config) {
    config->step.mesh.context_size = config_context_ranks(config);
}
