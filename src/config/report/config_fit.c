/* What `sifr plan --fit` may choose of a config: the keys whose rows say so. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

static config_fit_kind kind_of(const config_key *key) {
    switch (key->type) {
    case CONFIG_INT:
        return CONFIG_FIT_COUNT;
    case CONFIG_BYTES:
        return CONFIG_FIT_BYTES;
    case CONFIG_BOOL:
        return CONFIG_FIT_SWITCH;
    default:
        return config_key_has_word(key->choices, "nvme", NULL, NULL) ? CONFIG_FIT_TIER
                                                                     : CONFIG_FIT_WORD;
    }
}

/* A tier's directory is a key beside "device", or that of "sifr". */
static void name_directory(const config_key *key, char out[96]) {
    size_t section = (size_t)(config_key_leaf(key) - key->path);
    snprintf(out, 96, "%.*snvme_path", (int)section, key->path);
}

bool config_fit_of(const char *path, config_fit *out) {
    const config_key *key = config_key_find(path, NULL);
    if (!key || !key->fit) return false;
    *out = (config_fit){.name = key->fit, .says = key->says, .kind = kind_of(key)};
    if (out->kind == CONFIG_FIT_TIER) name_directory(key, out->directory);
    return true;
}

const char *config_fit_at(size_t index) {
    for (size_t i = 0; i < config_key_count(); i++) {
        if (config_key_at(i)->fit && index-- == 0) return config_key_at(i)->path;
    }
    return NULL;
}

sifr_status config_choose(sifr_config *config, const char *path, const char *text,
                          sifr_error *error) {
    BASE_TRY(config_set(config, path, text, error));
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        if (key->over && strcmp(key->over, path) == 0)
            BASE_TRY(config_set(config, key->path, text, error));
    }
    return SIFR_OK;
}
