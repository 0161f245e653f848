/* Layout: PKWARE's APPNOTE 6.3, sections 4.3 and 4.5.3. */
#include "formats/torch/torch_zip.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

enum {
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    COMMENT_LIMIT = 0xffff,
    ZIP64_FIELD = 1
};

#define LOCAL_SIGN 0x04034b50u
#define CENTRAL_SIGN 0x02014b50u
#define END_SIGN 0x06054b50u
#define END64_SIGN 0x06064b50u
#define LOCATOR_SIGN 0x07064b50u
#define ELSEWHERE 0xffffffffu /* a size or an offset that stands in the zip64 field */

typedef struct zip_reader {
    const uint8_t *data;
    size_t size;
    const char *name;
    uint64_t entries, begin, bytes; /* of the central directory */
} zip_reader;

static uint64_t load(const uint8_t *from, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

/* Do `count` bytes at `at` lie in the file? */
static bool inside(const zip_reader *r, uint64_t at, uint64_t count) {
    return at <= r->size && count <= r->size - at;
}

static sifr_status damaged(const zip_reader *r, const char *what, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: %s: the file is damaged or cut short", r->name, what);
}

/* The end record, which a comment may follow; the comment must reach to the file's end. */
static bool find_end(const zip_reader *r, size_t *at) {
    if (r->size < END_BYTES) return false;
    size_t last = r->size - END_BYTES, first = last > COMMENT_LIMIT ? last - COMMENT_LIMIT : 0;
    for (size_t i = last + 1; i-- > first;) {
        const uint8_t *p = r->data + i;
        if (load(p, 4) == END_SIGN && load(p + 20, 2) == last - i) {
            *at = i;
            return true;
        }
    }
    return false;
}

static sifr_status read_end64(zip_reader *r, const uint8_t *locator, sifr_error *error) {
    uint64_t at = load(locator + 8, 8);
    if (!inside(r, at, END64_BYTES) || load(r->data + at, 4) != END64_SIGN)
        return damaged(r, "its zip64 end record is missing", error);
    const uint8_t *p = r->data + at;
    r->entries = load(p + 32, 8);
    r->bytes = load(p + 40, 8);
    r->begin = load(p + 48, 8);
    return SIFR_OK;
}

static sifr_status read_end(zip_reader *r, sifr_error *error) {
    size_t at;
    if (!find_end(r, &at)) return damaged(r, "no zip archive", error);
    const uint8_t *p = r->data + at;
    r->entries = load(p + 10, 2);
    r->bytes = load(p + 12, 4);
    r->begin = load(p + 16, 4);
    if (at >= LOCATOR_BYTES && load(p - LOCATOR_BYTES, 4) == LOCATOR_SIGN)
        BASE_TRY(read_end64(r, p - LOCATOR_BYTES, error));
    if (!inside(r, r->begin, r->bytes))
        return damaged(r, "its list of entries lies outside of the file", error);
    if (r->entries > r->bytes / CENTRAL_BYTES)
        return damaged(r, "its list of entries is too short", error);
    if (r->entries > FORMATS_ZIP_ENTRY_LIMIT)
        return base_fail(error, SIFR_FAILED, "%s: %llu zip entries, more than the limit of %d",
                         r->name, (unsigned long long)r->entries, FORMATS_ZIP_ENTRY_LIMIT);
    return SIFR_OK;
}

/* One value of the zip64 field, for a 32-bit one that says that it stands there. */
static bool take_wide(const uint8_t **field, size_t *left, uint64_t *value) {
    if (*value != ELSEWHERE) return true;
    if (*left < 8) return false;
    *value = load(*field, 8);
    *field += 8;
    *left -= 8;
    return true;
}

/* Sizes and offset of an entry whose extra fields are extra[0…length). */
static bool read_wide(const uint8_t *extra, size_t length, uint64_t *size, uint64_t *stored,
                      uint64_t *offset) {
    while (length >= 4) {
        uint64_t kind = load(extra, 2), bytes = load(extra + 2, 2);
        extra += 4;
        length -= 4;
        if (bytes > length) return false;
        if (kind == ZIP64_FIELD) {
            size_t left = (size_t)bytes;
            return take_wide(&extra, &left, size) && take_wide(&extra, &left, stored) &&
                   take_wide(&extra, &left, offset);
        }
        extra += bytes;
        length -= (size_t)bytes;
    }
    return *size != ELSEWHERE && *stored != ELSEWHERE && *offset != ELSEWHERE;
}

/* Where the entry's bytes lie; its local header must have the same name. */
static bool find_data(const zip_reader *r, uint64_t offset, uint64_t size, formats_zip_entry *e) {
    if (!inside(r, offset, LOCAL_BYTES)) return false;
    const uint8_t *p = r->data + offset;
    uint64_t length = load(p + 26, 2), extra = load(p + 28, 2);
    uint64_t at = offset + LOCAL_BYTES + length + extra;
    if (load(p, 4) != LOCAL_SIGN || length != e->length || !inside(r, at, size)) return false;
    if (memcmp(p + LOCAL_BYTES, e->name, e->length) != 0) return false;
    e->data = r->data + at;
    e->size = size;
    return true;
}

static sifr_status read_entry(const zip_reader *r, uint64_t *at, formats_zip_entry *e,
                              sifr_error *error) {
    const uint8_t *p = r->data + *at;
    uint64_t left = r->begin + r->bytes - *at;
    if (left < CENTRAL_BYTES || load(p, 4) != CENTRAL_SIGN)
        return damaged(r, "its list of entries is broken", error);
    uint64_t flags = load(p + 8, 2), method = load(p + 10, 2), stored = load(p + 20, 4),
             size = load(p + 24, 4), length = load(p + 28, 2), extra = load(p + 30, 2),
             comment = load(p + 32, 2), offset = load(p + 42, 4);
    if (length + extra + comment > left - CENTRAL_BYTES)
        return damaged(r, "its list of entries is broken", error);
    e->name = (const char *)p + CENTRAL_BYTES;
    e->length = (size_t)length;
    if (method != 0 || flags & 1)
        return base_fail(error, SIFR_FAILED,
                         "%s: entry %.*s is compressed or encrypted: not a file of torch.save",
                         r->name, (int)length, e->name);
    if (!read_wide(p + CENTRAL_BYTES + length, (size_t)extra, &size, &stored, &offset) ||
        size != stored || !find_data(r, offset, size, e))
        return base_fail(error, SIFR_FAILED,
                         "%s: entry %.*s does not lie where the archive says: the file is damaged "
                         "or cut short",
                         r->name, (int)length, e->name);
    *at += CENTRAL_BYTES + length + extra + comment;
    return SIFR_OK;
}

static int compare_entries(const void *a, const void *b) {
    const formats_zip_entry *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static sifr_status read_entries(const zip_reader *r, formats_zip *out, sifr_error *error) {
    uint64_t at = r->begin;
    BASE_TRY(base_alloc((size_t)r->entries, sizeof *out->entries, &out->entries, error));
    for (; out->count < r->entries; out->count++)
        BASE_TRY(read_entry(r, &at, &out->entries[out->count], error));
    if (out->count) qsort(out->entries, out->count, sizeof *out->entries, compare_entries);
    for (size_t i = 1; i < out->count; i++) {
        const formats_zip_entry *e = &out->entries[i];
        if (compare_entries(e - 1, e) == 0)
            return base_fail(error, SIFR_FAILED, "%s: two zip entries have the name %.*s", r->name,
                             (int)e->length, e->name);
    }
    return SIFR_OK;
}

sifr_status formats_zip_parse(const uint8_t *data, size_t size, const char *name, formats_zip *out,
                              sifr_error *error) {
    zip_reader reader = {.data = data, .size = size, .name = name};
    *out = (formats_zip){0};
    sifr_status status = read_end(&reader, error);
    if (status == SIFR_OK) status = read_entries(&reader, out, error);
    if (status != SIFR_OK) formats_zip_free(out);
    return status;
}

void formats_zip_free(formats_zip *zip) {
    free(zip->entries);
    *zip = (formats_zip){0};
}

const formats_zip_entry *formats_zip_find(const formats_zip *zip, const char *name, size_t length) {
    formats_zip_entry key = {.name = name, .length = length};
    if (!zip->count) return NULL;
    return bsearch(&key, zip->entries, zip->count, sizeof key, compare_entries);
}
