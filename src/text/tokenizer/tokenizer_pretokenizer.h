/* The pre-tokenizer of a tokenizer.json: steps that cut a text into pieces, each of which the model
 * turns into ids by itself. */
#ifndef TEXT_TOKENIZER_PRETOKENIZER_H
#define TEXT_TOKENIZER_PRETOKENIZER_H

#include <jansson.h>

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_normalizer.h"
#include "text/tokenizer/tokenizer_regex.h"
#include "text/tokenizer/tokenizer_unicode.h"

typedef enum text_split_behavior {
    TEXT_REMOVED,
    TEXT_ISOLATED,
    TEXT_CONTIGUOUS,
    TEXT_MERGED_WITH_PREVIOUS,
    TEXT_MERGED_WITH_NEXT
} text_split_behavior;

typedef enum text_pretokenizer_kind {
    TEXT_PRETOKENIZER_BYTES, /* ByteLevel */
    TEXT_PRETOKENIZER_WHITESPACE,
    TEXT_PRETOKENIZER_WHITESPACE_SPLIT,
    TEXT_PRETOKENIZER_PUNCTUATION,
    TEXT_PRETOKENIZER_DIGITS,
    TEXT_PRETOKENIZER_SPLIT,
    TEXT_PRETOKENIZER_METASPACE,
    TEXT_PRETOKENIZER_DELIMITER,
    TEXT_PRETOKENIZER_BERT
} text_pretokenizer_kind;

typedef enum text_prepend {
    TEXT_PREPEND_ALWAYS,
    TEXT_PREPEND_FIRST,
    TEXT_PREPEND_NEVER
} text_prepend;

typedef struct text_pretokenizer_step {
    text_pretokenizer_kind kind;
    text_split_behavior behavior;
    bool invert;       /* of SPLIT */
    bool prefix_space; /* of BYTES */
    bool splits;       /* of BYTES: by GPT-2's pattern; of METASPACE */
    bool in_alphabet;  /* of BYTES: a step comes behind it, which sees the byte alphabet */
    text_prepend prepend;
    uint32_t character; /* of METASPACE, DELIMITER */
    text_regex *regex;
    int known; /* a text_split_kind that is this SPLIT, or -1 */
} text_pretokenizer_step;

typedef struct text_pretokenizer {
    text_pretokenizer_step steps[TEXT_STEPS_AT_MOST];
    size_t count;
    bool bytes; /* a ByteLevel is among them */
} text_pretokenizer;

typedef struct text_piece {
    size_t start, stop;
    bool first; /* it begins where the whole text does */
} text_piece;

typedef struct text_pieces {
    text_piece *items;
    size_t count, capacity;
} text_pieces;

/* Start with {0}. */
typedef struct text_pretokenizer_state {
    text_pieces pieces[2];
    text_tokenizer_text text[2];
    text_regex_state regex;
} text_pretokenizer_state;

sifr_status text_pretokenizer_read(text_pretokenizer *pretokenizer, const json_t *part,
                                   const char *name, sifr_error *error) SIFR_MUST_CHECK;
void text_pretokenizer_free(text_pretokenizer *pretokenizer);
/* Metaspace's members, which its decoder shares. */
sifr_status text_metaspace_read(const json_t *part, const char *name, uint32_t *character,
                                text_prepend *prepend, sifr_error *error) SIFR_MUST_CHECK;

/* The pieces of a stretch of normalized text; they lie in *text, which may become another. `first`:
 * nothing comes before the stretch. */
sifr_status text_pretokenizer_apply(const text_pretokenizer *pretokenizer,
                                    const text_unicode *unicode, text_pretokenizer_state *state,
                                    bool first, const uint8_t **text, size_t *size,
                                    const text_pieces **out, sifr_error *error) SIFR_MUST_CHECK;
void text_pretokenizer_state_free(text_pretokenizer_state *state);

/* Whether a piece always ends between an ASCII letter and a blank behind it, and the pieces before
 * and behind do not depend on each other. */
bool text_pretokenizer_cut_is_safe(const text_pretokenizer *pretokenizer);

#endif
