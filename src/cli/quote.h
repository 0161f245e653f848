/* Words of a command line, as a shell takes them. */
#ifndef CLI_QUOTE_H
#define CLI_QUOTE_H

#include <stddef.h>

#include "base/file.h"

/* Room for any path. */
enum { CLI_QUOTED = 4 * BASE_PATH_LENGTH + 3 };

/* The word, between quotes where it needs them; returns out. */
char *cli_quote(const char *word, char *out, size_t size);

#endif
