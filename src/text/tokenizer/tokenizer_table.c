#include "text/tokenizer/tokenizer_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/heap.h"

static size_t look(const text_table *table, const void *bytes, size_t size, uint32_t hash,
                   size_t *slot) {
    size_t mask = table->slot_count - 1, at = hash & mask;
    for (;; at = (at + 1) & mask) {
        uint32_t item = table->slots[at];
        *slot = at;
        if (!item) return SIZE_MAX;
        const text_table_item *there = &table->items[item - 1];
        if (there->hash == hash && there->size == size &&
            (!size || memcmp(table->bytes + there->offset, bytes, size) == 0))
            return item - 1;
    }
}

size_t text_table_find(const text_table *table, const void *bytes, size_t size) {
    size_t slot;
    if (!table->slot_count) return SIZE_MAX;
    return look(table, bytes, size, (uint32_t)base_hash(bytes, size), &slot);
}

static sifr_status widen(text_table *table, sifr_error *error) {
    size_t count = table->slot_count ? table->slot_count * 2 : 1024;
    uint32_t *slots;
    BASE_TRY(base_alloc(count, sizeof *slots, &slots, error));
    for (size_t i = 0; i < table->count; i++) {
        size_t at = table->items[i].hash & (count - 1);
        while (slots[at]) at = (at + 1) & (count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    return SIFR_OK;
}

sifr_status text_table_add(text_table *table, const void *bytes, size_t size, size_t *index,
                           bool *added, sifr_error *error) {
    uint32_t hash = (uint32_t)base_hash(bytes, size);
    size_t slot, total;
    if (table->count * 2 >= table->slot_count) BASE_TRY(widen(table, error));
    *index = look(table, bytes, size, hash, &slot);
    *added = *index == SIZE_MAX;
    if (!*added) return SIFR_OK;
    if (size > UINT32_MAX || table->count >= UINT32_MAX - 1)
        return base_fail(error, SIFR_FAILED, "a word of %zu bytes: longer than the table takes",
                         size);
    if (!base_add_size(table->byte_count, size, &total)) return base_fail_alloc(error, SIZE_MAX);
    BASE_TRY(base_grow(&table->bytes, &table->byte_capacity, total, 1, error));
    BASE_TRY(base_grow(&table->items, &table->item_capacity, table->count + 1, sizeof *table->items,
                       error));
    if (size) memcpy(table->bytes + table->byte_count, bytes, size);
    *index = table->count++;
    table->items[*index] = (text_table_item){table->byte_count, (uint32_t)size, hash};
    table->byte_count = total;
    table->slots[slot] = (uint32_t)*index + 1;
    return SIFR_OK;
}

void text_table_free(text_table *table) {
    free(table->slots);
    free(table->items);
    free(table->bytes);
    *table = (text_table){0};
}
