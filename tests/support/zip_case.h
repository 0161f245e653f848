/* A zip archive of stored entries, made in memory, for tests of torch.save's files. */
#ifndef SUPPORT_ZIP_CASE_H
#define SUPPORT_ZIP_CASE_H

#include <stdint.h>
#include <string.h>

typedef struct zip_case {
    uint8_t bytes[1 << 16], list[1 << 12];
    size_t size, list_size;
    int entries;
    size_t central, end; /* of the finished archive: first list entry, end record */
} zip_case;

static inline uint8_t *zip_number(uint8_t *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) *to++ = (uint8_t)(value >> 8 * i);
    return to;
}

/* Appends an entry. */
static inline void zip_add(zip_case *z, const char *name, const void *data, size_t size) {
    size_t length = strlen(name);
    uint8_t *p = z->bytes + z->size;
    memset(p, 0, 30);
    zip_number(p, 0x04034b50, 4);
    zip_number(p + 18, size, 4);
    zip_number(p + 22, size, 4);
    zip_number(p + 26, length, 2);
    memcpy(p + 30, name, length);
    if (size) memcpy(p + 30 + length, data, size);
    uint8_t *c = z->list + z->list_size;
    memset(c, 0, 46);
    zip_number(c, 0x02014b50, 4);
    zip_number(c + 20, size, 4);
    zip_number(c + 24, size, 4);
    zip_number(c + 28, length, 2);
    zip_number(c + 42, z->size, 4);
    memcpy(c + 46, name, length);
    z->list_size += 46 + length;
    z->size += 30 + length + size;
    z->entries++;
}

/* Appends the list of entries and the end record. */
static inline void zip_finish(zip_case *z) {
    z->central = z->size;
    memcpy(z->bytes + z->size, z->list, z->list_size);
    z->size += z->list_size;
    z->end = z->size;
    uint8_t *p = z->bytes + z->size;
    memset(p, 0, 22);
    zip_number(p, 0x06054b50, 4);
    zip_number(p + 8, (uint64_t)z->entries, 2);
    zip_number(p + 10, (uint64_t)z->entries, 2);
    zip_number(p + 12, z->list_size, 4);
    zip_number(p + 16, z->central, 4);
    z->size += 22;
}

#endif
