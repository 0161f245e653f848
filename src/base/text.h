/* Numbers as people write them, and the name nearest to a misspelt one. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

/* Parses "4096", "4k" (x1000), "2m", "1e9", "3b": a whole count >= 0. `what` begins the message. */
sifr_status base_parse_count(const char *text, const char *what, int64_t *out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Parses bytes: "24GiB", "1.5GB", "4096", "16M". KiB MiB GiB TiB are powers of 1024, KB MB GB TB of
 * 1000; a bare K M G T is a power of 1024. With a unit a part of a byte is left out. */
sifr_status base_parse_bytes(const char *text, const char *what, int64_t *out,
                             sifr_error *error) SIFR_MUST_CHECK;

sifr_status base_parse_double(const char *text, const char *what, double *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Writes "1.2 GiB", "340 MiB"; returns `out`. */
char *base_format_bytes(uint64_t bytes, char out[32]);
/* Writes "1,234,567"; returns `out`. */
char *base_format_count(int64_t count, char out[32]);
/* Which of `count` words `word` is, letters of any case: its index in *out. NULL is the first. */
bool base_find_word(const char *const *words, size_t count, const char *word, int *out);

/* Writes "1 document", "2,000 documents" of the word `document`; returns `out`. */
char *base_format_counted(int64_t count, const char *word, char out[80]);

/* Writes the divisors of `n` from 2 on, "2, 4 or 8"; those that `out` has no room for become "...".
 * Returns `out`. */
char *base_format_divisors(int64_t n, char *out, size_t size);

/* The candidate with the smallest edit distance to `name`, or NULL if that distance exceeds a third
 * of the longer of the two, rounded up. */
const char *base_nearest(const char *name, const char *const *candidates, size_t count);

#endif
