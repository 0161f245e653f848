/* A table of byte strings, each with a number from 0 in the order of arrival. */
#ifndef TEXT_TOKENIZER_TABLE_H
#define TEXT_TOKENIZER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct text_table_item {
    size_t offset;
    uint32_t size, hash;
} text_table_item;

/* Start with {0}. */
typedef struct text_table {
    uint32_t *slots; /* item + 1, or 0 */
    size_t slot_count;
    text_table_item *items;
    size_t count, item_capacity;
    uint8_t *bytes;
    size_t byte_count, byte_capacity;
} text_table;

/* The number of the string, or SIZE_MAX. */
size_t text_table_find(const text_table *table, const void *bytes, size_t size);
/* *index is the string's number; *added tells whether it is new. */
sifr_status text_table_add(text_table *table, const void *bytes, size_t size, size_t *index,
                           bool *added, sifr_error *error) SIFR_MUST_CHECK;
void text_table_free(text_table *table);

static inline const uint8_t *text_table_bytes(const text_table *table, size_t index, size_t *size) {
    *size = table->items[index].size;
    return table->bytes + table->items[index].offset;
}

#endif
