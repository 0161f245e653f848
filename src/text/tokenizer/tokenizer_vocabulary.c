/* The tokens of a tokenizer.json. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"

/* ids are bounded by the number of entries, so that memory is bounded by the file. */
static sifr_status check_id(int64_t id, size_t entries, const char *content, const char *name,
                            sifr_error *error) {
    if (id < 0 || (uint64_t)id >= 2 * (uint64_t)entries + 65536)
        return base_fail(error, SIFR_USAGE,
                         "%s: the id %lld of token \"%.60s\" is outside of what %zu tokens allow",
                         name, (long long)id, content, entries);
    return SIFR_OK;
}

/* One token's place in the list of all tokens, before they are laid end to end. */
typedef struct entry {
    const char *content;
    size_t size;
    uint8_t kind;
} entry;

static sifr_status place(entry *entries, int64_t id, const char *content, size_t size, uint8_t kind,
                         const char *name, sifr_error *error) {
    entry *there = &entries[id];
    bool same = there->kind && there->size == size && memcmp(there->content, content, size) == 0;
    if (there->kind && !same)
        return base_fail(error, SIFR_USAGE,
                         "%s: tokens \"%.60s\" and \"%.60s\" have the same id %lld", name,
                         there->content, content, (long long)id);
    *there = (entry){content, size, (uint8_t)(there->kind | kind)};
    return SIFR_OK;
}

enum { RESPELLED = 8 }; /* beside FORMATS_TOKEN_… */

/* The bytes that a token decodes to; `ready`: its content is these. */
static void spell(text_tokenizer *t, int32_t id, const entry *e, bool ready, uint8_t *out,
                  size_t *count) {
    t->kinds[id] = e->kind & (uint8_t)~RESPELLED;
    if (!ready && t->model == TEXT_MODEL_BYTES) {
        t->kinds[id] &= (uint8_t)~TEXT_TOKEN_LITERAL;
        if (text_bytes_of_content(e->content, e->size, out, count)) return;
        t->kinds[id] |= TEXT_TOKEN_LITERAL;
    }
    *count = e->size;
    if (e->size) memcpy(out, e->content, e->size);
}

/* Lays the bytes that tokens decode to end to end. `again`: the entries have them already, but for
 * those that are spelt anew. */
static sifr_status lay_out(text_tokenizer *t, const entry *entries, bool again, sifr_error *error) {
    size_t total = 0, used = 0;
    for (int32_t i = 0; i < t->vocab_size; i++) {
        if (!base_add_size(total, entries[i].size, &total)) return base_fail_alloc(error, SIZE_MAX);
    }
    BASE_TRY(base_alloc(total + 1, 1, &t->bytes, error));
    BASE_TRY(base_alloc((size_t)t->vocab_size + 1, sizeof *t->offsets, &t->offsets, error));
    BASE_TRY(base_alloc((size_t)t->vocab_size + 1, 1, &t->kinds, error));
    for (int32_t i = 0; i < t->vocab_size; i++) {
        size_t count = 0;
        t->offsets[i] = used;
        if (!entries[i].kind) continue;
        spell(t, i, &entries[i], again && !(entries[i].kind & RESPELLED),
              (uint8_t *)t->bytes + used, &count);
        used += count;
    }
    t->offsets[t->vocab_size] = used;
    return SIFR_OK;
}

/* A token of the model. */
typedef struct word {
    const char *content;
    size_t size;
    int64_t id;
} word;

static sifr_status enter_word(text_tokenizer *t, int32_t id, sifr_error *error) {
    size_t index, size = t->offsets[id + 1] - t->offsets[id];
    const char *bytes = t->bytes + t->offsets[id];
    bool added;
    if (t->kinds[id] & TEXT_TOKEN_LITERAL) return SIFR_OK;
    BASE_TRY(text_table_add(&t->words, bytes, size, &index, &added, error));
    BASE_TRY(base_grow(&t->word_ids, &t->word_ids_capacity, index + 1, sizeof *t->word_ids, error));
    t->word_ids[index] = id;
    if (size == 1) t->byte_ids[(uint8_t)bytes[0]] = id;
    return SIFR_OK;
}

/* {"token": id, …} */
static sifr_status list_object(const json_t *vocabulary, const char *name, word *words,
                               size_t *count, sifr_error *error) {
    const char *content;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)vocabulary, content, value) {
        if (!json_is_integer(value))
            return base_fail(error, SIFR_USAGE, "%s: the id of token \"%.60s\" is no whole number",
                             name, content);
        words[(*count)++] = (word){content, strlen(content), json_integer_value(value)};
    }
    return SIFR_OK;
}

/* [["token", score], …] of Unigram: the id is the place. */
static sifr_status list_array(const json_t *vocabulary, const char *name, word *words,
                              size_t *count, sifr_error *error) {
    const json_t *row;
    size_t i;
    json_array_foreach(vocabulary, i, row) {
        const json_t *content = json_array_get(row, 0);
        if (!json_is_string(content) || json_array_size(row) != 2)
            return base_fail(error, SIFR_USAGE, "%s: model.vocab[%zu] is no [token, score]", name,
                             i);
        words[(*count)++] =
            (word){json_string_value(content), json_string_length(content), (int64_t)i};
    }
    return SIFR_OK;
}

static sifr_status list_words(const text_tokenizer *t, const json_t *vocabulary, const char *name,
                              word **words, size_t *count, sifr_error *error) {
    bool array = t->model == TEXT_MODEL_UNIGRAM;
    size_t size = array ? json_array_size(vocabulary) : json_object_size(vocabulary);
    if (!size)
        return base_fail(error, SIFR_USAGE, "%s: model.vocab must be an %s with tokens", name,
                         array ? "array" : "object");
    BASE_TRY(base_alloc(size, sizeof **words, words, error));
    *count = 0;
    return array ? list_array(vocabulary, name, *words, count, error)
                 : list_object(vocabulary, name, *words, count, error);
}

/* The added tokens among `entries`; one that the model has, too, must have its id. */
static sifr_status place_added(const text_tokenizer *t, const json_t *vocabulary, entry *entries,
                               const char *name, sifr_error *error) {
    for (size_t i = 0; i < t->added_count; i++) {
        const text_added_token *token = &t->added[i];
        const json_t *there = json_object_get(vocabulary, token->content);
        if (there && json_integer_value(there) != token->id)
            return base_fail(error, SIFR_USAGE,
                             "%s: added token \"%.60s\" has id %d, but %lld in model.vocab", name,
                             token->content, token->id, (long long)json_integer_value(there));
        uint8_t kind = token->special ? TEXT_TOKEN_THERE | TEXT_TOKEN_SPECIAL : TEXT_TOKEN_THERE;
        BASE_TRY(place(entries, token->id, token->content, token->size, kind, name, error));
    }
    return SIFR_OK;
}

static sifr_status check_words(text_tokenizer *t, const word *words, size_t count, const char *name,
                               sifr_error *error) {
    bool by_prefix = t->model == TEXT_MODEL_WORDPIECE || t->model == TEXT_MODEL_UNIGRAM;
    size_t all = count + t->added_count;
    int64_t largest = -1;
    for (size_t i = 0; i < count; i++) {
        BASE_TRY(check_id(words[i].id, all, words[i].content, name, error));
        if (by_prefix && words[i].size > TEXT_TOKEN_LENGTH)
            return base_fail(error, SIFR_USAGE, "%s: token %lld is longer than %d bytes", name,
                             (long long)words[i].id, TEXT_TOKEN_LENGTH);
        largest = base_max_i64(largest, words[i].id);
    }
    for (size_t i = 0; i < t->added_count; i++) {
        BASE_TRY(check_id(t->added[i].id, all, t->added[i].content, name, error));
        largest = base_max_i64(largest, t->added[i].id);
    }
    t->vocab_size = (int32_t)(largest + 1);
    return SIFR_OK;
}

sifr_status text_tokenizer_read_vocabulary(text_tokenizer *t, const json_t *model, const char *name,
                                           sifr_error *error) {
    const json_t *vocabulary = json_object_get(model, "vocab");
    sifr_status status = SIFR_OK;
    entry *entries = NULL;
    word *words = NULL;
    size_t count = 0;
    BASE_TRY_GOTO(status, list_words(t, vocabulary, name, &words, &count, error), done);
    BASE_TRY_GOTO(status, check_words(t, words, count, name, error), done);
    BASE_TRY_GOTO(status, base_alloc((size_t)t->vocab_size, sizeof *entries, &entries, error),
                  done);
    for (size_t i = 0; i < count; i++) {
        BASE_TRY_GOTO(status,
                      place(entries, words[i].id, words[i].content, words[i].size, TEXT_TOKEN_THERE,
                            name, error),
                      done);
    }
    BASE_TRY_GOTO(status, place_added(t, vocabulary, entries, name, error), done);
    BASE_TRY_GOTO(status, lay_out(t, entries, false, error), done);
    for (int b = 0; b < 256; b++) t->byte_ids[b] = -1;
    for (size_t i = 0; i < count; i++)
        BASE_TRY_GOTO(status, enter_word(t, (int32_t)words[i].id, error), done);
done:
    free(entries);
    free(words);
    return status;
}

sifr_status text_tokenizer_respell(text_tokenizer *t, sifr_error *error) {
    entry *entries = NULL;
    bool other = false;
    for (size_t i = 0; i < t->added_count; i++) other |= t->added[i].normal != NULL;
    if (!other) return SIFR_OK;
    BASE_TRY(base_alloc((size_t)t->vocab_size, sizeof *entries, &entries, error));
    for (int32_t id = 0; id < t->vocab_size; id++)
        entries[id] =
            (entry){t->bytes + t->offsets[id], t->offsets[id + 1] - t->offsets[id], t->kinds[id]};
    for (size_t i = 0; i < t->added_count; i++) {
        const text_added_token *token = &t->added[i];
        if (!token->normal) continue;
        entries[token->id].content = token->normal;
        entries[token->id].size = token->normal_size;
        entries[token->id].kind |= RESPELLED;
    }
    char *bytes = t->bytes;
    size_t *offsets = t->offsets;
    uint8_t *kinds = t->kinds;
    t->bytes = NULL, t->offsets = NULL, t->kinds = NULL;
    sifr_status status = lay_out(t, entries, true, error);
    free(bytes);
    free(offsets);
    free(kinds);
    free(entries);
    return status;
}

sifr_status text_tokenizer_lay_out_decoded(text_tokenizer *t, sifr_error *error) {
    text_texts texts = {0};
    text_tokenizer_text out = {0};
    sifr_status status = SIFR_OK;
    if (t->model == TEXT_MODEL_BYTES) return SIFR_OK;
    size_t limit = 64 * t->offsets[t->vocab_size] + (1 << 20);
    BASE_TRY(base_alloc((size_t)t->vocab_size + 1, sizeof *t->decoded_offsets, &t->decoded_offsets,
                        error));
    for (int32_t id = 0; id < t->vocab_size; id++) {
        size_t size = t->offsets[id + 1] - t->offsets[id];
        const char *bytes = t->bytes + t->offsets[id];
        t->decoded_offsets[id] = out.count;
        if (t->kinds[id] & TEXT_TOKEN_SPECIAL) { /* nobody wants blanks around its name */
            BASE_TRY_GOTO(status, text_tokenizer_text_append(&out, bytes, size, error), done);
            continue;
        }
        texts.count = texts.text.count = 0;
        BASE_TRY_GOTO(status, text_tokenizer_text_append(&texts.text, bytes, size, error), done);
        BASE_TRY_GOTO(status, text_texts_end(&texts, error), done);
        BASE_TRY_GOTO(status, text_decoder_apply(&t->decoder, &texts, true, &out, error), done);
        BASE_TRY_GOTO(status, text_check_growth(out.count, limit, error), done);
    }
    t->decoded_offsets[t->vocab_size] = out.count;
    t->decoded = out.bytes ? out.bytes : NULL;
    out = (text_tokenizer_text){0};
done:
    text_texts_free(&texts);
    text_tokenizer_text_free(&out);
    return status;
}
