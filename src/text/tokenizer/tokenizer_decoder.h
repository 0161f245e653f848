/* The decoder of a tokenizer.json: steps on a list of texts, one for each token. */
#ifndef TEXT_TOKENIZER_DECODER_H
#define TEXT_TOKENIZER_DECODER_H

#include "text/tokenizer/tokenizer_pretokenizer.h"

typedef enum text_decoder_kind {
    TEXT_DECODER_BYTES,
    TEXT_DECODER_METASPACE,
    TEXT_DECODER_WORDPIECE,
    TEXT_DECODER_BYTE_FALLBACK,
    TEXT_DECODER_FUSE,
    TEXT_DECODER_STRIP,
    TEXT_DECODER_REPLACE,
    TEXT_DECODER_BPE
} text_decoder_kind;

typedef struct text_decoder_step {
    text_decoder_kind kind;
    uint32_t character;   /* of METASPACE, STRIP */
    text_prepend prepend; /* of METASPACE */
    int64_t start, stop;  /* of STRIP */
    bool cleanup;         /* of WORDPIECE */
    char *from, *to;      /* of REPLACE; `from`: of WORDPIECE the prefix, of BPE the suffix */
    text_regex *regex;    /* of REPLACE, in place of `from` */
} text_decoder_step;

typedef struct text_decoder {
    text_decoder_step steps[TEXT_STEPS_AT_MOST];
    size_t count;
    bool bytes; /* it is ByteLevel alone: bytes go out as they are */
    bool none;  /* there is none: blanks go between tokens */
} text_decoder;

sifr_status text_decoder_read(text_decoder *decoder, const json_t *part, const char *name,
                              sifr_error *error) SIFR_MUST_CHECK;
void text_decoder_free(text_decoder *decoder);

/* Texts laid end to end; text i ends at ends[i]. Start with {0}. */
typedef struct text_texts {
    text_tokenizer_text text;
    size_t *ends;
    size_t count, capacity;
} text_texts;

void text_texts_free(text_texts *texts);
/* Ends the text to which bytes of texts->text were appended. */
sifr_status text_texts_end(text_texts *texts, sifr_error *error) SIFR_MUST_CHECK;

/* Appends the texts of the tokens, decoded, to `out`; `texts` is used up. With `inside` as in the
 * middle of a longer list, and without Strip behind a Fuse: what one token adds. */
sifr_status text_decoder_apply(const text_decoder *decoder, text_texts *texts, bool inside,
                               text_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
