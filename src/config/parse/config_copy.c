/* What a config was given, for a run of its own. */
#include <string.h>

#include "base/errors.h"
#include "config/config_private.h"

static sifr_status config_copy_setting(const config_setting *from, config_setting *to,
                                       sifr_error *error) {
    to->origin = from->origin;
    to->given = json_deep_copy(from->given);
    return from->given && !to->given ? base_fail_alloc(error, 64) : SIFR_OK;
}

sifr_status config_copy(const sifr_config *config, sifr_config *out, sifr_error *error) {
    BASE_TRY(config_create(out, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < config_key_count(); i++)
        status = config_copy_setting(&config->settings[i], &out->settings[i], error);
    out->ignored = json_deep_copy(config->ignored);
    out->loss = config->loss;
    out->loss_user = config->loss_user;
    out->name = config->name ? strdup(config->name) : NULL;
    bool whole = (out->name || !config->name) && (out->ignored || !config->ignored);
    if (status == SIFR_OK && !whole) status = base_fail_alloc(error, 64);
    if (status != SIFR_OK) config_free(out);
    return status;
}
