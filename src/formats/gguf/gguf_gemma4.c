#include "formats/gguf/gguf_gemma4.h"

#include <string.h>

static sifr_status refuse(const formats_gguf_files *files, const char *what, sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "%s/tokenizer.json: %s; llama.cpp's gemma4 writes blanks as U+2581, merges "
                     "whole lines, and has bytes as a fallback, so --format gguf cannot carry it",
                     files->folder, what);
}

static bool is_text(const json_t *object, const char *key, const char *text) {
    const char *value = json_string_value(json_object_get(object, key));
    return value && strcmp(value, text) == 0;
}

/* {"type": "Replace", "pattern": {"String": " "}, "content": "▁"} */
static bool writes_blanks(const json_t *normalizer) {
    return is_text(normalizer, "type", "Replace") &&
           is_text(normalizer, "content", "\xe2\x96\x81") &&
           is_text(json_object_get(normalizer, "pattern"), "String", " ");
}

/* None, or one that looks for blanks, of which the normalizer leaves none. */
static bool splits_nothing(const json_t *split) {
    if (!split || json_is_null(split)) return true;
    return is_text(split, "type", "Split") &&
           is_text(json_object_get(split, "pattern"), "String", " ");
}

/* Parts of a merge, "a b" or ["a", "b"]. */
static const char *part_of(const json_t *merge, int which, size_t *size) {
    const char *text = json_string_value(merge),
               *gap = text ? strchr(text + (*text != 0), ' ') : NULL;
    const json_t *part = json_array_get(merge, (size_t)which);
    *size = 0;
    if (!text) return *size = json_string_length(part), json_string_value(part);
    if (!gap) return NULL;
    *size = which ? strlen(gap + 1) : (size_t)(gap - text);
    return which ? gap + 1 : text;
}

static bool is_lines(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (text[i] != '\n') return false;
    return true;
}

/* Ends of lines are merged with each other alone: llama.cpp splits there first. */
static bool keeps_lines(const json_t *merge) {
    size_t left, right;
    const char *a = part_of(merge, 0, &left), *b = part_of(merge, 1, &right);
    if (!a || !b) return false;
    bool some = memchr(a, '\n', left) || memchr(b, '\n', right);
    return !some || (is_lines(a, left) && is_lines(b, right));
}

sifr_status formats_gguf_gemma4_check(const formats_gguf_files *files, sifr_error *error) {
    const json_t *model = json_object_get(files->tokenizer, "model"), *merge;
    const json_t *merges = json_object_get(model, "merges");
    size_t i;
    if (!json_is_true(json_object_get(model, "byte_fallback")))
        return refuse(files, "\"byte_fallback\" is not set", error);
    if (!writes_blanks(json_object_get(files->tokenizer, "normalizer")))
        return refuse(files, "its \"normalizer\" is another", error);
    if (!splits_nothing(json_object_get(files->tokenizer, "pre_tokenizer")))
        return refuse(files, "its \"pre_tokenizer\" is another", error);
    if (json_array_size(merges) == 0) return refuse(files, "it has no merges", error);
    json_array_foreach(merges, i, merge) {
        if (!keeps_lines(merge))
            return refuse(files, "it merges an end of line with other text", error);
    }
    return SIFR_OK;
}

sifr_status formats_gguf_gemma4_suppressed(const formats_gguf_files *files, formats_gguf_meta *meta,
                                           sifr_error *error) {
    const json_t *list = json_object_get(files->generation, "suppress_tokens"), *id;
    size_t i;
    if (!is_text(files->config, "model_type", "gemma4_unified_text") || !json_array_size(list))
        return SIFR_OK;
    json_array_foreach(list, i, id) {
        if (json_is_integer(id) && json_integer_value(id) >= 0 &&
            json_integer_value(id) <= INT32_MAX)
            continue;
        return base_fail(error, SIFR_USAGE,
                         "%s/generation_config.json: \"suppress_tokens\" must hold ids of tokens",
                         files->folder);
    }
    formats_gguf_add_array(meta, "tokenizer.ggml.suppress_tokens", FORMATS_GGUF_I32,
                           json_array_size(list));
    json_array_foreach(list, i, id) formats_gguf_item_i32(meta, (int32_t)json_integer_value(id));
    return SIFR_OK;
}

void formats_gguf_gemma4_show(formats_gguf_tokens *tokens) {
    static const char *const shown[] = {"<|channel>",   "<channel|>",       "<|tool_call>",
                                        "<tool_call|>", "<|tool_response>", "<tool_response|>",
                                        "<|\"|>"};
    for (int64_t i = 0; i < tokens->count; i++) {
        formats_gguf_token *t = &tokens->list[i];
        for (size_t k = 0; t->text && k < sizeof shown / sizeof *shown; k++) {
            if (t->size != strlen(shown[k]) || memcmp(t->text, shown[k], t->size) != 0) continue;
            t->type = FORMATS_GGUF_TOKEN_USER;
        }
    }
}
