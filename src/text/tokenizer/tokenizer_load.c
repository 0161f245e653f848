#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_files.h"
#include "text/tokenizer/tokenizer_internal.h"

enum { FILE_LIMIT = 256 << 20 };

sifr_status text_tokenizer_refuse(sifr_error *error, const char *name, const char *part,
                                  const char *got, const char *wanted) {
    return base_fail(error, SIFR_USAGE, "%s: %s \"%.100s\" is not supported yet (supported: %s)",
                     name, part, got, wanted);
}

static sifr_status build_model(text_tokenizer *t, const json_t *model, const char *name,
                               sifr_error *error) {
    const char *unknown;
    BASE_TRY(text_tokenizer_read_vocabulary(t, model, name, error));
    text_fallback_read(t);
    if (t->model == TEXT_MODEL_WORDPIECE) return text_wordpiece_read(t, model, name, error);
    if (t->model == TEXT_MODEL_UNIGRAM) return text_unigram_read(t, model, name, error);
    BASE_TRY(text_tokenizer_read_merges(t, json_object_get(model, "merges"), name, error));
    BASE_TRY(base_json_string(model, "unk_token", NULL, &unknown, name, error));
    if (unknown) {
        t->unk_id = text_tokenizer_id(t, unknown);
        if (t->unk_id < 0)
            return base_fail(error, SIFR_USAGE, "%s: the unk_token \"%.60s\" is not in model.vocab",
                             name, unknown);
    }
    if (t->model == TEXT_MODEL_BYTES) return SIFR_OK;
    BASE_TRY(text_characters_read(t, error));
    t->separate = text_characters_separate(t);
    return SIFR_OK;
}

static sifr_status build(text_tokenizer *t, const json_t *root, const char *name,
                         sifr_error *error) {
    const json_t *model = json_object_get(root, "model");
    bool marked;
    if (!json_is_object(root) || !json_is_object(model))
        return base_fail(error, SIFR_USAGE, "%s: no tokenizer.json: it has no \"model\"", name);
    BASE_TRY(text_tokenizer_read_parts(t, root, name, error));
    BASE_TRY(text_tokenizer_read_added(t, json_object_get(root, "added_tokens"), name, error));
    BASE_TRY(build_model(t, model, name, error));
    BASE_TRY(text_unicode_build(&t->unicode, t->unicode.normalizes, error));
    BASE_TRY(text_tokenizer_build_tries(t, error));
    BASE_TRY(text_tokenizer_respell(t, error));
    BASE_TRY(text_tokenizer_lay_out_decoded(t, error));
    BASE_TRY(text_tokenizer_read_post(t, json_object_get(root, "post_processor"), name, error));
    static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|im_end|>"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends && t->eos_id < 0; i++)
        t->eos_id = text_tokenizer_id(t, ends[i]);
    if (text_normalizer_cut_is_safe(&t->normalizer, &marked))
        t->cut_at_blank = marked ? t->separate && !t->pretokenizer.count
                                 : text_pretokenizer_cut_is_safe(&t->pretokenizer);
    return SIFR_OK;
}

sifr_status text_tokenizer_from_json(const json_t *root, const char *name, text_tokenizer **out,
                                     sifr_error *error) {
    text_tokenizer *t;
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    t->unk_id = t->bos_id = t->eos_id = -1;
    sifr_status status = build(t, root, name, error);
    if (status == SIFR_OK)
        *out = t;
    else
        text_tokenizer_free(t);
    return status;
}

sifr_status text_tokenizer_parse(const char *json, size_t size, const char *name,
                                 text_tokenizer **out, sifr_error *error) {
    json_t *root;
    BASE_TRY(base_json_parse(json, size, name, &root, error));
    sifr_status status = text_tokenizer_from_json(root, name, out, error);
    json_decref(root);
    return status;
}

/* A token of tokenizer_config.json: a string, or an object with "content"; NULL: none. */
static const char *named(const json_t *config, const char *key) {
    const json_t *token = json_object_get(config, key);
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

static sifr_status read_config(text_tokenizer *t, const char *path, sifr_error *error) {
    json_t *config;
    BASE_TRY(base_json_load(path, 64 << 20, &config, error));
    const char *content = named(config, "eos_token"), *bos = named(config, "bos_token");
    sifr_status status = SIFR_OK;
    if (bos) t->bos_id = text_tokenizer_id(t, bos);
    if (content) {
        int32_t id = text_tokenizer_id(t, content);
        if (id >= 0)
            t->eos_id = id, t->names_eos = true;
        else
            status =
                base_fail(error, SIFR_USAGE, "%s: the eos_token \"%.60s\" is not in tokenizer.json",
                          path, content);
    }
    json_decref(config);
    return status;
}

/* A folder without tokenizer.json: from the files that it has instead. */
static sifr_status load_other(const char *folder, text_tokenizer **out, sifr_error *error) {
    char source[BASE_PATH_LENGTH], *eos = NULL;
    json_t *root = NULL;
    BASE_TRY(text_tokenizer_convert(folder, &root, source, &eos, error));
    sifr_status status = text_tokenizer_from_json(root, source, out, error);
    if (status == SIFR_OK && eos) {
        (*out)->eos_id = text_tokenizer_id(*out, eos);
        (*out)->names_eos = (*out)->eos_id >= 0;
    }
    json_decref(root);
    free(eos);
    return status;
}

sifr_status text_tokenizer_load(const char *path, text_tokenizer **out, sifr_error *error) {
    char file[BASE_PATH_LENGTH], config[BASE_PATH_LENGTH] = "", *text = NULL;
    size_t size;
    if (base_is_directory(path)) {
        BASE_TRY(base_path_join(file, path, "tokenizer.json", error));
        BASE_TRY(base_path_join(config, path, "tokenizer_config.json", error));
        if (!base_is_file(file) && text_tokenizer_other_file(path))
            return load_other(path, out, error);
    } else if (snprintf(file, sizeof file, "%s", path) >= (int)sizeof file) {
        return base_fail(error, SIFR_USAGE, "%.200s…: path too long", path);
    }
    BASE_TRY(base_read_file(file, FILE_LIMIT, &text, &size, error));
    text_tokenizer *t = NULL;
    sifr_status status = text_tokenizer_parse(text, size, file, &t, error);
    free(text);
    if (status == SIFR_OK && *config && base_is_file(config))
        status = read_config(t, config, error);
    if (status == SIFR_OK)
        *out = t;
    else
        text_tokenizer_free(t);
    return status;
}

void text_tokenizer_free(text_tokenizer *t) {
    if (!t) return;
    text_unicode_free(&t->unicode);
    text_table_free(&t->words);
    free(t->word_ids);
    free(t->byte_pairs);
    free(t->merge_ids);
    free(t->slots);
    free(t->bytes);
    free(t->offsets);
    free(t->kinds);
    for (size_t i = 0; i < t->added_count; i++) {
        free(t->added[i].content);
        free(t->added[i].normal);
    }
    free(t->added);
    free(t->raw.nodes);
    free(t->normal.nodes);
    free(t->before);
    free(t->after);
    free(t->single.items);
    free(t->pair.items);
    text_normalizer_free(&t->normalizer);
    text_pretokenizer_free(&t->pretokenizer);
    text_decoder_free(&t->decoder);
    free(t->prefix);
    free(t->suffix);
    free(t->character_ids);
    text_prefixes_free(&t->prefixes);
    text_prefixes_free(&t->continuations);
    free(t->scores);
    free(t->decoded);
    free(t->decoded_offsets);
    free(t);
}

int64_t text_tokenizer_vocab_size(const text_tokenizer *t) {
    return t->vocab_size;
}

int64_t text_tokenizer_text_size(const text_tokenizer *t) {
    int64_t size = t->vocab_size;
    while (size > 0 && (!t->kinds[size - 1] || (t->kinds[size - 1] & TEXT_TOKEN_SPECIAL))) size--;
    return size;
}

int32_t text_tokenizer_eos(const text_tokenizer *t) {
    return t->eos_id;
}

bool text_tokenizer_names_eos(const text_tokenizer *t) {
    return t->names_eos;
}

int32_t text_tokenizer_bos(const text_tokenizer *t) {
    size_t count;
    const int32_t *front = text_tokenizer_around(t, false, &count);
    return t->bos_id >= 0 || !count ? t->bos_id : front[0];
}

const char *text_tokenizer_bytes(const text_tokenizer *t, int32_t id, size_t *size) {
    if (id < 0 || id >= t->vocab_size || !t->kinds[id]) return NULL;
    if (t->decoded_offsets) {
        *size = t->decoded_offsets[id + 1] - t->decoded_offsets[id];
        return t->decoded ? t->decoded + t->decoded_offsets[id] : "";
    }
    *size = t->offsets[id + 1] - t->offsets[id];
    return t->bytes + t->offsets[id];
}

bool text_tokenizer_is_special(const text_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->vocab_size && (t->kinds[id] & TEXT_TOKEN_SPECIAL);
}

int32_t text_tokenizer_id(const text_tokenizer *t, const char *content) {
    size_t size = strlen(content), count, index = SIZE_MAX;
    for (size_t i = 0; i < t->added_count; i++) {
        if (t->added[i].size == size && memcmp(t->added[i].content, content, size) == 0)
            return t->added[i].id;
    }
    if (t->model != TEXT_MODEL_BYTES) {
        index = text_table_find(&t->words, content, size);
        return index == SIZE_MAX ? -1 : t->word_ids[index];
    }
    uint8_t *raw = malloc(size + 1);
    if (!raw) return -1;
    if (text_bytes_of_content(content, size, raw, &count))
        index = text_table_find(&t->words, raw, count);
    free(raw);
    if (index != SIZE_MAX) return t->word_ids[index];
    for (int32_t id = 0; id < t->vocab_size; id++) {
        size_t there;
        const char *bytes = text_tokenizer_bytes(t, id, &there);
        if (bytes && (t->kinds[id] & TEXT_TOKEN_LITERAL) && there == size &&
            memcmp(bytes, content, size) == 0)
            return id;
    }
    return -1;
}
