#include <stdlib.h>

#include "api/api_context.h"
#include "base/errors.h"
#include "base/heap.h"
#include "base/inside.h"
#include "sifr/tokenizer.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_unicode.h"

struct sifr_tokenizer {
    const sifr_log *log;
    text_tokenizer *tokenizer;
    text_tokenizer_scratch *scratch;
    text_tokenizer_ids ids;
    text_tokenizer_text text;
};

sifr_status sifr_tokenizer_open(sifr_context *context, const char *path, sifr_tokenizer **out,
                                sifr_error *error) {
    BASE_ENTER(error, context, path, out);
    sifr_tokenizer *t;
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    t->log = &context->log;
    sifr_status status = text_tokenizer_load(path, &t->tokenizer, error);
    if (status == SIFR_OK) *out = t;
    if (status != SIFR_OK) sifr_tokenizer_free(t);
    return status;
}

void sifr_tokenizer_free(sifr_tokenizer *tokenizer) {
    BASE_ENTER_VOID(tokenizer);
    text_tokenizer_ids_free(&tokenizer->ids);
    text_tokenizer_text_free(&tokenizer->text);
    text_tokenizer_scratch_free(tokenizer->scratch);
    text_tokenizer_free(tokenizer->tokenizer);
    free(tokenizer);
}

int64_t sifr_tokenizer_vocab_size(const sifr_tokenizer *tokenizer) {
    BASE_ENTER_OR(0, tokenizer);
    return text_tokenizer_vocab_size(tokenizer->tokenizer);
}

int32_t sifr_tokenizer_id(const sifr_tokenizer *tokenizer, const char *token) {
    BASE_ENTER_OR(-1, tokenizer, token);
    return text_tokenizer_id(tokenizer->tokenizer, token);
}

int32_t sifr_tokenizer_bos(const sifr_tokenizer *tokenizer) {
    BASE_ENTER_OR(-1, tokenizer);
    return text_tokenizer_bos(tokenizer->tokenizer);
}

int32_t sifr_tokenizer_eos(const sifr_tokenizer *tokenizer) {
    BASE_ENTER_OR(-1, tokenizer);
    return text_tokenizer_eos(tokenizer->tokenizer);
}

bool sifr_tokenizer_is_special(const sifr_tokenizer *tokenizer, int32_t id) {
    BASE_ENTER_OR(false, tokenizer);
    return text_tokenizer_is_special(tokenizer->tokenizer, id);
}

const char *sifr_tokenizer_bytes(const sifr_tokenizer *tokenizer, int32_t id, size_t *size,
                                 bool *whole) {
    BASE_ENTER_OR(NULL, tokenizer, size);
    const char *bytes = text_tokenizer_bytes(tokenizer->tokenizer, id, size);
    if (whole) *whole = bytes && text_utf8_valid((const uint8_t *)bytes, *size) == *size;
    return bytes;
}

/* ---- whole texts ---- */

static void say_invalid(const sifr_tokenizer *t, uint64_t invalid) {
    if (invalid)
        base_log(t->log, SIFR_LOG_WARNING, "%llu invalid UTF-8 sequence%s read as U+FFFD",
                 (unsigned long long)invalid, invalid == 1 ? "" : "s");
}

sifr_status sifr_tokenizer_encode(sifr_tokenizer *tokenizer, const char *text, size_t size,
                                  bool special, const int32_t **ids, size_t *count,
                                  sifr_error *error) {
    BASE_ENTER(error, tokenizer, ids, count);
    BASE_TRY(BASE_GIVEN_FOR(error, size, text));
    sifr_tokenizer *t = tokenizer;
    if (!t->scratch) BASE_TRY(text_tokenizer_scratch_new(t->tokenizer, &t->scratch, error));
    uint64_t before = text_tokenizer_invalid(t->scratch);
    t->ids.count = 0;
    BASE_TRY(text_tokenizer_encode(t->tokenizer, t->scratch, text, size, special, &t->ids, error));
    say_invalid(t, text_tokenizer_invalid(t->scratch) - before);
    *ids = t->ids.ids;
    *count = t->ids.count;
    return SIFR_OK;
}

/* With a NUL behind it. */
static sifr_status give_text(text_tokenizer_text *from, const char **text, size_t *size,
                             sifr_error *error) {
    BASE_TRY(base_grow(&from->bytes, &from->capacity, from->count + 1, 1, error));
    from->bytes[from->count] = '\0';
    *text = from->bytes;
    *size = from->count;
    return SIFR_OK;
}

sifr_status sifr_tokenizer_decode(sifr_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                  bool skip_special, const char **text, size_t *size,
                                  sifr_error *error) {
    BASE_ENTER(error, tokenizer, text, size);
    BASE_TRY(BASE_GIVEN_FOR(error, count, ids));
    sifr_tokenizer *t = tokenizer;
    t->text.count = 0;
    BASE_TRY(text_tokenizer_decode(t->tokenizer, ids, count, skip_special, &t->text, error));
    return give_text(&t->text, text, size, error);
}

/* ---- token by token ---- */

struct sifr_decoder {
    const text_tokenizer *tokenizer;
    text_tokenizer_stream stream;
    text_tokenizer_text text;
    bool continues;
};

sifr_status sifr_decoder_create(const sifr_tokenizer *tokenizer, bool continues, sifr_decoder **out,
                                sifr_error *error) {
    BASE_ENTER(error, tokenizer, out);
    sifr_decoder *d;
    BASE_TRY(base_alloc(1, sizeof *d, &d, error));
    d->tokenizer = tokenizer->tokenizer;
    d->continues = d->stream.started = continues;
    *out = d;
    return SIFR_OK;
}

void sifr_decoder_free(sifr_decoder *decoder) {
    BASE_ENTER_VOID(decoder);
    text_tokenizer_text_free(&decoder->text);
    free(decoder);
}

sifr_status sifr_decoder_push(sifr_decoder *decoder, int32_t id, const char **text, size_t *size,
                              sifr_error *error) {
    BASE_ENTER(error, decoder, text, size);
    decoder->text.count = 0;
    BASE_TRY(text_tokenizer_stream_push(decoder->tokenizer, &decoder->stream, id, &decoder->text,
                                        error));
    return give_text(&decoder->text, text, size, error);
}

sifr_status sifr_decoder_end(sifr_decoder *decoder, const char **text, size_t *size,
                             sifr_error *error) {
    BASE_ENTER(error, decoder, text, size);
    decoder->text.count = 0;
    BASE_TRY(text_tokenizer_stream_end(&decoder->stream, &decoder->text, error));
    decoder->stream = (text_tokenizer_stream){.started = decoder->continues};
    return give_text(&decoder->text, text, size, error);
}
