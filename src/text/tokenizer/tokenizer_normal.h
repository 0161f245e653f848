/* NFC and its relatives through utf8proc, on the few places of a text that may need it. */
#ifndef TEXT_TOKENIZER_NORMAL_H
#define TEXT_TOKENIZER_NORMAL_H

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_unicode.h"

/* Length of the beginning of the valid UTF-8 `text` that NFC leaves as it is, whatever follows. */
size_t text_normal_prefix(const text_unicode *unicode, const uint8_t *text, size_t size);

/* Appends the NFC of the valid UTF-8 `text`. Linear, but for sorting runs of combining marks. */
sifr_status text_normalize(const text_unicode *unicode, const uint8_t *text, size_t size,
                           text_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;

typedef enum text_normal_form { TEXT_NFC, TEXT_NFD, TEXT_NFKC, TEXT_NFKD } text_normal_form;

/* The same for any form. */
sifr_status text_normal_form_of(const text_unicode *unicode, text_normal_form form,
                                const uint8_t *text, size_t size, text_tokenizer_text *out,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
