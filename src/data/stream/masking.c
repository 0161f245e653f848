#include "data/stream/masking.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/random.h"
#include "text/tokenizer/tokenizer.h"

/* Distinguishes these random numbers from others with the same seed. */
static const uint64_t purpose = UINT64_C(0x6d61736b); /* "mask" */
static const uint64_t evaluation_seed = 0;

enum { SETTINGS_LIMIT = 64 << 20 };

/* The mask_token of tokenizer_config.json: a string, or an object with "content". */
static sifr_status find_named(const text_tokenizer *tokenizer, const char *folder, int32_t *out,
                              sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    json_t *settings;
    *out = -1;
    BASE_TRY(base_path_join(path, folder, "tokenizer_config.json", error));
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_json_load(path, SETTINGS_LIMIT, &settings, error));
    const json_t *token = json_object_get(settings, "mask_token");
    if (json_is_object(token)) token = json_object_get(token, "content");
    if (json_is_string(token)) *out = text_tokenizer_id(tokenizer, json_string_value(token));
    json_decref(settings);
    return SIFR_OK;
}

static sifr_status find_mask(const text_tokenizer *tokenizer, const char *folder, int32_t *out,
                             sifr_error *error) {
    static const char *const usual[] = {"[MASK]", "<mask>"};
    BASE_TRY(find_named(tokenizer, folder, out, error));
    for (size_t i = 0; *out < 0 && i < sizeof usual / sizeof *usual; i++)
        *out = text_tokenizer_id(tokenizer, usual[i]);
    if (*out >= 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: the tokenizer has no mask token ([MASK], or mask_token in "
                     "tokenizer_config.json), which masked_lm needs",
                     folder);
}

sifr_status data_masking_open(const char *folder, int64_t vocab_size, double probability,
                              data_masking *out, sifr_error *error) {
    text_tokenizer *tokenizer;
    *out = (data_masking){.probability = probability};
    BASE_TRY(text_tokenizer_load(folder, &tokenizer, error));
    out->words = text_tokenizer_vocab_size(tokenizer);
    if (out->words > vocab_size) out->words = vocab_size;
    sifr_status status = find_mask(tokenizer, folder, &out->mask, error);
    if (status == SIFR_OK && out->mask >= vocab_size)
        status = base_fail(error, SIFR_USAGE,
                           "%s: the mask token is %d, but the model has rows for only %lld", folder,
                           out->mask, (long long)vocab_size);
    if (status == SIFR_OK) status = base_alloc((size_t)out->words, 1, &out->special, error);
    for (int64_t i = 0; status == SIFR_OK && i < out->words; i++)
        out->special[i] = text_tokenizer_is_special(tokenizer, (int32_t)i);
    text_tokenizer_free(tokenizer);
    return status;
}

void data_masking_close(data_masking *masking) {
    free(masking->special);
    *masking = (data_masking){0};
}

uint64_t data_masking_key(uint64_t seed, int64_t sample) {
    return base_random_key(seed, (uint64_t)sample, purpose);
}

uint64_t data_masking_evaluation_key(int64_t window) {
    return base_random_key(evaluation_seed, (uint64_t)window, ~purpose);
}

/* In [0, 1), 53 bits. */
static double uniform(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

void data_masking_apply(const data_masking *masking, uint64_t key, int64_t count, int32_t *tokens,
                        int32_t *labels) {
    base_assert(masking->mask >= 0); /* data_masking_open has found one */
    for (int64_t i = 0; i < count; i++) {
        int32_t id = tokens[i];
        base_random4 choice = base_philox(key, (uint64_t)i, 0);
        bool special = id >= 0 && id < masking->words && masking->special[id];
        labels[i] = -100;
        if (special || uniform(choice.v[0], choice.v[1]) >= masking->probability) continue;
        labels[i] = id;
        double kind = uniform(choice.v[2], choice.v[3]);
        if (kind < 0.8) {
            tokens[i] = masking->mask;
        } else if (kind < 0.9) {
            base_random4 word = base_philox(key, (uint64_t)i, 1);
            tokens[i] = (int32_t)(uniform(word.v[0], word.v[1]) * (double)masking->words);
        }
    }
}
