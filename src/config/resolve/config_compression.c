/* The "compression" section: whether sums of gradients are compressed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"

static const char type[] = "compression.type", enabled[] = "compression.enabled";
static const char rank[] = "compression.params.matrix_approximation_rank";

static bool is_off(const sifr_config *config) {
    return config_setting_given(config, enabled) && !config_is_true(config, enabled);
}

/* A config that is written with all values must say that it is on, too. */
sifr_status config_resolve_compression(sifr_config *config, sifr_error *error) {
    const char *word = json_string_value(config_setting_at(config, type)->value);
    if (!word || strcmp(word, "none") == 0 || is_off(config)) return SIFR_OK;
    const char *most = config_key_find(rank, NULL)->most;
    char where[300];
    if (config_setting_int(config, rank) > strtoll(most, NULL, 10))
        return base_fail(error, SIFR_USAGE, "%s is %lld; give at most %s",
                         config_path_where(config, rank, where),
                         (long long)config_setting_int(config, rank), most);
    return config_setting_put(config, enabled, json_true(), error, "the type is given");
}

void config_settle_compression(sifr_config *config) {
    sifr_compression *c = &config->step.compression;
    if (c->type == SIFR_COMPRESSION_NONE) {
        if (config_is_true(config, enabled))
            snprintf(config_setting_at(config, enabled)->note, CONFIG_NOTE,
                     "no effect, compression.type says what is done; give \"powerSGD\"");
        return;
    }
    if (is_off(config)) {
        c->type = SIFR_COMPRESSION_NONE;
        snprintf(config_setting_at(config, type)->note, CONFIG_NOTE,
                 "no effect, since compression.enabled is false");
    } else if (config_data_ranks(config) * config->step.mesh.context_size == 1) {
        snprintf(config_setting_at(config, type)->note, CONFIG_NOTE, "no effect with one %srank",
                 config->world_size > 1 ? "data " : "");
    }
}
