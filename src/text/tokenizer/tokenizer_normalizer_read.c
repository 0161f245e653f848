/* From "normalizer" of a tokenizer.json to steps. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_normalizer.h"

enum { CONTENT_AT_MOST = 4096 };

/* A pattern that matches `text` itself. */
static sifr_status compile_literal(const char *text, const char *name, text_regex **out,
                                   sifr_error *error) {
    static const char special[] = "\\^$.|?*+()[]{}";
    size_t size = strlen(text), used = 0;
    char *pattern;
    if (size > 1024) return base_fail(error, SIFR_USAGE, "%s: a pattern of %zu bytes", name, size);
    BASE_TRY(base_alloc(2 * size + 1, 1, &pattern, error));
    for (size_t i = 0; i < size; i++) {
        if (strchr(special, text[i])) pattern[used++] = '\\';
        pattern[used++] = text[i];
    }
    sifr_status status = text_regex_compile(pattern, name, out, error);
    free(pattern);
    return status;
}

sifr_status text_pattern_read(const json_t *part, const char *name, text_regex **regex,
                              char **literal, sifr_error *error) {
    const json_t *pattern = json_object_get(part, "pattern");
    const char *text = json_string_value(json_object_get(pattern, "String"));
    const char *expression = json_string_value(json_object_get(pattern, "Regex"));
    if (expression) return text_regex_compile(expression, name, regex, error);
    if (!text || !*text)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"pattern\" must be {\"String\": …} or {\"Regex\": …}, not empty",
                         name);
    if (!literal) return compile_literal(text, name, regex, error);
    return base_copy_text(text, strlen(text), literal, error);
}

static sifr_status read_text(const json_t *part, const char *key, const char *name, char **out,
                             size_t *size, sifr_error *error) {
    const char *text;
    BASE_TRY(base_json_string(part, key, "", &text, name, error));
    *size = strlen(text);
    if (*size > CONTENT_AT_MOST)
        return base_fail(error, SIFR_USAGE, "%s: \"%s\" is longer than %d bytes", name, key,
                         CONTENT_AT_MOST);
    return base_copy_text(text, *size, out, error);
}

static sifr_status read_bert(text_normalizer_step *step, const json_t *part, const char *name,
                             sifr_error *error) {
    BASE_TRY(base_json_bool(part, "clean_text", true, &step->clean, name, error));
    BASE_TRY(base_json_bool(part, "handle_chinese_chars", true, &step->chinese, name, error));
    BASE_TRY(base_json_bool(part, "lowercase", true, &step->lowercase, name, error));
    return base_json_bool(part, "strip_accents", step->lowercase, &step->accents, name, error);
}

static sifr_status read_step(text_normalizer_step *step, const json_t *part, const char *name,
                             sifr_error *error) {
    static const struct {
        const char *type;
        text_normalizer_kind kind;
        text_normal_form form;
    } kinds[] = {
        {"NFC", TEXT_NORMALIZER_FORM, TEXT_NFC},
        {"NFD", TEXT_NORMALIZER_FORM, TEXT_NFD},
        {"NFKC", TEXT_NORMALIZER_FORM, TEXT_NFKC},
        {"NFKD", TEXT_NORMALIZER_FORM, TEXT_NFKD},
        {"Lowercase", TEXT_NORMALIZER_LOWERCASE, 0},
        {"Strip", TEXT_NORMALIZER_STRIP, 0},
        {"StripAccents", TEXT_NORMALIZER_STRIP_ACCENTS, 0},
        {"Replace", TEXT_NORMALIZER_REPLACE, 0},
        {"Prepend", TEXT_NORMALIZER_PREPEND, 0},
        {"Nmt", TEXT_NORMALIZER_NMT, 0},
        {"Precompiled", TEXT_NORMALIZER_CHARSMAP, 0},
        {"BertNormalizer", TEXT_NORMALIZER_BERT, 0},
        {"ByteLevel", TEXT_NORMALIZER_BYTES, 0},
        {TEXT_SENTENCEPIECE, TEXT_NORMALIZER_SENTENCEPIECE, 0},
    };
    const char *type = json_string_value(json_object_get(part, "type")), *map;
    size_t i = 0, count = sizeof kinds / sizeof *kinds;
    while (i < count && (!type || strcmp(type, kinds[i].type) != 0)) i++;
    if (i == count)
        return text_tokenizer_refuse(error, name, "normalizer", type ? type : "(no type)",
                                     "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, "
                                     "Replace, Prepend, Nmt, Precompiled, BertNormalizer, "
                                     "ByteLevel, Sequence");
    step->kind = kinds[i].kind;
    step->form = kinds[i].form;
    switch (step->kind) {
    case TEXT_NORMALIZER_STRIP:
        BASE_TRY(base_json_bool(part, "strip_left", true, &step->left, name, error));
        return base_json_bool(part, "strip_right", true, &step->right, name, error);
    case TEXT_NORMALIZER_REPLACE:
        BASE_TRY(text_pattern_read(part, name, &step->regex, &step->from, error));
        if (step->from) step->from_size = strlen(step->from);
        return read_text(part, "content", name, &step->to, &step->to_size, error);
    case TEXT_NORMALIZER_PREPEND:
        return read_text(part, "prepend", name, &step->to, &step->to_size, error);
    case TEXT_NORMALIZER_SENTENCEPIECE:
        BASE_TRY(base_json_bool(part, "add_dummy_prefix", true, &step->prefix, name, error));
        BASE_TRY(base_json_bool(part, "remove_extra_whitespaces", true, &step->remove_extra, name,
                                error));
        BASE_TRY(base_json_string(part, "precompiled_charsmap", "", &map, name, error));
        return text_charsmap_read(map, name, &step->map, error);
    case TEXT_NORMALIZER_CHARSMAP:
        BASE_TRY(base_json_string(part, "precompiled_charsmap", "", &map, name, error));
        return text_charsmap_read(map, name, &step->map, error);
    case TEXT_NORMALIZER_BERT:
        return read_bert(step, part, name, error);
    default:
        return SIFR_OK;
    }
}

sifr_status text_normalizer_read(text_normalizer *normalizer, const json_t *part, const char *name,
                                 sifr_error *error) {
    const json_t *list[TEXT_STEPS_AT_MOST];
    size_t count;
    BASE_TRY(text_tokenizer_flatten(part, "normalizer", "normalizers", name, list, &count, error));
    for (size_t i = 0; i < count; i++) {
        normalizer->count = i + 1; /* what a step holds is freed also where reading it fails */
        BASE_TRY(read_step(&normalizer->steps[i], list[i], name, error));
    }
    return SIFR_OK;
}
