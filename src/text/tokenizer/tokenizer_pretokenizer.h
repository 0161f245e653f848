/* The pre-tokenizer of a tokenizer.json: steps that cut a text into pieces, each of which the model
 * turns into ids by itself. */
#ifndef FORMATS_TOKENIZER_PRETOKENIZER_H
#define FORMATS_TOKENIZER_PRETOKENIZER_H

#include <jansson.h>

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_normalizer.h"
#include "text/tokenizer/tokenizer_regex.h"
#include "text/tokenizer/tokenizer_unicode.h"

typedef enum formats_split_behavior {
    FORMATS_REMOVED,
    FORMATS_ISOLATED,
    FORMATS_CONTIGUOUS,
    FORMATS_MERGED_WITH_PREVIOUS,
    FORMATS_MERGED_WITH_NEXT
} formats_split_behavior;

typedef enum formats_pretokenizer_kind {
    FORMATS_PRETOKENIZER_BYTES, /* ByteLevel */
    FORMATS_PRETOKENIZER_WHITESPACE,
    FORMATS_PRETOKENIZER_WHITESPACE_SPLIT,
    FORMATS_PRETOKENIZER_PUNCTUATION,
    FORMATS_PRETOKENIZER_DIGITS,
    FORMATS_PRETOKENIZER_SPLIT,
    FORMATS_PRETOKENIZER_METASPACE,
    FORMATS_PRETOKENIZER_DELIMITER,
    FORMATS_PRETOKENIZER_BERT
} formats_pretokenizer_kind;

typedef enum formats_prepend {
    FORMATS_PREPEND_ALWAYS,
    FORMATS_PREPEND_FIRST,
    FORMATS_PREPEND_NEVER
} formats_prepend;

typedef struct formats_pretokenizer_step {
    formats_pretokenizer_kind kind;
    formats_split_behavior behavior;
    bool invert;       /* of SPLIT */
    bool prefix_space; /* of BYTES */
    bool splits;       /* of BYTES: by GPT-2's pattern; of METASPACE */
    bool in_alphabet;  /* of BYTES: a step comes behind it, which sees the byte alphabet */
    formats_prepend prepend;
    uint32_t character; /* of METASPACE, DELIMITER */
    formats_regex *regex;
    int known; /* a formats_split_kind that is this SPLIT, or -1 */
} formats_pretokenizer_step;

typedef struct formats_pretokenizer {
    formats_pretokenizer_step steps[FORMATS_STEPS_AT_MOST];
    size_t count;
    bool bytes; /* a ByteLevel is among them */
} formats_pretokenizer;

typedef struct formats_piece {
    size_t start, stop;
    bool first; /* it begins where the whole text does */
} formats_piece;

typedef struct formats_pieces {
    formats_piece *items;
    size_t count, room;
} formats_pieces;

/* Start with {0}. */
typedef struct formats_pretokenizer_state {
    formats_pieces pieces[2];
    formats_tokenizer_text text[2];
    formats_regex_state regex;
} formats_pretokenizer_state;

sifr_status formats_pretokenizer_read(formats_pretokenizer *pretokenizer, const json_t *part,
                                      const char *name, sifr_error *error) SIFR_MUST_CHECK;
void formats_pretokenizer_free(formats_pretokenizer *pretokenizer);
/* Metaspace's members, which its decoder shares. */
sifr_status formats_metaspace_read(const json_t *part, const char *name, uint32_t *character,
                                   formats_prepend *prepend, sifr_error *error) SIFR_MUST_CHECK;

/* The pieces of a stretch of normalized text; they lie in *text, which may become another. `first`:
 * nothing comes before the stretch. */
sifr_status formats_pretokenizer_apply(const formats_pretokenizer *pretokenizer,
                                       const formats_unicode *unicode,
                                       formats_pretokenizer_state *state, bool first,
                                       const uint8_t **text, size_t *size,
                                       const formats_pieces **out,
                                       sifr_error *error) SIFR_MUST_CHECK;
void formats_pretokenizer_state_free(formats_pretokenizer_state *state);

/* Whether a piece always ends between an ASCII letter and a blank behind it, and the pieces before
 * and behind do not depend on each other. */
bool formats_pretokenizer_cut_is_safe(const formats_pretokenizer *pretokenizer);

#endif
