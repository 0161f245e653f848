/* The context, and options of a caller, for the files that make the C interface. */
#ifndef API_CONTEXT_H
#define API_CONTEXT_H

#include <pthread.h>
#include <stdbool.h>
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

/* Structs that a caller wants filled begin with their size, too. The check comes before the work:
 * SIFR_USAGE where the size is none. Then `size` bytes of `from` are given, as far as the caller
 * knows them; what it knows and this library does not is 0. */
sifr_status api_check_result(const char *name, const void *to, sifr_error *error) SIFR_MUST_CHECK;
/* false, with nothing given, where the size is none: the result of a call without a status. */
bool api_give_result(const void *from, size_t size, void *to);

/* The texts of options: SIFR_USAGE where the list, or one of it, is NULL. */
sifr_status api_check_list(const char *name, const char *const *list, size_t count,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
