/* Tokens and merges of tokenizer.json: get_vocab_base, LlamaHfVocab and SpecialVocab's merges of
 * llama.cpp's converter. */
#include "formats/gguf/gguf_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "formats/folder.h"
#include "formats/gguf/gguf_tokens.h"

enum { FILE_LIMIT = 1 << 28, VOCABULARY_LIMIT = 1 << 24 };

/* --- files --- */

static sifr_status read_json(const char *folder, const char *name, json_t **out,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    *out = NULL;
    BASE_TRY(base_path_join(path, folder, name, error));
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(formats_folder_file(folder, name, path, error));
    BASE_TRY(base_json_load(path, FILE_LIMIT, out, error));
    if (json_is_object(*out)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: must be a JSON object", path);
}

sifr_status formats_gguf_files_read(const char *folder, formats_gguf_files *out,
                                    sifr_error *error) {
    *out = (formats_gguf_files){.folder = folder};
    sifr_status status = read_json(folder, "config.json", &out->config, error);
    if (status == SIFR_OK) status = read_json(folder, "tokenizer.json", &out->tokenizer, error);
    if (status == SIFR_OK)
        status = read_json(folder, "tokenizer_config.json", &out->tokenizer_config, error);
    if (status == SIFR_OK)
        status = read_json(folder, "generation_config.json", &out->generation, error);
    if (status == SIFR_OK && !out->config)
        status =
            base_fail(error, SIFR_FAILED, "%s: has no config.json: not a model folder", folder);
    if (status != SIFR_OK) formats_gguf_files_free(out);
    return status;
}

void formats_gguf_files_free(formats_gguf_files *files) {
    json_decref(files->config);
    json_decref(files->tokenizer);
    json_decref(files->tokenizer_config);
    json_decref(files->generation);
    *files = (formats_gguf_files){0};
}

/* --- tokens --- */

static sifr_status put_token(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                             const char *text, size_t size, const json_t *id,
                             formats_gguf_token_type type, bool added, sifr_error *error) {
    json_int_t at = json_is_integer(id) ? json_integer_value(id) : -1;
    if (!text || at < 0)
        return base_fail(error, SIFR_USAGE, "%s/tokenizer.json: a token without text or id",
                         files->folder);
    if (at >= tokens->count)
        return base_fail(error, SIFR_USAGE,
                         "%s/tokenizer.json: token %.100s has the id %lld, but \"vocab_size\" in "
                         "config.json is %lld",
                         files->folder, text, (long long)at, (long long)tokens->count);
    formats_gguf_token *t = &tokens->list[at];
    *t = (formats_gguf_token){.text = text,
                              .size = size,
                              .type = type,
                              .added = added,
                              .in_model = !added || t->in_model,
                              .blanks = type == FORMATS_GGUF_TOKEN_USER};
    return SIFR_OK;
}

static sifr_status read_tokens(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                               sifr_error *error) {
    const json_t *model = json_object_get(files->tokenizer, "model"),
                 *added = json_object_get(files->tokenizer, "added_tokens");
    json_t *vocab = json_object_get(model, "vocab"), *value;
    const char *key;
    size_t size, i;
    json_object_keylen_foreach(vocab, key, size, value) {
        BASE_TRY(
            put_token(files, tokens, key, size, value, FORMATS_GGUF_TOKEN_NORMAL, false, error));
    }
    json_array_foreach(added, i, value) {
        const json_t *content = json_object_get(value, "content");
        const char *text = json_string_value(content);
        size = json_string_length(content);
        bool special = json_is_true(json_object_get(value, "special")) ||
                       (text && formats_gguf_looks_special(text, size));
        BASE_TRY(put_token(files, tokens, text, size, json_object_get(value, "id"),
                           special ? FORMATS_GGUF_TOKEN_CONTROL : FORMATS_GGUF_TOKEN_USER, true,
                           error));
    }
    return SIFR_OK;
}

/* --- merges --- */

/* A part of a merge, in which a blank stands as byte-level BPE writes it. */
static size_t put_part(char *to, const json_t *part) {
    const char *text = json_string_value(part);
    size_t size = 0;
    for (size_t i = 0; i < json_string_length(part); i++) {
        if (text[i] == ' ') {
            memcpy(to + size, "\xc4\xa0", 2);
            size += 2;
        } else {
            to[size++] = text[i];
        }
    }
    return size;
}

static sifr_status add_merge(const formats_gguf_files *files, const json_t *merge,
                             formats_gguf_meta *meta, sifr_error *error) {
    if (json_is_string(merge)) {
        formats_gguf_item_text(meta, json_string_value(merge), json_string_length(merge));
        return SIFR_OK;
    }
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    if (!json_is_string(left) || !json_is_string(right) || json_array_size(merge) != 2)
        return base_fail(error, SIFR_USAGE, "%s/tokenizer.json: a merge that is no pair of strings",
                         files->folder);
    char *room;
    BASE_TRY(base_alloc(2 * (json_string_length(left) + json_string_length(right)) + 1, 1, &room,
                        error));
    size_t size = put_part(room, left);
    room[size++] = ' ';
    size += put_part(room + size, right);
    formats_gguf_item_text(meta, room, size);
    free(room);
    return SIFR_OK;
}

static sifr_status add_merges(const formats_gguf_files *files, formats_gguf_meta *meta,
                              sifr_error *error) {
    const json_t *merges = json_object_get(json_object_get(files->tokenizer, "model"), "merges");
    const json_t *merge;
    size_t i;
    if (json_array_size(merges) == 0) return SIFR_OK;
    formats_gguf_add_array(meta, "tokenizer.ggml.merges", FORMATS_GGUF_TEXT,
                           json_array_size(merges));
    json_array_foreach(merges, i, merge) BASE_TRY(add_merge(files, merge, meta, error));
    return SIFR_OK;
}

/* --- kinds of tokenizers --- */

static sifr_status add_byte_level(const formats_gguf_files *files,
                                  const formats_gguf_tokens *tokens, formats_gguf_meta *meta,
                                  sifr_error *error) {
    const char *pre;
    BASE_TRY(formats_gguf_pre(files, &pre, error));
    BASE_TRY(formats_gguf_add_tokens(tokens, "gpt2", pre, false, meta, error));
    return add_merges(files, meta, error);
}

static bool is_byte(const formats_gguf_token *t) {
    static const char digits[] = "0123456789abcdefABCDEF";
    return t->size == 6 && formats_gguf_has_ends(t->text, t->size, "<0x", ">") &&
           strchr(digits, t->text[3]) && strchr(digits, t->text[4]);
}

static bool is_text(const json_t *entry, const formats_gguf_token *t) {
    if (json_is_object(entry)) entry = json_object_get(entry, "content");
    return json_is_string(entry) && json_string_length(entry) == t->size &&
           memcmp(json_string_value(entry), t->text, t->size) == 0;
}

/* Whether tokenizer_config.json names the token as special. */
static bool is_named(const json_t *config, const formats_gguf_token *t) {
    static const char *const keys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};
    const json_t *entry;
    size_t at;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (is_text(json_object_get(config, keys[i]), t)) return true;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        json_array_foreach(json_object_get(config, lists[i]), at, entry) {
            if (is_text(entry, t)) return true;
        }
    }
    return false;
}

/* Types of a tokenizer with bytes as a fallback: by tokenizer_config.json, not tokenizer.json. */
static formats_gguf_token_type fallback_type(const formats_gguf_files *files,
                                             const formats_gguf_token *t) {
    if (is_byte(t)) return FORMATS_GGUF_TOKEN_BYTE;
    if (t->added && is_named(files->tokenizer_config, t)) return FORMATS_GGUF_TOKEN_CONTROL;
    return t->added && !t->in_model ? FORMATS_GGUF_TOKEN_USER : FORMATS_GGUF_TOKEN_NORMAL;
}

/* BPE with bytes as a fallback, as SentencePiece's. llama.cpp merges by score, which tokenizer.json
 * does not have; its converter writes -1000 for all. */
static sifr_status add_byte_fallback(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                                     formats_gguf_meta *meta, sifr_error *error) {
    while (tokens->count && !tokens->list[tokens->count - 1].text) tokens->count--;
    for (int64_t i = 0; i < tokens->count; i++) {
        if (!tokens->list[i].text)
            return base_fail(error, SIFR_USAGE,
                             "%s/tokenizer.json: no token has the id %lld; --format gguf needs all",
                             files->folder, (long long)i);
        tokens->list[i].type = fallback_type(files, &tokens->list[i]);
        tokens->list[i].score = -1000;
        tokens->list[i].blanks = false;
    }
    return formats_gguf_add_tokens(tokens, "llama", "default", true, meta, error);
}

/* BPE of tokenizer.json; *count: of its tokens, -1 where special ids need no limit. */
static sifr_status add_bpe(const formats_gguf_files *files, formats_gguf_vocab_kind kind,
                           formats_gguf_tokens *tokens, formats_gguf_meta *meta, int64_t *count,
                           sifr_error *error) {
    const json_t *model = json_object_get(files->tokenizer, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    *count = -1;
    if (!files->tokenizer)
        return base_fail(error, SIFR_USAGE, "%s: has no tokenizer.json, which --format gguf needs",
                         files->folder);
    if (type && strcmp(type, "BPE") != 0)
        return base_fail(error, SIFR_USAGE,
                         "%s/tokenizer.json: a tokenizer of type %.40s is not supported with "
                         "--format gguf yet (supported: BPE)",
                         files->folder, type);
    BASE_TRY(read_tokens(files, tokens, error));
    if (kind != FORMATS_GGUF_LLAMA || !json_is_true(json_object_get(model, "byte_fallback")))
        return add_byte_level(files, tokens, meta, error);
    BASE_TRY(add_byte_fallback(files, tokens, meta, error));
    *count = tokens->count;
    return SIFR_OK;
}

/* What the converter adds for some families, whatever the files say. */
static void add_by_kind(formats_gguf_vocab_kind kind, int64_t vocabulary, formats_gguf_meta *meta) {
    enum { CODE_LLAMA = 32016, CODE_LLAMA_EOT = 32010, CODE_GEMMA_EOT = 107 };
    if (kind == FORMATS_GGUF_LLAMA && vocabulary == CODE_LLAMA)
        formats_gguf_add_u32(meta, "tokenizer.ggml.eot_token_id", CODE_LLAMA_EOT);
    if (kind == FORMATS_GGUF_GEMMA)
        formats_gguf_add_u32(meta, "tokenizer.ggml.eot_token_id", CODE_GEMMA_EOT);
    if (kind == FORMATS_GGUF_GEMMA || kind == FORMATS_GGUF_GEMMA2)
        formats_gguf_add_bool(meta, "tokenizer.ggml.add_space_prefix", false);
}

static bool has_gpt2_class(const formats_gguf_files *files) {
    const char *class =
        json_string_value(json_object_get(files->tokenizer_config, "tokenizer_class"));
    return class && strcmp(class, "GPT2Tokenizer") == 0;
}

static sifr_status add_tokens(const formats_gguf_files *files, formats_gguf_vocab_kind kind,
                              formats_gguf_tokens *tokens, formats_gguf_meta *meta,
                              sifr_error *error) {
    enum { GRANITE = 49152 };
    const json_t *blank = json_object_get(files->tokenizer_config, "add_prefix_space");
    formats_gguf_sentencepiece pieces = {0};
    int64_t vocabulary = tokens->count, limit = tokens->count;
    bool llama = kind == FORMATS_GGUF_LLAMA, found = false;
    sifr_status status = SIFR_OK;
    if (llama && json_is_boolean(blank))
        formats_gguf_add_bool(meta, "tokenizer.ggml.add_space_prefix", json_is_true(blank));
    if (kind == FORMATS_GGUF_PHI3 && has_gpt2_class(files)) kind = FORMATS_GGUF_BYTE_LEVEL;
    bool phi3 = kind == FORMATS_GGUF_PHI3;
    if (kind != FORMATS_GGUF_BYTE_LEVEL)
        status = formats_gguf_sentencepiece_read(files, phi3, &pieces, tokens, &found, error);
    if (status == SIFR_OK && found)
        status = formats_gguf_add_tokens(tokens, "llama", "default", true, meta, error);
    else if (status == SIFR_OK &&
             (phi3 || kind == FORMATS_GGUF_GEMMA || kind == FORMATS_GGUF_GEMMA2))
        status = base_fail(error, SIFR_USAGE,
                           "%s: has no tokenizer.model, which --format gguf needs for this family",
                           files->folder);
    else if (status == SIFR_OK)
        status = add_bpe(files, kind, tokens, meta, &limit, error);
    formats_gguf_sentencepiece_free(&pieces);
    if (status != SIFR_OK) return status;
    add_by_kind(kind, vocabulary, meta);
    return formats_gguf_special(files, limit, llama && vocabulary == GRANITE, meta, error);
}

sifr_status formats_gguf_vocab(const formats_gguf_files *files, int64_t vocabulary,
                               formats_gguf_vocab_kind kind, formats_gguf_meta *meta,
                               sifr_error *error) {
    formats_gguf_tokens tokens = {.count = vocabulary};
    if (vocabulary < 1 || vocabulary > VOCABULARY_LIMIT)
        return base_fail(error, SIFR_USAGE, "%s/config.json: \"vocab_size\" is %lld, not 1 to %d",
                         files->folder, (long long)vocabulary, VOCABULARY_LIMIT);
    BASE_TRY(base_alloc((size_t)vocabulary, sizeof *tokens.list, &tokens.list, error));
    sifr_status status = add_tokens(files, kind, &tokens, meta, error);
    free(tokens.list);
    return status;
}
