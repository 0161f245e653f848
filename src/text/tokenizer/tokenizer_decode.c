#include "text/tokenizer/tokenizer_internal.h"

static sifr_status refuse_id(const text_tokenizer *t, int32_t id, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%d is not a token id (the tokenizer has %d tokens)", id,
                     t->vocab_size);
}

/* The tokens of the ids, as the vocabulary spells them, through the decoder's steps. */
static sifr_status decode_steps(const text_tokenizer *t, const int32_t *ids, size_t count,
                                bool skip_special, text_texts *texts, text_tokenizer_text *out,
                                sifr_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (skip_special && text_tokenizer_is_special(t, ids[i])) continue;
        const char *bytes = t->bytes + t->offsets[ids[i]];
        size_t size = t->offsets[ids[i] + 1] - t->offsets[ids[i]];
        BASE_TRY(text_tokenizer_text_append(&texts->text, bytes, size, error));
        BASE_TRY(text_texts_end(texts, error));
    }
    return text_decoder_apply(&t->decoder, texts, false, out, error);
}

sifr_status text_tokenizer_decode(const text_tokenizer *t, const int32_t *ids, size_t count,
                                  bool skip_special, text_tokenizer_text *out, sifr_error *error) {
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char *bytes = text_tokenizer_bytes(t, ids[i], &size);
        if (!bytes) {
            sifr_status status = refuse_id(t, ids[i], error);
            return base_fail_in(error, status, "id %zu", i);
        }
        if (t->model != TEXT_MODEL_BYTES) continue;
        if (skip_special && text_tokenizer_is_special(t, ids[i])) continue;
        BASE_TRY(text_tokenizer_text_append(out, bytes, size, error));
    }
    if (t->model == TEXT_MODEL_BYTES) return SIFR_OK;
    text_texts texts = {0};
    sifr_status status = decode_steps(t, ids, count, skip_special, &texts, out, error);
    text_texts_free(&texts);
    return status;
}

/* Passes on what is whole, replaces what can never be; an unfinished end stays in `held`. */
static sifr_status pass_on(text_tokenizer_stream *stream, const uint8_t *bytes, size_t size,
                           text_tokenizer_text *out, sifr_error *error) {
    const uint8_t *p = bytes, *end = bytes + size;
    stream->count = 0;
    while (p < end) {
        size_t skip;
        bool cut;
        size_t length = text_utf8_check(p, end, &skip, &cut);
        if (length) {
            BASE_TRY(text_tokenizer_text_append(out, p, length, error));
            p += length;
        } else if (cut) {
            stream->count = (size_t)(end - p); /* at most 3 */
            memmove(stream->held, p, stream->count);
            return SIFR_OK;
        } else {
            BASE_TRY(text_tokenizer_text_append(out, "\xEF\xBF\xBD", 3, error));
            p += skip;
        }
    }
    return SIFR_OK;
}

sifr_status text_tokenizer_stream_push(const text_tokenizer *t, text_tokenizer_stream *stream,
                                       int32_t id, text_tokenizer_text *out, sifr_error *error) {
    size_t size;
    const uint8_t *bytes = (const uint8_t *)text_tokenizer_bytes(t, id, &size);
    if (!bytes) return refuse_id(t, id, error);
    bool first = !stream->started;
    stream->started = true;
    if (first && t->model != TEXT_MODEL_BYTES && !text_tokenizer_is_special(t, id) &&
        text_fallback_byte(t->bytes + t->offsets[id], t->offsets[id + 1] - t->offsets[id]) < 0)
        return text_tokenizer_decode(t, &id, 1, false, out, error);
    while (stream->count && size) { /* byte by byte, until the held character ends or fails */
        uint8_t joined[5];
        size_t held = stream->count;
        memcpy(joined, stream->held, held);
        joined[held] = *bytes++;
        size--;
        BASE_TRY(pass_on(stream, joined, held + 1, out, error));
    }
    if (!size) return SIFR_OK;
    return pass_on(stream, bytes, size, out, error);
}

sifr_status text_tokenizer_stream_end(text_tokenizer_stream *stream, text_tokenizer_text *out,
                                      sifr_error *error) {
    size_t held = stream->count;
    stream->count = 0;
    if (!held) return SIFR_OK;
    return text_tokenizer_text_append(out, "\xEF\xBF\xBD", 3, error);
}
