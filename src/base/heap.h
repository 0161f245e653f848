/* Heap blocks with checked sizes. Not for use inside a step, which allocates nothing: what a step
 * needs has its place in the one block that plan/memory.c lays out. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stddef.h>

#include "base/errors.h"

/* Zeroed block of count x size bytes into *out (NULL when that is 0 bytes); free with free().
 * SIFR_NO_MEMORY if the product overflows or the system refuses. */
sifr_status base_alloc(size_t count, size_t size, void *out, sifr_error *error) SIFR_MUST_CHECK;

/* Grows *array (of elements of `size` bytes, with room for *capacity) so that it holds at least
 * `needed`; doubles. *array and *capacity stay valid on failure. */
sifr_status base_grow(void *array, size_t *capacity, size_t needed, size_t size,
                      sifr_error *error) SIFR_MUST_CHECK;

/* Copy of the `length` bytes at `text`, with a NUL behind it. */
sifr_status base_copy_text(const char *text, size_t length, char **out,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
