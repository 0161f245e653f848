/* Text to ids: repair of invalid UTF-8, added tokens, normalizing, added tokens of the normalized
 * text, splitting, the model. */
#include <stdlib.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_normal.h"

sifr_status text_tokenizer_scratch_new(const text_tokenizer *tokenizer,
                                       text_tokenizer_scratch **out, sifr_error *error) {
    text_tokenizer_scratch *s;
    (void)tokenizer;
    BASE_TRY(base_alloc(1, sizeof *s, &s, error));
    sifr_status status =
        base_alloc((size_t)1 << TEXT_CACHE_BITS, sizeof *s->cache, &s->cache, error);
    if (status == SIFR_OK)
        *out = s;
    else
        free(s);
    return status;
}

void text_tokenizer_scratch_free(text_tokenizer_scratch *s) {
    if (!s) return;
    free(s->cache);
    text_tokenizer_text_free(&s->repaired);
    text_tokenizer_text_free(&s->normal);
    text_tokenizer_text_free(&s->prefixed);
    text_tokenizer_text_free(&s->word);
    text_normalizer_state_free(&s->normalizer);
    text_pretokenizer_state_free(&s->pretokenizer);
    free(s->paths);
    text_tokenizer_ids_free(&s->pair[0]);
    text_tokenizer_ids_free(&s->pair[1]);
    free(s->ids);
    free(s->next);
    free(s->previous);
    free(s->ranks);
    free(s->heap);
    free(s);
}

uint64_t text_tokenizer_invalid(const text_tokenizer_scratch *s) {
    return s->invalid;
}

void text_tokenizer_ids_free(text_tokenizer_ids *ids) {
    free(ids->ids);
    *ids = (text_tokenizer_ids){0};
}

void text_tokenizer_text_free(text_tokenizer_text *text) {
    free(text->bytes);
    *text = (text_tokenizer_text){0};
}

sifr_status text_utf8_repair(const uint8_t *text, size_t size, text_tokenizer_text *out,
                             uint64_t *invalid, sifr_error *error) {
    const uint8_t *p = text, *end = text + size;
    for (;;) {
        size_t valid = text_utf8_valid(p, (size_t)(end - p)), skip;
        bool cut;
        BASE_TRY(text_tokenizer_text_append(out, p, valid, error));
        p += valid;
        if (p == end) return SIFR_OK;
        text_utf8_check(p, end, &skip, &cut);
        BASE_TRY(text_tokenizer_text_append(out, "\xEF\xBF\xBD", 3, error));
        ++*invalid;
        p += skip;
    }
}

/* A stretch without added tokens, the short way. */
static sifr_status encode_direct(const text_tokenizer *t, text_tokenizer_scratch *s,
                                 const uint8_t *p, size_t size, const uint8_t *limit,
                                 text_tokenizer_ids *out, sifr_error *error) {
    const uint8_t *end = p + size;
    if (t->prefix_space && size && *p != ' ') {
        s->prefixed.count = 0;
        BASE_TRY(text_tokenizer_text_append(&s->prefixed, " ", 1, error));
        BASE_TRY(text_tokenizer_text_append(&s->prefixed, p, size, error));
        p = (const uint8_t *)s->prefixed.bytes;
        limit = end = p + s->prefixed.count;
    }
    while (p < end) {
        const uint8_t *stop = end;
        if (t->digits) { /* a numeric character, or all up to the next one */
            size_t length;
            for (stop = p; stop < end; stop += length) {
                uint32_t c = text_utf8_get(stop, &length);
                if ((text_unicode_flags(&t->unicode, c) & TEXT_CLASS) != TEXT_NUMBER) continue;
                if (stop == p) stop += length;
                break;
            }
        }
        while (p < stop) {
            const uint8_t *next = text_split_next(t->split, &t->unicode, p, stop);
            BASE_TRY(text_tokenizer_word(t, s, p, (size_t)(next - p), limit, out, error));
            p = next;
        }
    }
    return SIFR_OK;
}

/* A piece in the byte alphabet, as raw bytes. */
static sifr_status encode_alphabet(const text_tokenizer *t, text_tokenizer_scratch *s,
                                   const uint8_t *p, size_t size, text_tokenizer_ids *out,
                                   sifr_error *error) {
    size_t count = 0;
    s->word.count = 0;
    BASE_TRY(text_tokenizer_text_append(&s->word, p, size, error));
    if (!text_bytes_of_content((const char *)p, size, (uint8_t *)s->word.bytes, &count))
        return base_fail(error, SIFR_FAILED, "a character outside of the byte alphabet");
    p = (const uint8_t *)s->word.bytes;
    return text_tokenizer_word(t, s, p, count, p + count, out, error);
}

/* The same through the pre-tokenizer's steps. */
static sifr_status encode_steps(const text_tokenizer *t, text_tokenizer_scratch *s,
                                const uint8_t *text, size_t size, bool first,
                                text_tokenizer_ids *out, sifr_error *error) {
    const text_pieces *pieces;
    BASE_TRY(text_pretokenizer_apply(&t->pretokenizer, &t->unicode, &s->pretokenizer, first, &text,
                                     &size, &pieces, error));
    for (size_t i = 0; i < pieces->count; i++) {
        const uint8_t *p = text + pieces->items[i].start, *limit = text + size;
        size_t length = pieces->items[i].stop - pieces->items[i].start;
        if (t->in_alphabet)
            BASE_TRY(encode_alphabet(t, s, p, length, out, error));
        else if (t->model == TEXT_MODEL_CHARACTERS)
            BASE_TRY(text_characters_piece(t, s, p, length, limit, out, error));
        else
            BASE_TRY(text_tokenizer_word(t, s, p, length, limit, out, error));
    }
    return SIFR_OK;
}

static sifr_status append_id(text_tokenizer_ids *out, int32_t id, sifr_error *error) {
    BASE_TRY(base_grow(&out->ids, &out->capacity, out->count + 1, sizeof *out->ids, error));
    out->ids[out->count++] = id;
    return SIFR_OK;
}

/* What is not an added token of the raw text: normalized, and searched for the others. */
static sifr_status encode_raw(const text_tokenizer *t, text_tokenizer_scratch *s,
                              const uint8_t *text, size_t size, const uint8_t *limit,
                              text_normalizer_place place, text_tokenizer_ids *out,
                              sifr_error *error) {
    size_t done = 0, resume = 0, start = 0, stop = 0;
    if (!t->direct) {
        BASE_TRY(text_normalizer_apply(&t->normalizer, &t->unicode, &s->normalizer, place, &text,
                                       &size, error));
    } else if (t->unicode.normalizes) {
        size_t same = text_normal_prefix(&t->unicode, text, size);
        if (same < size) {
            s->normal.count = 0;
            BASE_TRY(text_tokenizer_text_append(&s->normal, text, same, error));
            BASE_TRY(text_normalize(&t->unicode, text + same, size - same, &s->normal, error));
            text = (const uint8_t *)s->normal.bytes;
            size = s->normal.count;
            limit = text + size;
        }
    }
    for (;;) {
        const text_added_token *token =
            text_tokenizer_match(t, &t->normal, text, size, done, &resume, &start, &stop);
        size_t until = token ? start : size;
        if (until > done) {
            if (t->direct)
                BASE_TRY(encode_direct(t, s, text + done, until - done, limit, out, error));
            else
                BASE_TRY(encode_steps(t, s, text + done, until - done, place.first && done == 0,
                                      out, error));
        }
        if (!token) return SIFR_OK;
        BASE_TRY(append_id(out, token->id, error));
        done = stop;
    }
}

/* A symbol of the user's that a text begins with stands behind the blank that is put in front. */
static bool begins_with_blank(const text_tokenizer *t, const text_added_token *token) {
    return !token->special && text_normalizer_has_prefix(&t->normalizer);
}

static sifr_status encode_all(const text_tokenizer *t, text_tokenizer_scratch *s,
                              const uint8_t *text, size_t size, text_tokenizer_ids *out,
                              sifr_error *error) {
    size_t done = 0, resume = 0, start = 0, stop = 0;
    for (;;) {
        const text_added_token *token =
            text_tokenizer_match(t, &t->raw, text, size, done, &resume, &start, &stop);
        size_t until = token ? start : size;
        text_normalizer_place place = {done == 0, until == size};
        if (until > done || (done == 0 && token && begins_with_blank(t, token)))
            BASE_TRY(encode_raw(t, s, text + done, until - done, text + size, place, out, error));
        if (!token) return SIFR_OK;
        BASE_TRY(append_id(out, token->id, error));
        done = stop;
    }
}

sifr_status text_tokenizer_encode(const text_tokenizer *t, text_tokenizer_scratch *s,
                                  const char *text, size_t size, bool add_special,
                                  text_tokenizer_ids *out, sifr_error *error) {
    const uint8_t *bytes = (const uint8_t *)text;
    if (text_utf8_valid(bytes, size) != size) {
        s->repaired.count = 0;
        BASE_TRY(text_utf8_repair(bytes, size, &s->repaired, &s->invalid, error));
        bytes = (const uint8_t *)s->repaired.bytes;
        size = s->repaired.count;
    }
    for (size_t i = 0; add_special && i < t->before_count; i++)
        BASE_TRY(append_id(out, t->before[i], error));
    BASE_TRY(encode_all(t, s, bytes, size, out, error));
    for (size_t i = 0; add_special && i < t->after_count; i++)
        BASE_TRY(append_id(out, t->after[i], error));
    return SIFR_OK;
}
