/* tokenizer.json beside tokenizer.model: its added tokens, and whether both are one vocabulary. */
#include <string.h>

#include "base/json.h"
#include "formats/gguf/gguf_tokens.h"

typedef struct gguf_beside {
    const formats_gguf_files *files;
    formats_gguf_tokens *tokens;
    int64_t pieces; /* of tokenizer.model */
    sifr_error *error;
} gguf_beside;

static bool is_text(const formats_gguf_token *t, const char *text, size_t size) {
    return t->text && t->size == size && memcmp(t->text, text, size) == 0;
}

static sifr_status disagree(const gguf_beside *b, int64_t id, const char *text, size_t size) {
    const formats_gguf_token *t = &b->tokens->list[id];
    return base_fail(b->error, SIFR_USAGE,
                     "%s: id %lld is \"%.*s\" in tokenizer.json and \"%.*s\" in the files beside "
                     "it: two vocabularies; remove the one that the model was not trained with",
                     b->files->folder, (long long)id, (int)(size < 60 ? size : 60), text,
                     (int)(t->size < 60 ? t->size : 60), t->text ? t->text : "");
}

/* An entry of tokenizer.json's model; those behind the pieces must be added tokens too. */
static sifr_status check_entry(const gguf_beside *b, const char *text, size_t size, int64_t id) {
    if (id >= 0 && id < b->pieces && id < b->tokens->count &&
        !is_text(&b->tokens->list[id], text, size))
        return disagree(b, id, text, size);
    if (id >= 0 && id < b->pieces) return SIFR_OK;
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(b->files->tokenizer, "added_tokens"), i, one) {
        const json_t *at = json_object_get(one, "id");
        if (json_is_integer(at) && json_integer_value(at) == id) return SIFR_OK;
    }
    return base_fail(b->error, SIFR_USAGE,
                     "%s: \"%.*s\", id %lld of tokenizer.json, is neither a piece of "
                     "tokenizer.model, which has %lld, nor an added token: two vocabularies; "
                     "remove the one that the model was not trained with",
                     b->files->folder, (int)(size < 60 ? size : 60), text, (long long)id,
                     (long long)b->pieces);
}

sifr_status formats_gguf_check_pieces(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                                      int64_t pieces, sifr_error *error) {
    gguf_beside b = {files, tokens, pieces, error};
    json_t *vocab = json_object_get(json_object_get(files->tokenizer, "model"), "vocab"), *value;
    const char *key;
    size_t size, i;
    json_object_keylen_foreach(vocab, key, size, value) {
        if (json_is_integer(value)) BASE_TRY(check_entry(&b, key, size, json_integer_value(value)));
    }
    if (!json_is_array(vocab)) return SIFR_OK;
    json_array_foreach(vocab, i, value) {
        const json_t *text = json_array_get(value, 0);
        if (json_is_string(text))
            BASE_TRY(
                check_entry(&b, json_string_value(text), json_string_length(text), (int64_t)i));
    }
    return SIFR_OK;
}

static sifr_status add(const gguf_beside *b, const json_t *entry) {
    const json_t *content = json_object_get(entry, "content"),
                 *number = json_object_get(entry, "id");
    const char *text = json_string_value(content);
    size_t size = json_string_length(content);
    bool special = json_is_true(json_object_get(entry, "special"));
    int64_t id = json_is_integer(number) ? json_integer_value(number) : -1;
    if (!text || id < 0 || id >= b->tokens->count) return SIFR_OK;
    formats_gguf_token *t = &b->tokens->list[id];
    if (t->text && !is_text(t, text, size)) return disagree(b, id, text, size);
    if (t->type == FORMATS_GGUF_TOKEN_UNKNOWN || t->type == FORMATS_GGUF_TOKEN_BYTE) return SIFR_OK;
    if (t->added) return SIFR_OK; /* typed by tokenizer_config.json, as the converter does */
    enum { SCORE = -1000 };
    *t =
        (formats_gguf_token){.text = text,
                             .size = size,
                             .type = special ? FORMATS_GGUF_TOKEN_CONTROL : FORMATS_GGUF_TOKEN_USER,
                             .score = id < b->pieces ? t->score : SCORE,
                             .added = true};
    return SIFR_OK;
}

sifr_status formats_gguf_add_beside(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                                    int64_t pieces, sifr_error *error) {
    const gguf_beside b = {files, tokens, pieces, error};
    const json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(files->tokenizer, "added_tokens"), i, entry)
        BASE_TRY(add(&b, entry));
    return SIFR_OK;
}
