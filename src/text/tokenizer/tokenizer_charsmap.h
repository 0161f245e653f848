/* SentencePiece's precompiled character map: a double array of prefixes, and the texts that they
 * become, as normalizer "Precompiled" holds it in base64. */
#ifndef TEXT_TOKENIZER_CHARSMAP_H
#define TEXT_TOKENIZER_CHARSMAP_H

#include "text/tokenizer/tokenizer.h"

typedef struct text_charsmap text_charsmap;

/* NULL in *out for a map that maps nothing. */
sifr_status text_charsmap_read(const char *base64, const char *name, text_charsmap **out,
                               sifr_error *error) SIFR_MUST_CHECK;
void text_charsmap_free(text_charsmap *map); /* NULL is fine */
/* Whether ASCII letters and the blank stay as they are. */
bool text_charsmap_keeps_words(const text_charsmap *map);
/* What the longest prefix in the map of the `size` bytes becomes, as sentencepiece itself maps, and
 * the bytes of that prefix in *length; NULL where there is none. */
const char *text_charsmap_longest(const text_charsmap *map, const uint8_t *p, size_t size,
                                  size_t *length);
/* Appends the text as the `tokenizers` library maps it, grapheme by grapheme. */
sifr_status text_charsmap_apply(const text_charsmap *map, const uint8_t *text, size_t size,
                                text_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
