#include "formats/generation_config.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

enum { FILE_LIMIT = 1 << 20, TOP_K = 50 };

typedef struct generation_reader {
    const json_t *json;
    const char *name;
    sifr_error *error;
} generation_reader;

/* A whole number in least … INT32_MAX; `fallback` where absent. */
static sifr_status read_count(const generation_reader *r, const char *key, int64_t fallback,
                              int64_t least, int64_t *out) {
    BASE_TRY(base_json_int(r->json, key, fallback, out, r->name, r->error));
    if (*out == fallback || (*out >= least && *out <= INT32_MAX)) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" is %lld, must be in %lld … %d", r->name, key,
                     (long long)*out, (long long)least, INT32_MAX);
}

static sifr_status read_number(const generation_reader *r, const char *key, double most,
                               double *out) {
    BASE_TRY(base_json_double(r->json, key, 1, out, r->name, r->error));
    if (*out > 0 && *out <= most) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" is %g, must be above 0 and at most %g",
                     r->name, key, *out, most);
}

static sifr_status read_eos(const generation_reader *r, formats_generation_config *out) {
    const json_t *given = json_object_get(r->json, "eos_token_id");
    size_t count = json_is_array(given) ? json_array_size(given) : given && !json_is_null(given);
    if (count > FORMATS_EOS_LIMIT)
        return base_fail(r->error, SIFR_USAGE, "%s: \"eos_token_id\" has %zu ids, at most %d work",
                         r->name, count, FORMATS_EOS_LIMIT);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_is_array(given) ? json_array_get(given, i) : given;
        json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value > INT32_MAX)
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"eos_token_id\" must hold whole numbers in 0 … %d", r->name,
                             INT32_MAX);
        out->eos_token_ids[out->eos_count++] = value;
    }
    return SIFR_OK;
}

/* "stop_strings": a string or a list of them. */
static sifr_status read_stop(const generation_reader *r, formats_generation_config *out) {
    const json_t *given = json_object_get(r->json, "stop_strings");
    size_t count = json_is_array(given) ? json_array_size(given) : given && !json_is_null(given);
    if (count > FORMATS_STOP_LIMIT)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"stop_strings\" has %zu strings, at most %d work", r->name, count,
                         FORMATS_STOP_LIMIT);
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_is_array(given) ? json_array_get(given, i) : given;
        size_t size = json_string_length(text); /* 0 for what is no string */
        if (size == 0 || size >= FORMATS_STOP_LENGTH || strlen(json_string_value(text)) != size)
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"stop_strings\" must hold texts of 1 … %d bytes", r->name,
                             FORMATS_STOP_LENGTH - 1);
        memcpy(out->stop_strings[out->stop_count++], json_string_value(text), size + 1);
    }
    return SIFR_OK;
}

static sifr_status read_penalties(const generation_reader *r, formats_generation_config *out) {
    BASE_TRY(read_number(r, "repetition_penalty", 1e6, &out->repetition_penalty));
    if (!out->do_sample) return SIFR_OK;
    BASE_TRY(base_json_double(r->json, "min_p", 0, &out->min_p, r->name, r->error));
    if (out->min_p >= 0 && out->min_p <= 1) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE, "%s: \"min_p\" is %g, must be in 0 … 1", r->name,
                     out->min_p);
}

/* Keys that change which token is drawn, with the value that changes nothing. */
static void find_not_built(const json_t *json, formats_generation_config *out) {
    static const struct {
        const char *key;
        double neutral;
    } keys[] = {{"encoder_repetition_penalty", 1},
                {"num_beams", 1},
                {"num_beam_groups", 1},
                {"penalty_alpha", 0},
                {"typical_p", 1},
                {"epsilon_cutoff", 0},
                {"eta_cutoff", 0},
                {"no_repeat_ngram_size", 0},
                {"min_new_tokens", 0},
                {"min_length", 0},
                {"forced_bos_token_id", -1},
                {"forced_eos_token_id", -1},
                {"bad_words_ids", 0},
                {"suppress_tokens", 0},
                {"begin_suppress_tokens", 0},
                {"sequence_bias", 0},
                {"guidance_scale", 1},
                {"watermarking_config", 0}};
    size_t used = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(json, keys[i].key);
        bool harmless = !value || json_is_null(value) || json_is_false(value) ||
                        (json_is_array(value) && json_array_size(value) == 0) ||
                        (json_is_number(value) && json_number_value(value) == keys[i].neutral);
        size_t capacity = sizeof out->not_built - used;
        if (harmless || strlen(keys[i].key) + 3 > capacity) continue;
        used += (size_t)snprintf(out->not_built + used, capacity, "%s%s", used ? ", " : "",
                                 keys[i].key);
    }
}

static sifr_status read(const generation_reader *r, formats_generation_config *out) {
    if (!json_is_object(r->json))
        return base_fail(r->error, SIFR_USAGE, "%s: must be a JSON object", r->name);
    BASE_TRY(read_eos(r, out));
    BASE_TRY(read_count(r, "bos_token_id", -1, 0, &out->bos_token_id));
    BASE_TRY(base_json_bool(r->json, "do_sample", false, &out->do_sample, r->name, r->error));
    if (out->do_sample) { /* nobody looks at the rest otherwise: a temperature of 0 is common */
        BASE_TRY(read_number(r, "temperature", 1e6, &out->temperature));
        BASE_TRY(read_number(r, "top_p", 1, &out->top_p));
        BASE_TRY(read_count(r, "top_k", TOP_K, 0, &out->top_k));
    }
    BASE_TRY(read_penalties(r, out));
    BASE_TRY(read_stop(r, out));
    BASE_TRY(read_count(r, "max_new_tokens", -1, 1, &out->max_new_tokens));
    BASE_TRY(read_count(r, "max_length", -1, 1, &out->max_length));
    find_not_built(r->json, out);
    return SIFR_OK;
}

sifr_status formats_generation_config_load(const char *folder, formats_generation_config *out,
                                           sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    json_t *json;
    *out = (formats_generation_config){.bos_token_id = -1,
                                       .temperature = 1,
                                       .top_p = 1,
                                       .top_k = TOP_K,
                                       .repetition_penalty = 1,
                                       .max_new_tokens = -1,
                                       .max_length = -1};
    BASE_TRY(base_path_join(path, folder, "generation_config.json", error));
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_json_load(path, FILE_LIMIT, &json, error));
    sifr_status status = read(&(generation_reader){json, path, error}, out);
    json_decref(json);
    return status;
}
