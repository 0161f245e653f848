/* SentencePiece's precompiled character map: a double array of prefixes, and the texts that they
 * become, as normalizer "Precompiled" holds it in base64. */
#ifndef FORMATS_TOKENIZER_CHARSMAP_H
#define FORMATS_TOKENIZER_CHARSMAP_H

#include "text/tokenizer/tokenizer.h"

typedef struct formats_charsmap formats_charsmap;

/* NULL in *out for a map that maps nothing. */
sifr_status formats_charsmap_read(const char *base64, const char *name, formats_charsmap **out,
                                  sifr_error *error) SIFR_MUST_CHECK;
void formats_charsmap_free(formats_charsmap *map); /* NULL is fine */
/* Whether ASCII letters and the blank stay as they are. */
bool formats_charsmap_keeps_words(const formats_charsmap *map);
/* What the longest prefix in the map of the `size` bytes becomes, as sentencepiece itself maps, and
 * the bytes of that prefix in *length; NULL where there is none. */
const char *formats_charsmap_longest(const formats_charsmap *map, const uint8_t *p, size_t size,
                                     size_t *length);
/* Appends the text as the `tokenizers` library maps it, grapheme by grapheme. */
sifr_status formats_charsmap_apply(const formats_charsmap *map, const uint8_t *text, size_t size,
                                   formats_tokenizer_text *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
