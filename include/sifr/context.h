/* What the handles of a program share: where log lines go.
 *
 *     sifr_context_options options = {.size = sizeof options, .log = {write_line, NULL}};
 *     sifr_context_create(&options, &context, &error);
 *
 * Structs of options begin with their size, so that a program goes on with a newer library: fields
 * that it does not know are zero, and zero is always the default. A context may be used by several
 * threads; what is made from it belongs to one thread at a time, and must be freed before it.
 */
#ifndef SIFR_CONTEXT_H
#define SIFR_CONTEXT_H

#include <stddef.h>

#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_context sifr_context;

typedef struct sifr_context_options {
    size_t size;  /* sizeof(sifr_context_options) */
    sifr_log log; /* gets the lines of everything that is made from the context, one at a time. It
                     may call the library with the context and with other handles than the one that
                     logs: lines of such a call come before the call in the log returns */
} sifr_context_options;

/* NULL for `options`: no log. SIFR_USAGE for a size that is none, and for options of a newer sifr
 * that this one does not know. */
SIFR_API sifr_status sifr_context_create(const sifr_context_options *options, sifr_context **out,
                                         sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_context_free(sifr_context *context); /* NULL is harmless */

/* Gives back a text that a function of sifr handed to the caller. NULL is harmless. */
SIFR_API void sifr_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
