/* The normalizer of a tokenizer.json: a list of steps, each a function from text to text. */
#ifndef TEXT_TOKENIZER_NORMALIZER_H
#define TEXT_TOKENIZER_NORMALIZER_H

#include <jansson.h>

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_charsmap.h"
#include "text/tokenizer/tokenizer_normal.h"
#include "text/tokenizer/tokenizer_regex.h"
#include "text/tokenizer/tokenizer_unicode.h"

#define TEXT_STEPS_AT_MOST 32

/* The normalizer of a tokenizer.model that stands alone. No tokenizer.json has this one: the
 * `tokenizers` library has none that does what sentencepiece does. */
#define TEXT_SENTENCEPIECE "SentencePiece"

typedef enum text_normalizer_kind {
    TEXT_NORMALIZER_FORM, /* NFC, NFD, NFKC, NFKD */
    TEXT_NORMALIZER_LOWERCASE,
    TEXT_NORMALIZER_STRIP,
    TEXT_NORMALIZER_STRIP_ACCENTS,
    TEXT_NORMALIZER_REPLACE,
    TEXT_NORMALIZER_PREPEND,
    TEXT_NORMALIZER_NMT,
    TEXT_NORMALIZER_CHARSMAP,
    TEXT_NORMALIZER_BERT,
    TEXT_NORMALIZER_SENTENCEPIECE,
    TEXT_NORMALIZER_BYTES /* into the byte alphabet */
} text_normalizer_kind;

typedef struct text_normalizer_step {
    text_normalizer_kind kind;
    text_normal_form form;
    bool left, right;                        /* of STRIP */
    bool clean, chinese, accents, lowercase; /* of BERT */
    bool prefix, remove_extra;               /* of SENTENCEPIECE */
    char *from, *to;                         /* of REPLACE, a literal; `to` also of PREPEND */
    size_t from_size, to_size;
    text_regex *regex; /* of REPLACE, in place of `from` */
    text_charsmap *map;
} text_normalizer_step;

typedef struct text_normalizer {
    text_normalizer_step steps[TEXT_STEPS_AT_MOST];
    size_t count;
} text_normalizer;

/* Where a thread's texts stand between steps. Start with {0}. */
typedef struct text_normalizer_state {
    text_tokenizer_text out[2];
    text_regex_state regex;
} text_normalizer_state;

/* `part`: the value of "normalizer", null or NULL for none. */
sifr_status text_normalizer_read(text_normalizer *normalizer, const json_t *part, const char *name,
                                 sifr_error *error) SIFR_MUST_CHECK;
void text_normalizer_free(text_normalizer *normalizer);

/* Where the part that is normalized lies in the text: added tokens cut it. */
typedef struct text_normalizer_place {
    bool first, last;
} text_normalizer_place;

/* *text, valid UTF-8, becomes the normalized text, which lies in `state` or is the text itself. */
sifr_status text_normalizer_apply(const text_normalizer *normalizer, const text_unicode *unicode,
                                  text_normalizer_state *state, text_normalizer_place place,
                                  const uint8_t **text, size_t *size,
                                  sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_sentencepiece.c: what sentencepiece's own normalizer makes of a part. */
sifr_status text_sentencepiece_normalize(const text_normalizer_step *step,
                                         text_normalizer_place place, const uint8_t *text,
                                         size_t size, text_tokenizer_text *out,
                                         sifr_error *error) SIFR_MUST_CHECK;
/* Whether a text that is not empty gets a blank in front of it, even before an added token. */
bool text_normalizer_has_prefix(const text_normalizer *normalizer);
void text_normalizer_state_free(text_normalizer_state *state);

/* Whether a text may be cut before a blank that stands behind an ASCII letter, so that the parts
 * normalize to the parts of the whole; *marked: the blank has become U+2581. */
bool text_normalizer_cut_is_safe(const text_normalizer *normalizer, bool *marked);

/* SIFR_FAILED where a text grew beyond `limit`. */
sifr_status text_check_growth(size_t size, size_t limit, sifr_error *error) SIFR_MUST_CHECK;

/* "pattern": {"String": …} or {"Regex": …}; a String goes to *literal where that is asked for. */
sifr_status text_pattern_read(const json_t *part, const char *name, text_regex **regex,
                              char **literal, sifr_error *error) SIFR_MUST_CHECK;
/* Appends `text` with `to` for what matches. */
sifr_status text_replace(const text_regex *regex, text_regex_state *state, const uint8_t *text,
                         size_t size, const char *to, size_t to_size, text_tokenizer_text *out,
                         sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_replace_literal(const char *from, size_t from_size, const uint8_t *text,
                                 size_t size, const char *to, size_t to_size,
                                 text_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
