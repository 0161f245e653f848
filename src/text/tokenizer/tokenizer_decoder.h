/* The decoder of a tokenizer.json: steps on a list of texts, one for each token. */
#ifndef FORMATS_TOKENIZER_DECODER_H
#define FORMATS_TOKENIZER_DECODER_H

#include "text/tokenizer/tokenizer_pretokenizer.h"

typedef enum formats_decoder_kind {
    FORMATS_DECODER_BYTES,
    FORMATS_DECODER_METASPACE,
    FORMATS_DECODER_WORDPIECE,
    FORMATS_DECODER_BYTE_FALLBACK,
    FORMATS_DECODER_FUSE,
    FORMATS_DECODER_STRIP,
    FORMATS_DECODER_REPLACE,
    FORMATS_DECODER_BPE
} formats_decoder_kind;

typedef struct formats_decoder_step {
    formats_decoder_kind kind;
    uint32_t character;      /* of METASPACE, STRIP */
    formats_prepend prepend; /* of METASPACE */
    int64_t start, stop;     /* of STRIP */
    bool cleanup;            /* of WORDPIECE */
    char *from, *to;         /* of REPLACE; `from`: of WORDPIECE the prefix, of BPE the suffix */
    formats_regex *regex;    /* of REPLACE, in place of `from` */
} formats_decoder_step;

typedef struct formats_decoder {
    formats_decoder_step steps[FORMATS_STEPS_AT_MOST];
    size_t count;
    bool bytes; /* it is ByteLevel alone: bytes go out as they are */
    bool none;  /* there is none: blanks go between tokens */
} formats_decoder;

sifr_status formats_decoder_read(formats_decoder *decoder, const json_t *part, const char *name,
                                 sifr_error *error) SIFR_MUST_CHECK;
void formats_decoder_free(formats_decoder *decoder);

/* Texts laid end to end; text i ends at ends[i]. Start with {0}. */
typedef struct formats_texts {
    formats_tokenizer_text text;
    size_t *ends;
    size_t count, room;
} formats_texts;

void formats_texts_free(formats_texts *texts);
/* Ends the text to which bytes of texts->text were appended. */
sifr_status formats_texts_end(formats_texts *texts, sifr_error *error) SIFR_MUST_CHECK;

/* Appends the texts of the tokens, decoded, to `out`; `texts` is used up. With `inside` as in the
 * middle of a longer list, and without Strip behind a Fuse: what one token adds. */
sifr_status formats_decoder_apply(const formats_decoder *decoder, formats_texts *texts, bool inside,
                                  formats_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
