/* NFC and its relatives through utf8proc, on the few places of a text that may need it. */
#ifndef FORMATS_TOKENIZER_NORMAL_H
#define FORMATS_TOKENIZER_NORMAL_H

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_unicode.h"

/* Length of the beginning of the valid UTF-8 `text` that NFC leaves as it is, whatever follows. */
size_t formats_normal_prefix(const formats_unicode *unicode, const uint8_t *text, size_t size);

/* Appends the NFC of the valid UTF-8 `text`. Linear, but for sorting runs of combining marks. */
sifr_status formats_normalize(const formats_unicode *unicode, const uint8_t *text, size_t size,
                              formats_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;

typedef enum formats_normal_form {
    FORMATS_NFC,
    FORMATS_NFD,
    FORMATS_NFKC,
    FORMATS_NFKD
} formats_normal_form;

/* The same for any form. */
sifr_status formats_normal_form_of(const formats_unicode *unicode, formats_normal_form form,
                                   const uint8_t *text, size_t size, formats_tokenizer_text *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

#endif
