/* The name of a byte-level BPE's splitting: as llama.cpp's converter finds it, by the ids of a test
 * text, and for a vocabulary that it does not know by the pattern in tokenizer.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/sha256.h"
#include "formats/folder.h"
#include "formats/gguf/gguf_vocab.h"
#include "text/tokenizer/tokenizer.h"

/* "[1, 2, 3]", as Python prints a list. */
static sifr_status print_ids(const text_tokenizer_ids *ids, char **out, size_t *size,
                             sifr_error *error) {
    enum { LONGEST = 14 };
    BASE_TRY(base_alloc(ids->count + 1, LONGEST, out, error));
    size_t at = 0;
    (*out)[at++] = '[';
    for (size_t i = 0; i < ids->count; i++)
        at += (size_t)snprintf(*out + at, LONGEST, i ? ", %d" : "%d", (int)ids->ids[i]);
    (*out)[at++] = ']';
    *size = at;
    return SIFR_OK;
}

static sifr_status digest_of(const char *folder, char digest[65], sifr_error *error) {
    text_tokenizer *tokenizer;
    text_tokenizer_scratch *scratch = NULL;
    text_tokenizer_ids ids = {0};
    char *text = NULL;
    size_t size = 0;
    BASE_TRY(text_tokenizer_load(folder, &tokenizer, error));
    sifr_status status = text_tokenizer_scratch_new(tokenizer, &scratch, error);
    if (status == SIFR_OK)
        status = text_tokenizer_encode(tokenizer, scratch, formats_gguf_pre_text,
                                       strlen(formats_gguf_pre_text), true, &ids, error);
    if (status == SIFR_OK) status = print_ids(&ids, &text, &size, error);
    if (status == SIFR_OK) base_sha256_hex(text, size, digest);
    free(text);
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(scratch);
    text_tokenizer_free(tokenizer);
    return status;
}

static bool is_type(const json_t *part, const char *type) {
    const char *found = json_string_value(json_object_get(part, "type"));
    return found && strcmp(found, type) == 0;
}

/* The regular expression of a pre-tokenizer that is one Split and a ByteLevel; "": a ByteLevel with
 * GPT-2's own; NULL: another. */
static const char *pattern_of(const json_t *pre) {
    if (json_is_true(json_object_get(pre, "add_prefix_space"))) return NULL;
    if (is_type(pre, "ByteLevel"))
        return json_is_false(json_object_get(pre, "use_regex")) ? NULL : "";
    const json_t *list = json_object_get(pre, "pretokenizers"), *split = json_array_get(list, 0),
                 *level = json_array_get(list, 1);
    if (!is_type(pre, "Sequence") || json_array_size(list) != 2 || !is_type(split, "Split") ||
        !is_type(level, "ByteLevel") || json_is_true(json_object_get(level, "add_prefix_space")) ||
        !json_is_false(json_object_get(level, "use_regex")))
        return NULL;
    return json_string_value(json_object_get(json_object_get(split, "pattern"), "Regex"));
}

static const char *name_of_pattern(const char *pattern) {
    static const formats_gguf_pre_name patterns[] = {
        {"", "gpt-2"},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         "llama-bpe"},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         "qwen2"},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
         " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         "qwen35"},
    };
    for (size_t i = 0; pattern && i < sizeof patterns / sizeof *patterns; i++) {
        if (strcmp(pattern, patterns[i].digest) == 0) return patterns[i].name;
    }
    return NULL;
}

/* llama.cpp normalizes no text of a byte-level BPE. For NFC that is said, since published
 * vocabularies have it so; others belong to no pattern. */
static bool keeps_texts(const formats_gguf_files *files, const sifr_log *log) {
    const json_t *normalizer = json_object_get(files->tokenizer, "normalizer");
    const json_t *list = json_object_get(normalizer, "normalizers");
    if (!json_is_object(normalizer) || (json_is_array(list) && json_array_size(list) == 0))
        return true;
    const char *type = json_string_value(json_object_get(normalizer, "type"));
    base_log(log, SIFR_LOG_WARNING,
             "%s/tokenizer.json: llama.cpp leaves out its normalizer %.40s: texts that it changes "
             "get other tokens there",
             files->folder, type ? type : "");
    return type && strcmp(type, "NFC") == 0;
}

sifr_status formats_gguf_pre(const formats_gguf_files *files, const sifr_log *log,
                             const char **name, sifr_error *error) {
    char digest[65];
    sifr_status status = digest_of(files->folder, digest, error);
    if (status == SIFR_NO_MEMORY) return status;
    bool kept = keeps_texts(files, log);
    for (size_t i = 0; status == SIFR_OK && i < formats_gguf_pre_count; i++) {
        if (strcmp(digest, formats_gguf_pre_names[i].digest) == 0) {
            *name = formats_gguf_pre_names[i].name;
            return SIFR_OK;
        }
    }
    *name = name_of_pattern(pattern_of(json_object_get(files->tokenizer, "pre_tokenizer")));
    if (*name && kept) return SIFR_OK;
    if (status != SIFR_OK) return status;
    return base_fail(error, SIFR_USAGE,
                     "%s/tokenizer.json: how it splits text has no name in llama.cpp (SHA-256 of "
                     "the test text's ids: %s); --format gguf cannot carry it",
                     files->folder, digest);
}
