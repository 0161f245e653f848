/* The library's defaults: those of the config's keys, and what a config takes from its model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/inside.h"
#include "config/config.h"
#include "config/keys/config_keys.h"

/* A row's default is JSON: a number, true or false, or a word in quotes. It is read without a JSON
 * library, whose allocations could fail: sifr_settings_defaults cannot. */
static void put_default(sifr_settings *settings, const config_key *key) {
    char *field = (char *)settings + key->field - 1, word[64] = "";
    char *end;
    double number = strtod(key->fallback, NULL);
    int64_t integer = strtoll(key->fallback, &end, 10); /* all digits of the largest ones */
    if (*end) integer = (int64_t)number;
    int32_t narrow = (int32_t)integer;
    bool truth = strcmp(key->fallback, "true") == 0;
    int choice = 0;
    if (key->type == CONFIG_BOOL) memcpy(field, &truth, sizeof truth);
    if (key->type == CONFIG_NUMBER) memcpy(field, &number, sizeof number);
    if (key->type == CONFIG_INT || key->type == CONFIG_BYTES)
        memcpy(field, key->size == sizeof integer ? (void *)&integer : &narrow, key->size);
    if (key->type != CONFIG_CHOICE) return;
    strncat(word, key->fallback + 1, strcspn(key->fallback + 1, "\""));
    config_key_has_word(key->choices, word, &choice, NULL);
    memcpy(field, &choice, sizeof choice);
}

sifr_settings sifr_settings_defaults(void) {
    BASE_INSIDE;
    sifr_settings settings = {.micro_batch_size = 1,
                              .seq_length = 1024,
                              .gradient_accumulation_steps = 1,
                              .zero = {.overlap_comm = true,
                                       .reduce_bucket_size = SIFR_BY_UNITS,
                                       .max_live_parameters = SIFR_BY_UNITS}};
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        size_t at = key->field - 1;
        bool of_step = key->field && at < sizeof settings;
        if (of_step && key->fallback && key->status == CONFIG_BUILT) put_default(&settings, key);
    }
    const config_key *betas = config_key_find("optimizer.params.betas", NULL);
    sscanf(betas->fallback, "[%lf, %lf]", &settings.optimizer.beta1, &settings.optimizer.beta2);
    return settings;
}

_Static_assert(offsetof(sifr_config, step) == 0, "a row's field is an offset in sifr_settings");
