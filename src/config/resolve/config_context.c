/* sifr.context_parallel, or DeepSpeed's sequence_parallel_size: how many ranks share each sequence,
 * and so a batch. */
#include "base/text.h"
#include "config/config_private.h"

#define CONFIG_CONTEXTS "sifr.context_parallel.size"
#define CONFIG_ULYSSES "sequence_parallel_size"

/* The key that gives it; NULL: none gives more than one rank. */
static const char *size_key(const sifr_config *config) {
    if (config_setting_int(config, CONFIG_CONTEXTS) > 1) return CONFIG_CONTEXTS;
    return config_setting_int(config, CONFIG_ULYSSES) > 1 ? CONFIG_ULYSSES : NULL;
}

bool config_opens_contexts(const sifr_config *config) {
    const json_t *given = config_setting_at(config, CONFIG_CONTEXTS)->given;
    return config_value_is_auto(given) && !size_key(config);
}

sifr_status config_resolve_contexts(sifr_config *config, int64_t *ranks, sifr_error *error) {
    const char *key = size_key(config);
    char where[300], divisors[256];
    if (!key) return SIFR_OK;
    int64_t size = config_setting_int(config, key), other;
    other = config_setting_int(config, CONFIG_ULYSSES);
    if (other > 1 && other != size)
        return base_fail(error, SIFR_USAGE, "%s is %lld and " CONFIG_ULYSSES " is %lld; give one",
                         config_path_where(config, key, where), (long long)size, (long long)other);
    base_format_divisors(*ranks, divisors, sizeof divisors);
    if (*ranks % size)
        return base_fail(error, SIFR_USAGE, "%s is %lld, which does not divide %lld rank%s; %s%s",
                         config_path_where(config, key, where), (long long)size, (long long)*ranks,
                         *ranks == 1 ? "" : "s",
                         *ranks == 1 ? "leave it out, or start more ranks" : "give ",
                         *ranks == 1 ? "" : divisors);
    *ranks /= size;
    return SIFR_OK;
}

int32_t config_context_ranks(const sifr_config *config) {
    const char *key = size_key(config);
    return key ? (int32_t)config_setting_int(config, key) : 1;
}

void config_settle_contexts(sifr_config *config) {
    config->step.mesh.context_size = config_context_ranks(config);
}
