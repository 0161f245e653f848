/* Tokens and merges of tokenizer.json: get_vocab_base, LlamaHfVocab and SpecialVocab's merges of
 * llama.cpp's converter. */
#include "formats/gguf/gguf_vocab.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder_file.h"
#include "base/heap.h"
#include "base/json.h"
#include "formats/folder.h"
#include "formats/gguf/gguf_gemma4.h"
#include "formats/gguf/gguf_spm.h"

enum { FILE_LIMIT = 1 << 28, VOCABULARY_LIMIT = 1 << 24 };

/* --- files --- */

static sifr_status read_json(const char *folder, const char *name, json_t **out,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    *out = NULL;
    BASE_TRY(base_path_join(path, folder, name, error));
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_folder_file(folder, name, path, error));
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
    char *buffer;
    BASE_TRY(base_alloc(2 * (json_string_length(left) + json_string_length(right)) + 1, 1, &buffer,
                        error));
    size_t size = put_part(buffer, left);
    buffer[size++] = ' ';
    size += put_part(buffer + size, right);
    formats_gguf_item_text(meta, buffer, size);
    free(buffer);
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
                                  const formats_gguf_tokens *tokens, const sifr_log *log,
                                  bool *bos_default, formats_gguf_meta *meta, sifr_error *error) {
    const char *pre;
    BASE_TRY(formats_gguf_pre(files, log, &pre, error));
    /* Of the names that patterns have; of others llama.cpp's choice is not known here, and said. */
    *bos_default =
        strcmp(pre, "gpt-2") != 0 && strcmp(pre, "qwen2") != 0 && strcmp(pre, "qwen35") != 0;
    BASE_TRY(formats_gguf_add_tokens(tokens, files->folder, "gpt2", pre, false, meta, error));
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

/* Types of a tokenizer with bytes as a fallback: by tokenizer_config.json, and where it names none
 * by tokenizer.json. */
static formats_gguf_token_type fallback_type(const formats_gguf_files *files,
                                             const formats_gguf_token *t) {
    if (is_byte(t)) return FORMATS_GGUF_TOKEN_BYTE;
    if (!t->added) return FORMATS_GGUF_TOKEN_NORMAL;
    if (is_named(files->tokenizer_config, t)) return FORMATS_GGUF_TOKEN_CONTROL;
    return t->in_model ? t->type : FORMATS_GGUF_TOKEN_USER;
}

/* BPE with bytes as a fallback, as SentencePiece's. */
static sifr_status read_byte_fallback(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                                      sifr_error *error) {
    for (int64_t i = 0; i < tokens->count; i++) {
        if (!tokens->list[i].text) continue;
        tokens->list[i].type = fallback_type(files, &tokens->list[i]);
        tokens->list[i].blanks = false;
    }
    return formats_gguf_score_by_merges(files, tokens, error);
}

/* tokenizer.json, whose model must be BPE. */
static sifr_status read_bpe(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                            sifr_error *error) {
    const json_t *model = json_object_get(files->tokenizer, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!files->tokenizer)
        return base_fail(error, SIFR_USAGE, "%s: has no tokenizer.json, which --format gguf needs",
                         files->folder);
    if (type && strcmp(type, "BPE") != 0)
        return base_fail(error, SIFR_USAGE,
                         "%s/tokenizer.json: a tokenizer of type %.40s is not supported with "
                         "--format gguf yet (supported: BPE)",
                         files->folder, type);
    return read_tokens(files, tokens, error);
}

/* What the converter adds for some families, whatever the files say. */
static void add_by_kind(formats_gguf_vocab_kind kind, int64_t vocabulary, formats_gguf_meta *meta) {
    enum { CODE_LLAMA = 32016, CODE_LLAMA_EOT = 32010, CODE_GEMMA_EOT = 107 };
    if (kind == FORMATS_GGUF_LLAMA && vocabulary == CODE_LLAMA)
        formats_gguf_add_u32(meta, "tokenizer.ggml.eot_token_id", CODE_LLAMA_EOT);
    if (kind == FORMATS_GGUF_GEMMA)
        formats_gguf_add_u32(meta, "tokenizer.ggml.eot_token_id", CODE_GEMMA_EOT);
}

static bool has_gpt2_class(const formats_gguf_files *files) {
    const char *class =
        json_string_value(json_object_get(files->tokenizer_config, "tokenizer_class"));
    return class && strcmp(class, "GPT2Tokenizer") == 0;
}

static bool is_gemma(formats_gguf_vocab_kind kind) {
    return kind == FORMATS_GGUF_GEMMA || kind == FORMATS_GGUF_GEMMA2;
}

/* tokenizer.json is what the model learned with; where its merges are not those of
 * tokenizer.model's scores, as transformers 5 writes some, it gives the scores. */
static sifr_status check_scores(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                                bool *prefix, const sifr_log *log, sifr_error *error) {
    const json_t *merges = json_object_get(json_object_get(files->tokenizer, "model"), "merges");
    sifr_error other = {0};
    sifr_status status = formats_gguf_spm_check(files, tokens, prefix, log, error);
    if (status != SIFR_USAGE || tokens->pieces == 0 || json_array_size(merges) == 0) return status;
    BASE_TRY(formats_gguf_score_by_merges(files, tokens, &other));
    if (formats_gguf_spm_check(files, tokens, prefix, log, &other) != SIFR_OK) return status;
    base_log(log, SIFR_LOG_WARNING,
             "%s: tokenizer.json merges in another order than tokenizer.model: its order is "
             "written",
             files->folder);
    return SIFR_OK;
}

static sifr_status add_gemma4(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                              formats_gguf_meta *meta, sifr_error *error) {
    BASE_TRY(formats_gguf_gemma4_check(files, error));
    formats_gguf_gemma4_show(tokens);
    BASE_TRY(formats_gguf_add_tokens(tokens, files->folder, "gemma4", NULL, true, meta, error));
    formats_gguf_add_bool(meta, "tokenizer.ggml.add_space_prefix", false);
    BASE_TRY(formats_gguf_gemma4_suppressed(files, meta, error));
    return add_merges(files, meta, error);
}

/* A vocabulary with scores, and whether a blank goes in front: what the converter writes, where
 * that is how the folder's tokenizer splits. */
static sifr_status add_scored(const formats_gguf_files *files, formats_gguf_vocab_kind kind,
                              formats_gguf_tokens *tokens, const sifr_log *log,
                              formats_gguf_meta *meta, sifr_error *error) {
    const json_t *said = json_object_get(files->tokenizer_config, "add_prefix_space");
    if (kind == FORMATS_GGUF_GEMMA4) return add_gemma4(files, tokens, meta, error);
    bool written = is_gemma(kind) || (kind == FORMATS_GGUF_LLAMA && json_is_boolean(said));
    bool first = !is_gemma(kind) && !(written && json_is_false(said)), prefix = first;
    BASE_TRY(check_scores(files, tokens, &prefix, log, error));
    if (written || prefix != first)
        formats_gguf_add_bool(meta, "tokenizer.ggml.add_space_prefix", prefix);
    return formats_gguf_add_tokens(tokens, files->folder, "llama", "default", true, meta, error);
}

static sifr_status add_unscored(const formats_gguf_files *files, formats_gguf_vocab_kind kind,
                                const formats_gguf_tokens *tokens, const sifr_log *log,
                                bool *bos_default, formats_gguf_meta *meta, sifr_error *error) {
    const json_t *said = json_object_get(files->tokenizer_config, "add_prefix_space");
    if (kind == FORMATS_GGUF_GEMMA4) return formats_gguf_gemma4_check(files, error);
    if (kind == FORMATS_GGUF_LLAMA && json_is_boolean(said))
        formats_gguf_add_bool(meta, "tokenizer.ggml.add_space_prefix", json_is_true(said));
    return add_byte_level(files, tokens, log, bos_default, meta, error);
}

/* *scored: SentencePiece's tokens, or those of a BPE that is made as SentencePiece's. */
static sifr_status read_vocab(const formats_gguf_files *files, formats_gguf_vocab_kind kind,
                              formats_gguf_sentencepiece *pieces, formats_gguf_tokens *tokens,
                              bool *scored, sifr_error *error) {
    const json_t *model = json_object_get(files->tokenizer, "model");
    *scored = false;
    if (kind != FORMATS_GGUF_BYTE_LEVEL && kind != FORMATS_GGUF_GLM4 && kind != FORMATS_GGUF_GEMMA4)
        BASE_TRY(formats_gguf_sentencepiece_read(files, kind == FORMATS_GGUF_PHI3, pieces, tokens,
                                                 scored, error));
    if (*scored) return SIFR_OK;
    BASE_TRY(read_bpe(files, tokens, error));
    *scored = json_is_true(json_object_get(model, "byte_fallback"));
    return *scored ? read_byte_fallback(files, tokens, error) : SIFR_OK;
}

static bool has_token(const formats_gguf_tokens *tokens, const char *text) {
    for (int64_t i = 0; i < tokens->count; i++) {
        const formats_gguf_token *t = &tokens->list[i];
        if (t->text && t->size == strlen(text) && memcmp(t->text, text, t->size) == 0) return true;
    }
    return false;
}

/* llama.cpp knows Phi-3 by "phi3" in general.name, and stops where a token of its is not there. */
static sifr_status check_phi3_name(const formats_gguf_files *files,
                                   const formats_gguf_tokens *tokens, sifr_error *error) {
    static const char *const needed[] = {"</s>", "<unk>", "<s>", "<|endoftext|>"};
    char path[PATH_MAX];
    const char *id = json_string_value(json_object_get(files->config, "_name_or_path"));
    if (!realpath(files->folder, path)) snprintf(path, sizeof path, "%s", files->folder);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool named = strcasestr(name, "phi3") || (id && strcasestr(id, "phi3"));
    for (size_t i = 0; named && i < sizeof needed / sizeof *needed; i++) {
        if (has_token(tokens, needed[i])) continue;
        return base_fail(
            error, SIFR_USAGE,
            "%s: llama.cpp takes a model with \"phi3\" in its name for Phi-3 and needs "
            "the token %s, which this vocabulary lacks: give the folder another name",
            files->folder, needed[i]);
    }
    return SIFR_OK;
}

/* GGUF has no place for what an added token takes of the text beside it. */
static void say_stripped(const formats_gguf_files *files, const sifr_log *log) {
    static const char *const keys[] = {"lstrip", "rstrip", "single_word"};
    const json_t *entry;
    size_t i, k;
    json_array_foreach(json_object_get(files->tokenizer, "added_tokens"), i, entry) {
        for (k = 0; k < 3 && !json_is_true(json_object_get(entry, keys[k])); k++) continue;
        const char *text = json_string_value(json_object_get(entry, "content"));
        if (k == 3 || !text) continue;
        base_log(log, SIFR_LOG_WARNING,
                 "%s/tokenizer.json: \"%s\" of \"%.60s\" and the like are left out: beside added "
                 "tokens llama.cpp keeps blanks",
                 files->folder, keys[k], text);
        return;
    }
}

static sifr_status add_tokens(const formats_gguf_files *files, formats_gguf_vocab_kind kind,
                              formats_gguf_tokens *tokens, const sifr_log *log,
                              formats_gguf_meta *meta, sifr_error *error) {
    enum { GRANITE = 49152 };
    formats_gguf_sentencepiece pieces = {0};
    bool scored, bos_default = true;
    if (kind == FORMATS_GGUF_PHI3 && has_gpt2_class(files)) kind = FORMATS_GGUF_BYTE_LEVEL;
    sifr_status status = read_vocab(files, kind, &pieces, tokens, &scored, error);
    if (status == SIFR_OK) status = check_phi3_name(files, tokens, error);
    if (status == SIFR_OK)
        status = scored ? add_scored(files, kind, tokens, log, meta, error)
                        : add_unscored(files, kind, tokens, log, &bos_default, meta, error);
    formats_gguf_sentencepiece_free(&pieces);
    if (status != SIFR_OK) return status;
    say_stripped(files, log);
    add_by_kind(kind, tokens->count, meta);
    formats_gguf_special_rules rules = {.vocabulary = scored ? tokens->count : -1,
                                        .no_bos =
                                            kind == FORMATS_GGUF_LLAMA && tokens->count == GRANITE,
                                        .bos = kind == FORMATS_GGUF_GEMMA4,
                                        .glm = kind == FORMATS_GGUF_GLM4,
                                        .bos_default = bos_default,
                                        .log = log};
    return formats_gguf_special(files, rules, meta, error);
}

sifr_status formats_gguf_vocab(const formats_gguf_files *files, int64_t vocabulary,
                               formats_gguf_vocab_kind kind, const sifr_log *log,
                               formats_gguf_meta *meta, sifr_error *error) {
    formats_gguf_tokens tokens = {.count = vocabulary};
    if (vocabulary < 1 || vocabulary > VOCABULARY_LIMIT)
        return base_fail(error, SIFR_USAGE, "%s/config.json: \"vocab_size\" is %lld, not 1 to %d",
                         files->folder, (long long)vocabulary, VOCABULARY_LIMIT);
    BASE_TRY(base_alloc((size_t)vocabulary, sizeof *tokens.list, &tokens.list, error));
    sifr_status status = add_tokens(files, kind, &tokens, log, meta, error);
    free(tokens.list);
    return status;
}
