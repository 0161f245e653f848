/* Pickle: protocol 2 (Python's pickletools). Zip: PKWARE's APPNOTE 6.3, sections 4.3 and 4.5.3. */
#include "formats/torch/torch_write.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/heap.h"

/* --- bytes --- */

typedef struct bytes {
    uint8_t *data;
    size_t size, capacity;
    bool full; /* memory ran out, which is said at the end */
} bytes;

static void put(bytes *b, const void *data, size_t size) {
    if (!b->full && base_grow(&b->data, &b->capacity, b->size + size, 1, NULL) != SIFR_OK)
        b->full = true;
    if (b->full) return;
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void put_text(bytes *b, const char *text) {
    put(b, text, strlen(text));
}

static void put_number(bytes *b, uint64_t value, int count) {
    uint8_t number[8];
    for (int i = 0; i < count; i++) number[i] = (uint8_t)(value >> 8 * i);
    put(b, number, (size_t)count);
}

/* --- the pickle --- */

static void pickle_text(bytes *b, const char *text, size_t length) {
    put_text(b, "X");
    put_number(b, length, 4);
    put(b, text, length);
}

static void pickle_int(bytes *b, int64_t value) {
    bool narrow = value >= INT32_MIN && value <= INT32_MAX;
    put_text(b, narrow ? "J" : "\x8a\x08");
    put_number(b, (uint64_t)value, narrow ? 4 : 8);
}

static void pickle_real(bytes *b, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_text(b, "G");
    for (int i = 7; i >= 0; i--) put_number(b, bits >> 8 * i, 1); /* the highest byte first */
}

static void pickle_tuple(bytes *b, const int64_t *values, int count) {
    put_text(b, "(");
    for (int i = 0; i < count; i++) pickle_int(b, values[i]);
    put_text(b, "t");
}

/* A view of the whole of storage 0. */
static void pickle_tensor(bytes *b, const formats_tensor_spec *tensor) {
    int64_t strides[FORMATS_RANK_LIMIT], elements = 1;
    for (int i = tensor->rank; i-- > 0; elements *= tensor->shape[i]) strides[i] = elements;
    put_text(b, "ctorch._utils\n_rebuild_tensor_v2\n((");
    pickle_text(b, "storage", 7);
    put_text(b, "ctorch\nFloatStorage\n");
    pickle_text(b, "0", 1);
    pickle_text(b, "cpu", 3);
    pickle_int(b, elements);
    put_text(b, "tQ");
    pickle_int(b, 0);
    pickle_tuple(b, tensor->shape, tensor->rank);
    pickle_tuple(b, strides, tensor->rank);
    put_text(b, "\x89"
                "ccollections\nOrderedDict\n)RtR");
}

static void pickle_value(bytes *b, const json_t *value, const formats_tensor_spec *tensor);

static void pickle_object(bytes *b, const json_t *value, const formats_tensor_spec *tensor) {
    const char *key;
    json_t *item;
    put_text(b, "}(");
    json_object_foreach((json_t *)(uintptr_t)value, key, item) {
        pickle_text(b, key, strlen(key));
        pickle_value(b, item, NULL);
    }
    if (tensor) {
        pickle_text(b, tensor->name, strlen(tensor->name));
        pickle_tensor(b, tensor);
    }
    put_text(b, "u");
}

/* As deep as the caller's own value. */
static void pickle_value(bytes *b, const json_t *value, const formats_tensor_spec *tensor) {
    size_t i;
    json_t *item;
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_OBJECT:
        pickle_object(b, value, tensor);
        break;
    case JSON_ARRAY:
        put_text(b, "](");
        json_array_foreach(value, i, item) pickle_value(b, item, NULL);
        put_text(b, "e");
        break;
    case JSON_STRING:
        pickle_text(b, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        pickle_int(b, json_integer_value(value));
        break;
    case JSON_REAL:
        pickle_real(b, json_real_value(value));
        break;
    case JSON_TRUE:
        put_text(b, "\x88");
        break;
    case JSON_FALSE:
        put_text(b, "\x89");
        break;
    case JSON_NULL:
        put_text(b, "N");
        break;
    }
}

/* --- the archive --- */

enum {
    ENTRIES = 4,
    LOCAL_BYTES = 30,
    WIDE_BYTES = 20, /* of a zip64 field with two sizes */
    FIELD_BYTES = 4, /* of a field's head */
    ALIGNMENT = 64,  /* of an entry's data, as torch.save has it */
    VERSION = 45,    /* that knows zip64 */
    SUM_BEHIND = 8,  /* flag: the sum stands behind the data */
    FIRST_DAY = 0x21 /* 1 January 1980 */
};

#define ELSEWHERE 0xffffffffu /* a number that stands in the zip64 field */

typedef struct zip_entry {
    const char *name;
    uint64_t size, offset;
    uint32_t sum;
} zip_entry;

typedef struct zip_writer {
    base_writer file;
    zip_entry entries[ENTRIES];
    size_t count;
} zip_writer;

static sifr_status flush(zip_writer *z, bytes *b, sifr_error *error) {
    sifr_status status = b->full ? base_fail_alloc(error, b->size)
                                 : base_writer_write(&z->file, b->data, b->size, error);
    free(b->data);
    *b = (bytes){0};
    return status;
}

static sifr_status begin_entry(zip_writer *z, const char *name, uint64_t size, sifr_error *error) {
    zip_entry *e = &z->entries[z->count];
    bytes b = {0};
    *e = (zip_entry){name, size, z->file.written, (uint32_t)crc32(0, NULL, 0)};
    size_t length = strlen(name);
    uint64_t at = e->offset + LOCAL_BYTES + length + WIDE_BYTES + FIELD_BYTES;
    size_t padding = (size_t)((ALIGNMENT - at % ALIGNMENT) % ALIGNMENT);
    put_number(&b, 0x04034b50, 4);
    put_number(&b, VERSION, 2);
    put_number(&b, SUM_BEHIND, 2);
    put_number(&b, 0, 4); /* stored; no time */
    put_number(&b, FIRST_DAY, 2);
    put_number(&b, 0, 4); /* the sum */
    put_number(&b, ELSEWHERE, 4);
    put_number(&b, ELSEWHERE, 4);
    put_number(&b, length, 2);
    put_number(&b, WIDE_BYTES + FIELD_BYTES + padding, 2);
    put_text(&b, name);
    put_number(&b, 1, 2); /* zip64 */
    put_number(&b, 16, 2);
    put_number(&b, size, 8);
    put_number(&b, size, 8);
    put_text(&b, "FB"); /* torch's name of padding */
    put_number(&b, padding, 2);
    for (size_t i = 0; i < padding; i++) put_text(&b, "Z");
    return flush(z, &b, error);
}

static sifr_status add_bytes(zip_writer *z, const void *data, size_t size, sifr_error *error) {
    zip_entry *e = &z->entries[z->count];
    e->sum = (uint32_t)crc32_z(e->sum, data, size);
    return base_writer_write(&z->file, data, size, error);
}

static sifr_status end_entry(zip_writer *z, sifr_error *error) {
    const zip_entry *e = &z->entries[z->count++];
    bytes b = {0};
    put_number(&b, 0x08074b50, 4);
    put_number(&b, e->sum, 4);
    put_number(&b, e->size, 8);
    put_number(&b, e->size, 8);
    return flush(z, &b, error);
}

static sifr_status add_entry(zip_writer *z, const char *name, const void *data, size_t size,
                             sifr_error *error) {
    BASE_TRY(begin_entry(z, name, size, error));
    BASE_TRY(add_bytes(z, data, size, error));
    return end_entry(z, error);
}

static void list_entry(bytes *b, const zip_entry *e) {
    put_number(b, 0x02014b50, 4);
    put_number(b, VERSION, 2);
    put_number(b, VERSION, 2);
    put_number(b, SUM_BEHIND, 2);
    put_number(b, 0, 4);
    put_number(b, FIRST_DAY, 2);
    put_number(b, e->sum, 4);
    put_number(b, ELSEWHERE, 4);
    put_number(b, ELSEWHERE, 4);
    put_number(b, strlen(e->name), 2);
    put_number(b, FIELD_BYTES + 24, 2);
    put_number(b, 0, 8); /* no comment; disk 0; attributes */
    put_number(b, 0, 2);
    put_number(b, ELSEWHERE, 4);
    put_text(b, e->name);
    put_number(b, 1, 2);
    put_number(b, 24, 2);
    put_number(b, e->size, 8);
    put_number(b, e->size, 8);
    put_number(b, e->offset, 8);
}

static sifr_status finish(zip_writer *z, sifr_error *error) {
    uint64_t begin = z->file.written;
    bytes b = {0};
    for (size_t i = 0; i < z->count; i++) list_entry(&b, &z->entries[i]);
    uint64_t length = b.size;
    put_number(&b, 0x06064b50, 4); /* zip64's end record */
    put_number(&b, 44, 8);         /* bytes that follow */
    put_number(&b, VERSION, 2);
    put_number(&b, VERSION, 2);
    put_number(&b, 0, 8); /* disks */
    put_number(&b, z->count, 8);
    put_number(&b, z->count, 8);
    put_number(&b, length, 8);
    put_number(&b, begin, 8);
    put_number(&b, 0x07064b50, 4); /* where that record is */
    put_number(&b, 0, 4);
    put_number(&b, begin + length, 8);
    put_number(&b, 1, 4);
    put_number(&b, 0x06054b50, 4); /* the end record of before zip64 */
    put_number(&b, 0, 4);
    put_number(&b, z->count, 2);
    put_number(&b, z->count, 2);
    put_number(&b, ELSEWHERE, 4);
    put_number(&b, ELSEWHERE, 4);
    put_number(&b, 0, 2);
    return flush(z, &b, error);
}

/* --- both --- */

static sifr_status add_pickle(zip_writer *z, const json_t *value, const formats_tensor_spec *tensor,
                              sifr_error *error) {
    bytes b = {0};
    put_text(&b, "\x80\x02");
    if (value)
        pickle_value(&b, value, tensor);
    else
        pickle_tensor(&b, tensor);
    put_text(&b, ".");
    sifr_status status = b.full ? base_fail_alloc(error, b.size)
                                : add_entry(z, "archive/data.pkl", b.data, b.size, error);
    free(b.data);
    return status;
}

static sifr_status add_tensor(zip_writer *z, const formats_tensor_spec *tensor,
                              formats_torch_give give, void *user, sifr_error *error) {
    uint64_t size;
    float *piece;
    BASE_TRY(formats_tensor_bytes(tensor, &size, error));
    BASE_TRY(begin_entry(z, "archive/data/0", size, error));
    BASE_TRY(base_alloc(FORMATS_TORCH_PIECE, sizeof *piece, &piece, error));
    sifr_status status = SIFR_OK;
    int64_t elements = (int64_t)(size / sizeof *piece);
    for (int64_t first = 0; status == SIFR_OK && first < elements; first += FORMATS_TORCH_PIECE) {
        int64_t left = elements - first,
                count = left < FORMATS_TORCH_PIECE ? left : FORMATS_TORCH_PIECE;
        status = give(user, first, count, piece, error);
        if (status == SIFR_OK) status = add_bytes(z, piece, (size_t)count * sizeof *piece, error);
    }
    free(piece);
    return status == SIFR_OK ? end_entry(z, error) : status;
}

static sifr_status write_archive(zip_writer *z, const json_t *value,
                                 const formats_tensor_spec *tensor, formats_torch_give give,
                                 void *user, sifr_error *error) {
    BASE_TRY(add_pickle(z, value, tensor, error));
    BASE_TRY(add_entry(z, "archive/byteorder", "little", 6, error));
    if (tensor) BASE_TRY(add_tensor(z, tensor, give, user, error));
    BASE_TRY(add_entry(z, "archive/version", "3\n", 2, error));
    return finish(z, error);
}

sifr_status formats_torch_write(const char *path, const json_t *value,
                                const formats_tensor_spec *tensor, formats_torch_give give,
                                void *user, sifr_error *error) {
    zip_writer z = {.count = 0};
    BASE_TRY(base_writer_open(&z.file, path, error));
    sifr_status status = write_archive(&z, value, tensor, give, user, error);
    if (status == SIFR_OK) return base_writer_commit(&z.file, error);
    base_writer_abort(&z.file);
    return status;
}
