/* Words of a command line, as a shell takes them. */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file.h"

/* Room for any path. */
enum { BASE_QUOTED = 4 * BASE_PATH_LENGTH + 4 };

/* The word, between quotes where it needs them, and without what a terminal would act on; returns
 * out. */
char *base_quote(const char *word, char *out, size_t size);

#endif
