/* Texts on a terminal: how many columns they take, and texts from outside as text alone. */
#ifndef BASE_COLUMNS_H
#define BASE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

/* Columns of UTF-8 that has no controls; those that some terminals show wide count two. */
size_t base_columns(const char *text);

/* Bytes of the longest beginning in at most `columns` columns. */
size_t base_fit_columns(const char *text, size_t columns);

/* Writes a text from anywhere to `out`, of `size` bytes, which has to be more than 16: what a
 * terminal would act on (controls, those of C1, the signs that turn or hide text) and what is no
 * UTF-8 becomes "\x1b" and the like; without `utf8` all that is not ASCII. Cut between characters;
 * returns `out`. */
char *base_show_text(const char *text, bool utf8, char *out, size_t size);

#endif
