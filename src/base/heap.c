#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

sifr_status base_alloc(size_t count, size_t size, void *out, sifr_error *error) {
    size_t bytes;
    void *block = NULL;
    if (!base_mul_size(count, size, &bytes)) return base_fail_alloc(error, SIZE_MAX);
    if (bytes) {
        block = calloc(1, bytes);
        if (!block) return base_fail_alloc(error, bytes);
    }
    memcpy(out, &block, sizeof block);
    return SIFR_OK;
}

sifr_status base_grow(void *array, size_t *capacity, size_t needed, size_t size,
                      sifr_error *error) {
    base_assert(size > 0);
    if (needed <= *capacity) return SIFR_OK;
    size_t wider = *capacity ? *capacity : 16;
    while (wider < needed) {
        if (!base_mul_size(wider, 2, &wider)) return base_fail_alloc(error, SIZE_MAX);
    }
    size_t bytes;
    if (!base_mul_size(wider, size, &bytes)) return base_fail_alloc(error, SIZE_MAX);
    void *block;
    memcpy(&block, array, sizeof block);
    block = realloc(block, bytes);
    if (!block) return base_fail_alloc(error, bytes);
    memcpy(array, &block, sizeof block);
    *capacity = wider;
    return SIFR_OK;
}

sifr_status base_copy_text(const char *text, size_t length, char **out, sifr_error *error) {
    size_t bytes;
    if (!base_add_size(length, 1, &bytes)) return base_fail_alloc(error, SIZE_MAX);
    char *copy = malloc(bytes);
    if (!copy) return base_fail_alloc(error, bytes);
    memcpy(copy, text, length);
    copy[length] = 0;
    *out = copy;
    return SIFR_OK;
}
