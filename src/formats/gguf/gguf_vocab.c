/* Tokens and merges of tokenizer.json: get_vocab_base, LlamaHfVocab and SpecialVocab's merges of
 * llama.cpp's converter. */
#include "formats/gguf/gguf_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "formats/folder.h"

enum { FILE_LIMIT = 1 << 28, VOCABULARY_LIMIT = 1 << 24 };

/* llama.cpp's types of tokens. */
typedef enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_CONTROL = 3,
    TOKEN_USER = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
} token_type;

typedef struct gguf_token {
    const char *text; /* in the JSON; NULL: none */
    size_t size;
    token_type type;
    bool added, in_model; /* in added_tokens, in the model's vocabulary */
} gguf_token;

typedef struct gguf_tokens {
    gguf_token *list;
    int64_t count;
} gguf_tokens;

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

static sifr_status put_token(const formats_gguf_files *files, gguf_tokens *tokens, const char *text,
                             size_t size, const json_t *id, token_type type, bool added,
                             sifr_error *error) {
    json_int_t at = json_is_integer(id) ? json_integer_value(id) : -1;
    if (!text || at < 0)
        return base_fail(error, SIFR_USAGE, "%s/tokenizer.json: a token without text or id",
                         files->folder);
    if (at >= tokens->count)
        return base_fail(error, SIFR_USAGE,
                         "%s/tokenizer.json: token %.100s has the id %lld, but \"vocab_size\" in "
                         "config.json is %lld",
                         files->folder, text, (long long)at, (long long)tokens->count);
    tokens->list[at] = (gguf_token){text, size, type, added, !added || tokens->list[at].in_model};
    return SIFR_OK;
}

static bool has_ends(const char *text, size_t size, const char *begin, const char *end) {
    size_t a = strlen(begin), b = strlen(end);
    return size >= a && size >= b && memcmp(text, begin, a) == 0 &&
           memcmp(text + size - b, end, b) == 0;
}

/* Tokens that published files forget to mark as special. */
static bool looks_special(const char *text, size_t size) {
    static const char *const names[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (size == strlen(names[i]) && memcmp(text, names[i], size) == 0) return true;
    }
    return has_ends(text, size, "<|", "|>") ||
           has_ends(text, size, "<\xef\xbd\x9c", "\xef\xbd\x9c>") ||
           has_ends(text, size, "<unused", ">");
}

static sifr_status read_tokens(const formats_gguf_files *files, gguf_tokens *tokens,
                               sifr_error *error) {
    const json_t *model = json_object_get(files->tokenizer, "model"),
                 *added = json_object_get(files->tokenizer, "added_tokens");
    json_t *vocab = json_object_get(model, "vocab"), *value;
    const char *key;
    size_t size, i;
    json_object_keylen_foreach(vocab, key, size, value) {
        BASE_TRY(put_token(files, tokens, key, size, value, TOKEN_NORMAL, false, error));
    }
    json_array_foreach(added, i, value) {
        const json_t *content = json_object_get(value, "content");
        const char *text = json_string_value(content);
        size = json_string_length(content);
        bool special =
            json_is_true(json_object_get(value, "special")) || (text && looks_special(text, size));
        BASE_TRY(put_token(files, tokens, text, size, json_object_get(value, "id"),
                           special ? TOKEN_CONTROL : TOKEN_USER, true, error));
    }
    return SIFR_OK;
}

/* A user-defined token stands with blanks where the vocabulary writes U+2581. */
static void add_user_text(formats_gguf_meta *meta, const gguf_token *token, char *room) {
    size_t size = 0;
    for (size_t i = 0; i < token->size; i++) {
        if (token->size - i >= 3 && memcmp(token->text + i, "\xe2\x96\x81", 3) == 0) {
            room[size++] = ' ';
            i += 2;
        } else {
            room[size++] = token->text[i];
        }
    }
    formats_gguf_item_text(meta, room, size);
}

/* `blanks`: user-defined tokens stand with blanks. */
static sifr_status add_texts(const gguf_tokens *tokens, bool blanks, formats_gguf_meta *meta,
                             sifr_error *error) {
    size_t longest = 1;
    char *room, name[32];
    for (int64_t i = 0; i < tokens->count; i++) {
        if (tokens->list[i].size > longest) longest = tokens->list[i].size;
    }
    BASE_TRY(base_alloc(longest, 1, &room, error));
    formats_gguf_add_array(meta, "tokenizer.ggml.tokens", FORMATS_GGUF_TEXT,
                           (uint64_t)tokens->count);
    for (int64_t i = 0; i < tokens->count; i++) {
        const gguf_token *t = &tokens->list[i];
        if (!t->text) {
            snprintf(name, sizeof name, "[PAD%lld]", (long long)i);
            formats_gguf_item_text(meta, name, strlen(name));
        } else if (blanks && t->type == TOKEN_USER) {
            add_user_text(meta, t, room);
        } else {
            formats_gguf_item_text(meta, t->text, t->size);
        }
    }
    free(room);
    return SIFR_OK;
}

static void add_types(const gguf_tokens *tokens, formats_gguf_meta *meta) {
    formats_gguf_add_array(meta, "tokenizer.ggml.token_type", FORMATS_GGUF_I32,
                           (uint64_t)tokens->count);
    for (int64_t i = 0; i < tokens->count; i++) {
        const gguf_token *t = &tokens->list[i];
        formats_gguf_item_i32(meta, t->text ? (int32_t)t->type : TOKEN_UNUSED);
    }
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

static void add_word(formats_gguf_meta *meta, const char *key, const char *word) {
    formats_gguf_add_text(meta, key, word, strlen(word));
}

static sifr_status add_byte_level(const formats_gguf_files *files, const gguf_tokens *tokens,
                                  formats_gguf_meta *meta, sifr_error *error) {
    const char *pre;
    BASE_TRY(formats_gguf_pre(files, &pre, error));
    add_word(meta, "tokenizer.ggml.model", "gpt2");
    add_word(meta, "tokenizer.ggml.pre", pre);
    BASE_TRY(add_texts(tokens, true, meta, error));
    add_types(tokens, meta);
    return add_merges(files, meta, error);
}

static bool is_byte(const gguf_token *t) {
    static const char digits[] = "0123456789abcdefABCDEF";
    return t->size == 6 && has_ends(t->text, t->size, "<0x", ">") && strchr(digits, t->text[3]) &&
           strchr(digits, t->text[4]);
}

static bool is_text(const json_t *entry, const gguf_token *t) {
    if (json_is_object(entry)) entry = json_object_get(entry, "content");
    return json_is_string(entry) && json_string_length(entry) == t->size &&
           memcmp(json_string_value(entry), t->text, t->size) == 0;
}

/* Whether tokenizer_config.json names the token as special. */
static bool is_named(const json_t *config, const gguf_token *t) {
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
static token_type fallback_type(const formats_gguf_files *files, const gguf_token *t) {
    if (is_byte(t)) return TOKEN_BYTE;
    if (t->added && is_named(files->tokenizer_config, t)) return TOKEN_CONTROL;
    return t->added && !t->in_model ? TOKEN_USER : TOKEN_NORMAL;
}

/* BPE with bytes as a fallback, as SentencePiece's. llama.cpp merges by score, which tokenizer.json
 * does not have; its converter writes -1000 for all. */
static sifr_status add_byte_fallback(const formats_gguf_files *files, gguf_tokens *tokens,
                                     formats_gguf_meta *meta, sifr_error *error) {
    while (tokens->count && !tokens->list[tokens->count - 1].text) tokens->count--;
    for (int64_t i = 0; i < tokens->count; i++) {
        if (!tokens->list[i].text)
            return base_fail(error, SIFR_USAGE,
                             "%s/tokenizer.json: no token has the id %lld; --format gguf needs all",
                             files->folder, (long long)i);
        tokens->list[i].type = fallback_type(files, &tokens->list[i]);
    }
    add_word(meta, "tokenizer.ggml.model", "llama");
    add_word(meta, "tokenizer.ggml.pre", "default");
    BASE_TRY(add_texts(tokens, false, meta, error));
    formats_gguf_add_array(meta, "tokenizer.ggml.scores", FORMATS_GGUF_FLOAT,
                           (uint64_t)tokens->count);
    for (int64_t i = 0; i < tokens->count; i++) formats_gguf_item_float(meta, -1000);
    add_types(tokens, meta);
    return SIFR_OK;
}

/* What the converter does for Llama's class by the size of the vocabulary alone. */
static void add_by_size(int64_t vocabulary, formats_gguf_meta *meta) {
    enum { CODE_LLAMA = 32016 };
    if (vocabulary != CODE_LLAMA) return;
    formats_gguf_add_u32(meta, "tokenizer.ggml.prefix_token_id", 32007);
    formats_gguf_add_u32(meta, "tokenizer.ggml.suffix_token_id", 32008);
    formats_gguf_add_u32(meta, "tokenizer.ggml.middle_token_id", 32009);
    formats_gguf_add_u32(meta, "tokenizer.ggml.eot_token_id", 32010);
}

static sifr_status add_tokens(const formats_gguf_files *files, bool byte_level, gguf_tokens *tokens,
                              formats_gguf_meta *meta, sifr_error *error) {
    enum { GRANITE = 49152 };
    const json_t *model = json_object_get(files->tokenizer, "model"),
                 *blank = json_object_get(files->tokenizer_config, "add_prefix_space");
    const char *type = json_string_value(json_object_get(model, "type"));
    int64_t vocabulary = tokens->count;
    if (type && strcmp(type, "BPE") != 0)
        return base_fail(error, SIFR_USAGE,
                         "%s/tokenizer.json: a tokenizer of type %.40s is not supported with "
                         "--format gguf yet (supported: BPE)",
                         files->folder, type);
    if (!byte_level && json_is_boolean(blank))
        formats_gguf_add_bool(meta, "tokenizer.ggml.add_space_prefix", json_is_true(blank));
    BASE_TRY(read_tokens(files, tokens, error));
    bool fallback = !byte_level && json_is_true(json_object_get(model, "byte_fallback"));
    BASE_TRY(fallback ? add_byte_fallback(files, tokens, meta, error)
                      : add_byte_level(files, tokens, meta, error));
    if (!byte_level) add_by_size(vocabulary, meta);
    return formats_gguf_special(files, fallback ? tokens->count : -1,
                                !byte_level && vocabulary == GRANITE, meta, error);
}

sifr_status formats_gguf_vocab(const formats_gguf_files *files, int64_t vocabulary, bool byte_level,
                               formats_gguf_meta *meta, sifr_error *error) {
    gguf_tokens tokens = {.count = vocabulary};
    if (!files->tokenizer)
        return base_fail(error, SIFR_USAGE, "%s: has no tokenizer.json, which --format gguf needs",
                         files->folder);
    if (vocabulary < 1 || vocabulary > VOCABULARY_LIMIT)
        return base_fail(error, SIFR_USAGE, "%s/config.json: \"vocab_size\" is %lld, not 1 to %d",
                         files->folder, (long long)vocabulary, VOCABULARY_LIMIT);
    BASE_TRY(base_alloc((size_t)vocabulary, sizeof *tokens.list, &tokens.list, error));
    sifr_status status = add_tokens(files, byte_level, &tokens, meta, error);
    free(tokens.list);
    return status;
}
