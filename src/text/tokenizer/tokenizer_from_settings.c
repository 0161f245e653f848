/* tokenizer_config.json, special_tokens_map.json and added_tokens.json, as transformers 5 puts them
 * together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_files.h"

enum { SETTINGS_LIMIT = 64 << 20, ID_LIMIT = 1 << 24 };

const char *const text_special_names[TEXT_SPECIAL_NAMES] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

const char *text_token_content(const json_t *token) {
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

static bool is_standard(const char *key) {
    for (size_t i = 0; i < TEXT_SPECIAL_NAMES; i++) {
        if (strcmp(key, text_special_names[i]) == 0) return true;
    }
    return false;
}

/* "image_token" and the like. */
static bool is_specific(const char *key) {
    size_t size = strlen(key);
    return size > 6 && strcmp(key + size - 6, "_token") == 0 && !is_standard(key);
}

bool text_files_flag(const text_files *files, const char *key, bool fallback) {
    const json_t *value = json_object_get(files->settings, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

const char *text_files_special(const text_files *files, const char *name) {
    const json_t *value = json_object_get(files->settings, name);
    if (value) return text_token_content(value);
    for (size_t i = 0; i < TEXT_SPECIAL_NAMES; i++) {
        if (strcmp(name, text_special_names[i]) == 0) return files->class->defaults[i];
    }
    return NULL;
}

/* An object of the folder, or a new one where the file is not there. */
static sifr_status load_object(const char *path, json_t **out, bool *there, sifr_error *error) {
    *there = base_is_file(path);
    if (!*there) {
        *out = json_object();
        return *out ? SIFR_OK : base_fail_alloc(error, 64);
    }
    BASE_TRY(base_json_load(path, SETTINGS_LIMIT, out, error));
    if (json_is_object(*out)) return SIFR_OK;
    json_decref(*out);
    *out = NULL;
    return base_fail(error, SIFR_USAGE, "%s: must be a JSON object", path);
}

static sifr_status check_token(const json_t *token, const char *key, const char *path,
                               sifr_error *error) {
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized", "special"};
    if (!text_token_content(token))
        return base_fail(error, SIFR_USAGE,
                         "%s: \"%.60s\" must be a token: a string, or an object with \"content\"",
                         path, key);
    for (size_t i = 0; json_is_object(token) && i < sizeof flags / sizeof *flags; i++) {
        const json_t *flag = json_object_get(token, flags[i]);
        if (flag && !json_is_boolean(flag))
            return base_fail(error, SIFR_USAGE, "%s: \"%s\" of \"%.60s\" must be true or false",
                             path, flags[i], key);
    }
    return SIFR_OK;
}

/* Checks what the tokenizer is made with; other keys may hold anything. */
static sifr_status check_settings(const text_files *files, const char *path, sifr_error *error) {
    static const char *const flags[] = {
        "add_bos_token",  "add_eos_token", "add_prefix_space",       "legacy",      "do_lower_case",
        "split_by_punct", "strip_accents", "tokenize_chinese_chars", "trim_offsets"};
    const char *key;
    json_t *value, *item;
    size_t i;
    json_object_foreach(files->settings, key, value) {
        bool flag = false;
        for (i = 0; i < sizeof flags / sizeof *flags; i++) flag |= !strcmp(key, flags[i]);
        if (flag && !json_is_boolean(value) && !json_is_null(value))
            return base_fail(error, SIFR_USAGE, "%s: \"%s\" must be true or false", path, key);
        if (is_standard(key) && !json_is_null(value))
            BASE_TRY(check_token(value, key, path, error));
        if (strcmp(key, "extra_special_tokens") && strcmp(key, "additional_special_tokens"))
            continue;
        if (!json_is_array(value) && !json_is_object(value) && !json_is_null(value))
            return base_fail(error, SIFR_USAGE, "%s: \"%s\" must be a list of tokens", path, key);
        json_array_foreach(value, i, item) BASE_TRY(check_token(item, key, path, error));
    }
    return SIFR_OK;
}

static bool is_empty(const json_t *value) {
    return !value || (!json_is_object(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value));
}

/* additional_special_tokens is the older name of extra_special_tokens; tokens with names of their
 * own become `specific`. */
static void gather_extra(text_files *files) {
    json_t *settings = files->settings, *value;
    const char *key;
    void *next;
    if (json_object_get(settings, "additional_special_tokens") &&
        is_empty(json_object_get(settings, "extra_special_tokens"))) {
        json_object_set(settings, "extra_special_tokens",
                        json_object_get(settings, "additional_special_tokens"));
        json_object_del(settings, "additional_special_tokens");
    }
    json_object_foreach_safe(settings, next, key, value) {
        if (!is_specific(key) || !json_is_string(value)) continue;
        json_object_set(files->specific, key, value);
        json_object_del(settings, key);
    }
    value = json_object_get(settings, "extra_special_tokens");
    if (json_is_object(value)) {
        json_object_update(files->specific, value);
        json_object_del(settings, "extra_special_tokens");
    }
}

/* [id, token] at its place by id. */
static sifr_status add_to_decoder(text_files *files, int64_t id, json_t *token, sifr_error *error) {
    json_t *pair = json_pack("[I, O]", (json_int_t)id, token);
    if (!pair || json_array_append_new(files->decoder, pair)) return base_fail_alloc(error, 64);
    return SIFR_OK;
}

static sifr_status read_decoder(text_files *files, const json_t *decoder, sifr_error *error) {
    const char *key;
    json_t *value;
    if (!json_is_object(decoder))
        return base_fail(error, SIFR_USAGE, "%s: \"added_tokens_decoder\" must be an object",
                         files->config_path);
    json_object_foreach((json_t *)(uintptr_t)decoder, key, value) {
        char *end;
        long long id = strtoll(key, &end, 10);
        if (*key < '0' || *key > '9' || *end || id >= ID_LIMIT)
            return base_fail(error, SIFR_USAGE,
                             "%s: \"%.60s\" in \"added_tokens_decoder\" is no token id",
                             files->config_path, key);
        BASE_TRY(check_token(value, "added_tokens_decoder", files->config_path, error));
        BASE_TRY(add_to_decoder(files, id, value, error));
    }
    return SIFR_OK;
}

/* special_tokens_map.json says again, or in place of tokenizer_config.json, which tokens are
 * special. */
static sifr_status read_map(text_files *files, const char *path, sifr_error *error) {
    json_t *map, *value;
    const char *key;
    bool there;
    sifr_status status = SIFR_OK;
    BASE_TRY(load_object(path, &map, &there, error));
    json_object_foreach(map, key, value) {
        if (is_standard(key) || is_specific(key)) {
            if (json_is_null(value)) continue;
            BASE_TRY_GOTO(status, check_token(value, key, path, error), done);
            if (json_is_object(value)) json_object_set_new(value, "special", json_true());
        }
        json_object_set(files->settings, key, value);
    }
    if (there) status = check_settings(files, path, error);
    value = json_object_get(files->settings, "extra_special_tokens");
    if (json_is_object(value)) {
        json_object_update(files->specific, value);
        json_object_del(files->settings, "extra_special_tokens");
    }
done:
    json_decref(map);
    return status;
}

/* The contents of the special tokens known so far, as keys. */
static json_t *special_contents(const text_files *files) {
    const json_t *extra = json_object_get(files->settings, "extra_special_tokens"), *token;
    json_t *out = json_object();
    size_t i;
    for (i = 0; i < TEXT_SPECIAL_NAMES; i++) {
        token = json_object_get(files->settings, text_special_names[i]);
        if (text_token_content(token))
            json_object_set_new(out, text_token_content(token), json_true());
    }
    json_array_foreach(extra, i, token)
        json_object_set_new(out, text_token_content(token), json_true());
    return out;
}

static sifr_status read_added(text_files *files, const char *path, sifr_error *error) {
    json_t *added, *value, *known;
    const char *key;
    bool there;
    sifr_status status = SIFR_OK;
    BASE_TRY(load_object(path, &added, &there, error));
    known = special_contents(files);
    json_object_foreach(added, key, value) {
        json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || id >= ID_LIMIT) {
            status = base_fail(error, SIFR_USAGE, "%s: the id of token \"%.60s\" is no token id",
                               path, key);
            break;
        }
        bool special = json_object_get(known, key) != NULL;
        json_t *token = json_pack("{s:s, s:b, s:b, s:b, s:b}", "content", key, "lstrip", 0,
                                  "rstrip", 0, "normalized", !special, "special", special);
        status = token ? add_to_decoder(files, id, token, error) : base_fail_alloc(error, 64);
        json_decref(token);
        if (status != SIFR_OK) break;
    }
    json_decref(known);
    json_decref(added);
    return status;
}

/* A special token that the decoder has too gets its flags from there. */
static sifr_status take_flags(text_files *files, sifr_error *error) {
    text_table contents = {0};
    sifr_status status = SIFR_OK;
    const json_t *pair;
    size_t i, index;
    bool added;
    json_t *by_index = json_array();
    if (!by_index) return base_fail_alloc(error, 64);
    json_array_foreach(files->decoder, i, pair) {
        json_t *token = json_array_get(pair, 1);
        const char *content = text_token_content(token);
        status = text_table_add(&contents, content, strlen(content), &index, &added, error);
        if (status != SIFR_OK) goto done;
        if (added)
            json_array_append(by_index, token);
        else
            json_array_set(by_index, index, token);
    }
    for (i = 0; i < TEXT_SPECIAL_NAMES; i++) {
        const char *name = text_special_names[i];
        const char *content = text_token_content(json_object_get(files->settings, name));
        if (!content) continue;
        index = text_table_find(&contents, content, strlen(content));
        if (index != SIZE_MAX)
            json_object_set(files->settings, name, json_array_get(by_index, index));
    }
done:
    text_table_free(&contents);
    json_decref(by_index);
    return status;
}

/* `specific` gets what other files of the folder and the decoder's flags have changed by now. */
static sifr_status finish_specific(text_files *files, sifr_error *error) {
    const char *key;
    json_t *value, *own = json_object();
    if (!own) return base_fail_alloc(error, 64);
    json_object_foreach(files->settings, key, value) {
        if (is_specific(key) && text_token_content(value)) json_object_set(own, key, value);
    }
    json_object_update(own, files->specific);
    json_decref(files->specific);
    files->specific = own;
    json_object_foreach(own, key, value)
        BASE_TRY(check_token(value, key, files->config_path, error));
    return SIFR_OK;
}

sifr_status text_files_settings(text_files *files, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    bool there;
    files->decoder = json_array();
    files->specific = json_object();
    if (!files->decoder || !files->specific) return base_fail_alloc(error, 64);
    if (files->folder) {
        BASE_TRY(base_path_join(files->config_path, files->folder, "tokenizer_config.json", error));
        BASE_TRY(load_object(files->config_path, &files->settings, &there, error));
    }
    BASE_TRY(check_settings(files, files->config_path, error));
    gather_extra(files);
    const json_t *decoder = json_object_get(files->settings, "added_tokens_decoder");
    if (decoder) {
        BASE_TRY(read_decoder(files, decoder, error));
    } else if (files->folder) {
        BASE_TRY(base_path_join(path, files->folder, "special_tokens_map.json", error));
        BASE_TRY(read_map(files, path, error));
        BASE_TRY(base_path_join(path, files->folder, "added_tokens.json", error));
        BASE_TRY(read_added(files, path, error));
    }
    BASE_TRY(take_flags(files, error));
    return finish_specific(files, error);
}
