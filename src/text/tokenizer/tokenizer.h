/* A tokenizer.json: BPE from bytes or characters, WordPiece or Unigram, with the steps before and
 * behind. Ids and texts are those of the `tokenizers` library; what is not built is refused by
 * name. A text_tokenizer is never written after it was loaded: any number of threads may use
 * one, each with a scratch of its own. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct text_tokenizer text_tokenizer;
typedef struct text_tokenizer_scratch text_tokenizer_scratch;

/* A growing row of ids; free with text_tokenizer_ids_free. Start with {0}; a caller may set
 * count to 0 to use it again. */
typedef struct text_tokenizer_ids {
    int32_t *ids;
    size_t count, capacity;
} text_tokenizer_ids;

/* A growing row of bytes, likewise. */
typedef struct text_tokenizer_text {
    char *bytes;
    size_t count, capacity;
} text_tokenizer_text;

void text_tokenizer_ids_free(text_tokenizer_ids *ids);
void text_tokenizer_text_free(text_tokenizer_text *text);

/* From a model folder (tokenizer.json; tokenizer_config.json for the end-of-text token, if there)
 * or from a tokenizer.json itself. SIFR_USAGE for a part that is not built and for a description
 * that does not fit together; SIFR_FAILED for what cannot be read. */
sifr_status text_tokenizer_load(const char *path, text_tokenizer **out,
                                sifr_error *error) SIFR_MUST_CHECK;
/* The same from the text of a tokenizer.json; `name` begins the messages. */
sifr_status text_tokenizer_parse(const char *json, size_t size, const char *name,
                                 text_tokenizer **out, sifr_error *error) SIFR_MUST_CHECK;
void text_tokenizer_free(text_tokenizer *tokenizer); /* NULL is fine */

/* Largest id + 1. */
int64_t text_tokenizer_vocab_size(const text_tokenizer *tokenizer);
/* The same without special tokens, which ordinary text does not give: what a model must have. */
int64_t text_tokenizer_text_size(const text_tokenizer *tokenizer);
/* The id of the token that reads `content` in the file ("<|endoftext|>", "Ġthe"), or -1. */
int32_t text_tokenizer_id(const text_tokenizer *tokenizer, const char *content);
/* The token that ends a text: tokenizer_config.json's eos_token, else the usual names; or -1. */
int32_t text_tokenizer_eos(const text_tokenizer *tokenizer);
/* Whether the folder names it: false for a usual name that was found. */
bool text_tokenizer_names_eos(const text_tokenizer *tokenizer);
/* The token that begins a text: tokenizer_config.json's bos_token, else the first that the
 * post-processor puts before a text; or -1. */
int32_t text_tokenizer_bos(const text_tokenizer *tokenizer);
/* The bytes that `id` decodes to, inside the tokenizer; NULL for an id without a token. */
const char *text_tokenizer_bytes(const text_tokenizer *tokenizer, int32_t id, size_t *size);
/* Whether an added token takes the blanks behind it. */
bool text_tokenizer_strips_behind(const text_tokenizer *tokenizer, int32_t id);
/* Whether a token begins, for the tokenizers library, behind the blanks that it begins with. */
bool text_tokenizer_trims(const text_tokenizer *tokenizer);
bool text_tokenizer_is_special(const text_tokenizer *tokenizer, int32_t id);

/* Buffers and word cache of one thread, about 2 MiB; for this tokenizer only. */
sifr_status text_tokenizer_scratch_new(const text_tokenizer *tokenizer,
                                       text_tokenizer_scratch **out,
                                       sifr_error *error) SIFR_MUST_CHECK;
void text_tokenizer_scratch_free(text_tokenizer_scratch *scratch); /* NULL is fine */
/* Invalid UTF-8 sequences met so far: each is read as U+FFFD, as Python's errors="replace". */
uint64_t text_tokenizer_invalid(const text_tokenizer_scratch *scratch);

/* Appends the ids of `text` to `out`; with add_special also what the post-processor puts around.
 * SIFR_FAILED when the text holds a byte for which the vocabulary has no token and no unk_token. */
sifr_status text_tokenizer_encode(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                                  const char *text, size_t size, bool add_special,
                                  text_tokenizer_ids *out, sifr_error *error) SIFR_MUST_CHECK;

/* One text or two, for a model that classifies. */
typedef struct text_tokenizer_pair {
    const char *first, *second; /* `second` NULL: one text */
    size_t first_size, second_size;
    int64_t max_length; /* with what goes around; 0: as long as it is */
} text_tokenizer_pair;

/* Appends the ids of both texts, with what the post-processor puts around and between, and to
 * `types` the token type of each. What is too long is cut off at the end of the longer text, then
 * of both, and *truncated says so. */
sifr_status text_tokenizer_encode_pair(const text_tokenizer *tokenizer,
                                       text_tokenizer_scratch *scratch,
                                       const text_tokenizer_pair *pair, text_tokenizer_ids *ids,
                                       text_tokenizer_ids *types, bool *truncated,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* What the post-processor puts before a text or, where `behind` is set, behind it; the ids are the
 * tokenizer's. */
const int32_t *text_tokenizer_around(const text_tokenizer *tokenizer, bool behind, size_t *count);

/* Where a long text may be cut so that the parts, encoded apart without add_special, give the ids
 * of the whole: a position p with from <= p < size, the first found, or `size`. */
size_t text_tokenizer_cut(const text_tokenizer *tokenizer, const char *text, size_t size,
                          size_t from);

/* Appends the text of the tokens; of byte-level BPE the bytes are appended, which need not be whole
 * UTF-8 characters. SIFR_FAILED, naming
 * the id and its place, for one that has no token. */
sifr_status text_tokenizer_decode(const text_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                  bool skip_special, text_tokenizer_text *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Decoding token by token, for a terminal: bytes of a character that is not complete wait for the
 * next token; what can never become one is U+FFFD. Start with {0}. */
typedef struct text_tokenizer_stream {
    uint8_t held[4];
    size_t count;
    bool started; /* decoders treat the first token of a text in their own way */
} text_tokenizer_stream;

/* Appends what token `id` completes. */
sifr_status text_tokenizer_stream_push(const text_tokenizer *tokenizer,
                                       text_tokenizer_stream *stream, int32_t id,
                                       text_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;
/* At the end: appends U+FFFD where a character stayed incomplete. */
sifr_status text_tokenizer_stream_end(text_tokenizer_stream *stream, text_tokenizer_text *out,
                                      sifr_error *error) SIFR_MUST_CHECK;

#endif
