/* A tokenizer.json: BPE from bytes or characters, WordPiece or Unigram, with the steps before and
 * behind. Ids and texts are those of the `tokenizers` library; what is not built is refused by
 * name. A formats_tokenizer is never written after it was loaded: any number of threads may use
 * one, each with a scratch of its own. */
#ifndef FORMATS_TOKENIZER_H
#define FORMATS_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct formats_tokenizer formats_tokenizer;
typedef struct formats_tokenizer_scratch formats_tokenizer_scratch;

/* A growing row of ids; free with formats_tokenizer_ids_free. Start with {0}; a caller may set
 * count to 0 to use it again. */
typedef struct formats_tokenizer_ids {
    int32_t *ids;
    size_t count, room;
} formats_tokenizer_ids;

/* A growing row of bytes, likewise. */
typedef struct formats_tokenizer_text {
    char *bytes;
    size_t count, room;
} formats_tokenizer_text;

void formats_tokenizer_ids_free(formats_tokenizer_ids *ids);
void formats_tokenizer_text_free(formats_tokenizer_text *text);

/* From a model folder (tokenizer.json; tokenizer_config.json for the end-of-text token, if there)
 * or from a tokenizer.json itself. SIFR_USAGE for a part that is not built and for a description
 * that does not fit together; SIFR_FAILED for what cannot be read. */
sifr_status formats_tokenizer_load(const char *path, formats_tokenizer **out,
                                   sifr_error *error) SIFR_MUST_CHECK;
/* The same from the text of a tokenizer.json; `name` begins the messages. */
sifr_status formats_tokenizer_parse(const char *json, size_t size, const char *name,
                                    formats_tokenizer **out, sifr_error *error) SIFR_MUST_CHECK;
void formats_tokenizer_free(formats_tokenizer *tokenizer); /* NULL is fine */

/* Largest id + 1. */
int64_t formats_tokenizer_vocab_size(const formats_tokenizer *tokenizer);
/* The same without special tokens, which ordinary text does not give: what a model must have. */
int64_t formats_tokenizer_text_size(const formats_tokenizer *tokenizer);
/* The id of the token that reads `content` in the file ("<|endoftext|>", "Ġthe"), or -1. */
int32_t formats_tokenizer_id(const formats_tokenizer *tokenizer, const char *content);
/* The token that ends a text: tokenizer_config.json's eos_token, else the usual names; or -1. */
int32_t formats_tokenizer_eos(const formats_tokenizer *tokenizer);
/* Whether the folder names it: false for a usual name that was found. */
bool formats_tokenizer_names_eos(const formats_tokenizer *tokenizer);
/* The token that begins a text: tokenizer_config.json's bos_token, else the first that the
 * post-processor puts before a text; or -1. */
int32_t formats_tokenizer_bos(const formats_tokenizer *tokenizer);
/* The bytes that `id` decodes to, inside the tokenizer; NULL for an id without a token. */
const char *formats_tokenizer_bytes(const formats_tokenizer *tokenizer, int32_t id, size_t *size);
/* Whether an added token takes the blanks behind it. */
bool formats_tokenizer_strips_behind(const formats_tokenizer *tokenizer, int32_t id);
/* Whether a token begins, for the tokenizers library, behind the blanks that it begins with. */
bool formats_tokenizer_trims(const formats_tokenizer *tokenizer);
bool formats_tokenizer_is_special(const formats_tokenizer *tokenizer, int32_t id);

/* Buffers and word cache of one thread, about 2 MiB; for this tokenizer only. */
sifr_status formats_tokenizer_scratch_new(const formats_tokenizer *tokenizer,
                                          formats_tokenizer_scratch **out,
                                          sifr_error *error) SIFR_MUST_CHECK;
void formats_tokenizer_scratch_free(formats_tokenizer_scratch *scratch); /* NULL is fine */
/* Invalid UTF-8 sequences met so far: each is read as U+FFFD, as Python's errors="replace". */
uint64_t formats_tokenizer_invalid(const formats_tokenizer_scratch *scratch);

/* Appends the ids of `text` to `out`; with add_special also what the post-processor puts around.
 * SIFR_FAILED when the text holds a byte for which the vocabulary has no token and no unk_token. */
sifr_status formats_tokenizer_encode(const formats_tokenizer *tokenizer,
                                     formats_tokenizer_scratch *scratch, const char *text,
                                     size_t size, bool add_special, formats_tokenizer_ids *out,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* One text or two, for a model that classifies. */
typedef struct formats_tokenizer_pair {
    const char *first, *second; /* `second` NULL: one text */
    size_t first_size, second_size;
    int64_t max_length; /* with what goes around; 0: as long as it is */
} formats_tokenizer_pair;

/* Appends the ids of both texts, with what the post-processor puts around and between, and to
 * `types` the token type of each. What is too long is cut off at the end of the longer text, then
 * of both, and *truncated says so. */
sifr_status formats_tokenizer_encode_pair(const formats_tokenizer *tokenizer,
                                          formats_tokenizer_scratch *scratch,
                                          const formats_tokenizer_pair *pair,
                                          formats_tokenizer_ids *ids, formats_tokenizer_ids *types,
                                          bool *truncated, sifr_error *error) SIFR_MUST_CHECK;

/* What the post-processor puts before a text or, where `behind` is set, behind it; the ids are the
 * tokenizer's. */
const int32_t *formats_tokenizer_around(const formats_tokenizer *tokenizer, bool behind,
                                        size_t *count);

/* Where a long text may be cut so that the parts, encoded apart without add_special, give the ids
 * of the whole: a position p with from <= p < size, the first found, or `size`. */
size_t formats_tokenizer_cut(const formats_tokenizer *tokenizer, const char *text, size_t size,
                             size_t from);

/* Appends the text of the tokens; of byte-level BPE the bytes are appended, which need not be whole
 * UTF-8 characters. SIFR_FAILED, naming
 * the id and its place, for one that has no token. */
sifr_status formats_tokenizer_decode(const formats_tokenizer *tokenizer, const int32_t *ids,
                                     size_t count, bool skip_special, formats_tokenizer_text *out,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* Decoding token by token, for a terminal: bytes of a character that is not complete wait for the
 * next token; what can never become one is U+FFFD. Start with {0}. */
typedef struct formats_tokenizer_stream {
    uint8_t held[4];
    size_t count;
    bool started; /* decoders treat the first token of a text in their own way */
} formats_tokenizer_stream;

/* Appends what token `id` completes. */
sifr_status formats_tokenizer_stream_push(const formats_tokenizer *tokenizer,
                                          formats_tokenizer_stream *stream, int32_t id,
                                          formats_tokenizer_text *out,
                                          sifr_error *error) SIFR_MUST_CHECK;
/* At the end: appends U+FFFD where a character stayed incomplete. */
sifr_status formats_tokenizer_stream_end(formats_tokenizer_stream *stream,
                                         formats_tokenizer_text *out,
                                         sifr_error *error) SIFR_MUST_CHECK;

#endif
