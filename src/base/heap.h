/* Heap blocks with checked sizes. Not for use inside a step, which allocates nothing: its buffers
 * lie in the one block that plan/memory.c lays out. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stddef.h>

#include "base/errors.h"

/* Allocates a zeroed block of count x size bytes into *out (NULL for 0 bytes); free with free().
 * SIFR_NO_MEMORY if the product overflows or the system refuses. */
sifr_status base_alloc(size_t count, size_t size, void *out, sifr_error *error) SIFR_MUST_CHECK;

/* Grows *array (elements of `size` bytes, room for *capacity) to at least `needed` elements, by
 * doubling. *array and *capacity stay valid on failure. */
sifr_status base_grow(void *array, size_t *capacity, size_t needed, size_t size,
                      sifr_error *error) SIFR_MUST_CHECK;

/* Copies `length` bytes from `text` and appends a NUL. */
sifr_status base_copy_text(const char *text, size_t length, char **out,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
