/* Added tokens and their ids, as the `tokenizers` library numbers what transformers hands it. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_files.h"

sifr_status text_files_add_word(text_files *files, const char *text, size_t size, int64_t id,
                                sifr_error *error) {
    size_t index;
    bool added;
    BASE_TRY(text_table_add(&files->words, text, size, &index, &added, error));
    BASE_TRY(base_grow(&files->word_ids, &files->word_capacity, index + 1, sizeof *files->word_ids,
                       error));
    files->word_ids[index] = id;
    return SIFR_OK;
}

int64_t text_files_id(const text_files *files, const char *content) {
    size_t size = strlen(content), index = text_table_find(&files->added, content, size);
    if (index != SIZE_MAX)
        return json_integer_value(json_object_get(json_array_get(files->added_list, index), "id"));
    index = text_table_find(&files->words, content, size);
    return index == SIZE_MAX ? -1 : files->word_ids[index];
}

/* The token with all of its flags, and `id`: as the library's AddedToken. A new reference. */
static json_t *complete(const json_t *token, bool special, int64_t id) {
    bool plain = !json_is_object(token);
    special = special || plain || json_is_true(json_object_get(token, "special"));
    const json_t *normal = plain ? NULL : json_object_get(token, "normalized");
    return json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id, "content",
                     text_token_content(token), "single_word",
                     !plain && json_is_true(json_object_get(token, "single_word")), "lstrip",
                     !plain && json_is_true(json_object_get(token, "lstrip")), "rstrip",
                     !plain && json_is_true(json_object_get(token, "rstrip")), "normalized",
                     normal ? json_is_true(normal) : !special, "special", special);
}

/* Ids of new tokens go on after the vocabulary and the added tokens. */
static int64_t next_id(const text_files *files) {
    int64_t next = files->model_size;
    const json_t *token;
    size_t i;
    json_array_foreach(files->added_list, i, token) {
        int64_t id = json_integer_value(json_object_get(token, "id"));
        if (id >= next) next = id + 1;
    }
    return next;
}

/* As add_tokens of the library; `named` may be NULL, else those of its keys are special. */
static sifr_status add_tokens(text_files *files, const json_t *tokens, const json_t *named,
                              sifr_error *error) {
    int64_t next = next_id(files);
    const json_t *token;
    size_t i, index;
    bool added;
    json_array_foreach(tokens, i, token) {
        const char *content = text_token_content(token);
        if (!*content) continue;
        int64_t id = text_files_id(files, content);
        if (id < 0) id = next++;
        json_t *full = complete(token, named && json_object_get(named, content), id);
        if (!full) return base_fail_alloc(error, 256);
        sifr_status status =
            text_table_add(&files->added, content, strlen(content), &index, &added, error);
        if (status == SIFR_OK) {
            int bad = added ? json_array_append(files->added_list, full)
                            : json_array_set(files->added_list, index, full);
            if (bad) status = base_fail_alloc(error, 64);
        }
        json_decref(full);
        BASE_TRY(status);
    }
    return SIFR_OK;
}

sifr_status text_files_add_list(text_files *files, const json_t *tokens, sifr_error *error) {
    return add_tokens(files, tokens, NULL, error);
}

static bool same_token(const json_t *a, const json_t *b) {
    if (!json_is_object(a) || !json_is_object(b))
        return json_is_string(a) && json_is_string(b) && json_equal(a, b);
    json_t *x = complete(a, false, 0), *y = complete(b, false, 0);
    bool same = x && y && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

/* Appends a special token that is neither known nor in `fresh`: an object of what was appended
 * before, content to tokens. */
static sifr_status append_new(json_t *list, json_t *fresh, json_t *token, const text_table *known,
                              sifr_error *error) {
    const char *content = text_token_content(token);
    if (text_table_find(known, content, strlen(content)) != SIZE_MAX) return SIFR_OK;
    json_t *before = json_object_get(fresh, content);
    if (!before && json_object_set_new(fresh, content, before = json_array()))
        return base_fail_alloc(error, 64);
    for (size_t i = 0; i < json_array_size(before); i++) { /* as many as flags can differ */
        if (same_token(json_array_get(before, i), token)) return SIFR_OK;
    }
    if (json_array_append(before, token) || json_array_append(list, token))
        return base_fail_alloc(error, 64);
    return SIFR_OK;
}

static int compare_pairs(const void *a, const void *b) {
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t i = json_integer_value(json_array_get(x, 0));
    json_int_t j = json_integer_value(json_array_get(y, 0));
    return i < j ? -1 : i > j;
}

/* Tokens of the decoder in the order of their ids, into `list`; their contents, and those of tokens
 * added before, into `known`. */
static sifr_status list_decoder(const text_files *files, json_t *list, text_table *known,
                                sifr_error *error) {
    size_t count = json_array_size(files->decoder), index;
    json_t **pairs;
    bool added;
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < files->added.count; i++) {
        size_t size;
        const uint8_t *bytes = text_table_bytes(&files->added, i, &size);
        BASE_TRY(text_table_add(known, bytes, size, &index, &added, error));
    }
    BASE_TRY(base_alloc(count + 1, sizeof *pairs, &pairs, error));
    for (size_t i = 0; i < count; i++) pairs[i] = json_array_get(files->decoder, i);
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < count && status == SIFR_OK; i++) {
        json_t *token = json_array_get(pairs[i], 1);
        const char *content = text_token_content(token);
        status = text_table_add(known, content, strlen(content), &index, &added, error);
        if (json_array_append(list, token)) status = base_fail_alloc(error, 64);
    }
    free(pairs);
    return status;
}

/* The special tokens with names: the class's defaults where the folder names none. */
static sifr_status list_named(const text_files *files, json_t *list, json_t *named, json_t *fresh,
                              const text_table *known, sifr_error *error) {
    const char *key;
    json_t *value;
    for (size_t i = 0; i < TEXT_SPECIAL_NAMES; i++) {
        const char *content = text_files_special(files, text_special_names[i]);
        if (!content) continue;
        json_t *token = json_object_get(files->settings, text_special_names[i]);
        token = token ? json_incref(token) : json_string(content);
        sifr_status status =
            token ? append_new(list, fresh, token, known, error) : base_fail_alloc(error, 64);
        json_decref(token);
        BASE_TRY(status);
        json_object_set_new(named, content, json_true());
    }
    json_object_foreach(files->specific, key, value) {
        BASE_TRY(append_new(list, fresh, value, known, error));
        json_object_set_new(named, text_token_content(value), json_true());
    }
    return SIFR_OK;
}

static int compare_ids(const void *a, const void *b) {
    json_int_t i = json_integer_value(json_object_get(*(json_t *const *)a, "id"));
    json_int_t j = json_integer_value(json_object_get(*(json_t *const *)b, "id"));
    return i < j ? -1 : i > j;
}

/* root's added_tokens: in the order of their ids. */
static sifr_status write_added(text_files *files, sifr_error *error) {
    size_t count = json_array_size(files->added_list);
    json_t **tokens, *list = json_array();
    sifr_status status = base_alloc(count + 1, sizeof *tokens, &tokens, error);
    if (status != SIFR_OK) return json_decref(list), status;
    for (size_t i = 0; i < count; i++) tokens[i] = json_array_get(files->added_list, i);
    qsort(tokens, count, sizeof *tokens, compare_ids);
    for (size_t i = 0; i < count; i++) json_array_append(list, tokens[i]);
    free(tokens);
    if (json_array_size(list) != count || json_object_set_new(files->root, "added_tokens", list))
        return base_fail_alloc(error, 64);
    return SIFR_OK;
}

sifr_status text_files_add_all(text_files *files, sifr_error *error) {
    json_t *list = json_array(), *named = json_object(), *fresh = json_object(), *token;
    text_table known = {0};
    sifr_status status = SIFR_OK;
    size_t i;
    if (!list || !named || !fresh) status = base_fail_alloc(error, 64);
    if (status == SIFR_OK) status = list_decoder(files, list, &known, error);
    if (status == SIFR_OK) status = list_named(files, list, named, fresh, &known, error);
    json_array_foreach(files->extra, i, token) {
        if (status == SIFR_OK) status = append_new(list, fresh, token, &known, error);
    }
    if (status == SIFR_OK) status = add_tokens(files, list, named, error);
    if (status == SIFR_OK && files->class->kind == TEXT_CLASS_QWEN2) {
        /* The class adds its special tokens once more, by their names alone. */
        json_t *again = json_array();
        const char *key;
        json_object_foreach(named, key, token) json_array_append_new(again, json_string(key));
        json_array_foreach(files->extra, i, token)
            json_array_append_new(again, json_string(text_token_content(token)));
        status = add_tokens(files, again, NULL, error);
        json_decref(again);
    }
    if (status == SIFR_OK) status = write_added(files, error);
    text_table_free(&known);
    json_decref(list);
    json_decref(named);
    json_decref(fresh);
    return status;
}
