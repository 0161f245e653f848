/* The normalizer of a tokenizer.json: a list of steps, each a function from text to text. */
#ifndef FORMATS_TOKENIZER_NORMALIZER_H
#define FORMATS_TOKENIZER_NORMALIZER_H

#include <jansson.h>

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_charsmap.h"
#include "text/tokenizer/tokenizer_normal.h"
#include "text/tokenizer/tokenizer_regex.h"
#include "text/tokenizer/tokenizer_unicode.h"

#define FORMATS_STEPS_AT_MOST 32

/* The normalizer of a tokenizer.model that stands alone. No tokenizer.json has this one: the
 * `tokenizers` library has none that does what sentencepiece does. */
#define FORMATS_SENTENCEPIECE "SentencePiece"

typedef enum formats_normalizer_kind {
    FORMATS_NORMALIZER_FORM, /* NFC, NFD, NFKC, NFKD */
    FORMATS_NORMALIZER_LOWERCASE,
    FORMATS_NORMALIZER_STRIP,
    FORMATS_NORMALIZER_STRIP_ACCENTS,
    FORMATS_NORMALIZER_REPLACE,
    FORMATS_NORMALIZER_PREPEND,
    FORMATS_NORMALIZER_NMT,
    FORMATS_NORMALIZER_CHARSMAP,
    FORMATS_NORMALIZER_BERT,
    FORMATS_NORMALIZER_SENTENCEPIECE,
    FORMATS_NORMALIZER_BYTES /* into the byte alphabet */
} formats_normalizer_kind;

typedef struct formats_normalizer_step {
    formats_normalizer_kind kind;
    formats_normal_form form;
    bool left, right;                        /* of STRIP */
    bool clean, chinese, accents, lowercase; /* of BERT */
    bool prefix, remove_extra;               /* of SENTENCEPIECE */
    char *from, *to;                         /* of REPLACE, a literal; `to` also of PREPEND */
    size_t from_size, to_size;
    formats_regex *regex; /* of REPLACE, in place of `from` */
    formats_charsmap *map;
} formats_normalizer_step;

typedef struct formats_normalizer {
    formats_normalizer_step steps[FORMATS_STEPS_AT_MOST];
    size_t count;
} formats_normalizer;

/* Where a thread's texts stand between steps. Start with {0}. */
typedef struct formats_normalizer_state {
    formats_tokenizer_text out[2];
    formats_regex_state regex;
} formats_normalizer_state;

/* `part`: the value of "normalizer", null or NULL for none. */
sifr_status formats_normalizer_read(formats_normalizer *normalizer, const json_t *part,
                                    const char *name, sifr_error *error) SIFR_MUST_CHECK;
void formats_normalizer_free(formats_normalizer *normalizer);

/* Where the part that is normalized lies in the text: added tokens cut it. */
typedef struct formats_normalizer_place {
    bool first, last;
} formats_normalizer_place;

/* *text, valid UTF-8, becomes the normalized text, which lies in `state` or is the text itself. */
sifr_status formats_normalizer_apply(const formats_normalizer *normalizer,
                                     const formats_unicode *unicode,
                                     formats_normalizer_state *state,
                                     formats_normalizer_place place, const uint8_t **text,
                                     size_t *size, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_sentencepiece.c: what sentencepiece's own normalizer makes of a part. */
sifr_status formats_sentencepiece_normalize(const formats_normalizer_step *step,
                                            formats_normalizer_place place, const uint8_t *text,
                                            size_t size, formats_tokenizer_text *out,
                                            sifr_error *error) SIFR_MUST_CHECK;
/* Whether a text that is not empty gets a blank in front of it, even before an added token. */
bool formats_normalizer_has_prefix(const formats_normalizer *normalizer);
void formats_normalizer_state_free(formats_normalizer_state *state);

/* Whether a text may be cut before a blank that stands behind an ASCII letter, so that the parts
 * normalize to the parts of the whole; *marked: the blank has become U+2581. */
bool formats_normalizer_cut_is_safe(const formats_normalizer *normalizer, bool *marked);

/* SIFR_FAILED where a text grew beyond `limit`. */
sifr_status formats_check_growth(size_t size, size_t limit, sifr_error *error) SIFR_MUST_CHECK;

/* "pattern": {"String": …} or {"Regex": …}; a String goes to *literal where that is asked for. */
sifr_status formats_pattern_read(const json_t *part, const char *name, formats_regex **regex,
                                 char **literal, sifr_error *error) SIFR_MUST_CHECK;
/* Appends `text` with `to` for what matches. */
sifr_status formats_replace(const formats_regex *regex, formats_regex_state *state,
                            const uint8_t *text, size_t size, const char *to, size_t to_size,
                            formats_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_replace_literal(const char *from, size_t from_size, const uint8_t *text,
                                    size_t size, const char *to, size_t to_size,
                                    formats_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
