/* The context, and options of a caller, for the files that make the C interface. */
#ifndef API_CONTEXT_H
#define API_CONTEXT_H

#include <pthread.h>
#include <stddef.h>

#include "sifr/context.h"

struct sifr_context {
    sifr_log log; /* of the context: takes a lock, and hands the line to the caller's */
    sifr_log own; /* the caller's */
    pthread_mutex_t lock;
};

/* Copies options that begin with their size into *out, of `size` bytes, and fills the rest with
 * zeros; all zeros but the size for NULL. SIFR_USAGE with the name of the struct where the size is
 * none, or where bytes behind those that are known here are not zero. */
sifr_status api_take_options(const char *name, const void *options, size_t size, void *out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
