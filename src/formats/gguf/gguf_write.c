#include "formats/gguf/gguf_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"

enum { VERSION = 3, ALIGNMENT = 32 };

/* --- metadata --- */

static void put(formats_gguf_meta *m, const void *data, size_t size) {
    size_t needed;
    if (m->failed || size == 0) return;
    if (!base_add_size(m->size, size, &needed) ||
        base_grow(&m->bytes, &m->capacity, needed, 1, NULL) != SIFR_OK) {
        m->failed = true;
        return;
    }
    memcpy(m->bytes + m->size, data, size);
    m->size = needed;
}

static void put_number(formats_gguf_meta *m, uint64_t value, int bytes) {
    uint8_t out[8];
    for (int i = 0; i < bytes; i++) out[i] = (uint8_t)(value >> 8 * i);
    put(m, out, (size_t)bytes);
}

static void put_text(formats_gguf_meta *m, const char *text, size_t size) {
    put_number(m, size, 8);
    put(m, text, size);
}

static void put_float(formats_gguf_meta *m, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(m, bits, 4);
}

static void put_key(formats_gguf_meta *m, const char *key, formats_gguf_kind kind) {
    put_text(m, key, strlen(key));
    put_number(m, kind, 4);
    m->count++;
}

void formats_gguf_meta_free(formats_gguf_meta *meta) {
    free(meta->bytes);
    *meta = (formats_gguf_meta){0};
}

void formats_gguf_add_u32(formats_gguf_meta *meta, const char *key, uint32_t value) {
    put_key(meta, key, FORMATS_GGUF_U32);
    put_number(meta, value, 4);
}

void formats_gguf_add_i32(formats_gguf_meta *meta, const char *key, int32_t value) {
    put_key(meta, key, FORMATS_GGUF_I32);
    put_number(meta, (uint32_t)value, 4);
}

void formats_gguf_add_float(formats_gguf_meta *meta, const char *key, float value) {
    put_key(meta, key, FORMATS_GGUF_FLOAT);
    put_float(meta, value);
}

void formats_gguf_add_bool(formats_gguf_meta *meta, const char *key, bool value) {
    put_key(meta, key, FORMATS_GGUF_BOOL);
    put_number(meta, value, 1);
}

void formats_gguf_add_text(formats_gguf_meta *meta, const char *key, const char *text,
                           size_t size) {
    put_key(meta, key, FORMATS_GGUF_TEXT);
    put_text(meta, text, size);
}

void formats_gguf_add_array(formats_gguf_meta *meta, const char *key, formats_gguf_kind kind,
                            uint64_t count) {
    put_key(meta, key, FORMATS_GGUF_ARRAY);
    put_number(meta, kind, 4);
    put_number(meta, count, 8);
}

void formats_gguf_item_text(formats_gguf_meta *meta, const char *text, size_t size) {
    put_text(meta, text, size);
}

void formats_gguf_item_i32(formats_gguf_meta *meta, int32_t value) {
    put_number(meta, (uint32_t)value, 4);
}

void formats_gguf_item_bool(formats_gguf_meta *meta, bool value) {
    put_number(meta, value, 1);
}

void formats_gguf_item_float(formats_gguf_meta *meta, float value) {
    put_float(meta, value);
}

/* --- tensors --- */

static int64_t columns_of(const formats_gguf_tensor *t) {
    return t->rank ? t->shape[t->rank - 1] : 1;
}

static sifr_status tensor_bytes(const formats_gguf_tensor *t, int64_t *rows, int64_t *bytes,
                                sifr_error *error) {
    bool good = true;
    *rows = 1;
    for (int i = 0; i + 1 < t->rank; i++) good = good && base_mul_i64(*rows, t->shape[i], rows);
    int64_t columns = columns_of(t), elements;
    good = good && base_mul_i64(columns, 4, &elements) &&
           base_mul_i64(*rows, formats_gguf_row_bytes(t->type, columns), bytes);
    if (good) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "tensor %s: its shape gives no size that fits", t->name);
}

/* The list of tensors, with where the data of each begins; *end: where the last one ends. */
static sifr_status put_tensors(formats_gguf_meta *m, const formats_gguf_tensor *tensors,
                               size_t count, sifr_error *error) {
    int64_t offset = 0, rows, bytes;
    for (size_t i = 0; i < count; i++) {
        const formats_gguf_tensor *t = &tensors[i];
        put_text(m, t->name, strlen(t->name));
        put_number(m, (uint64_t)t->rank, 4);
        for (int d = t->rank - 1; d >= 0; d--) put_number(m, (uint64_t)t->shape[d], 8);
        put_number(m, t->type, 4);
        put_number(m, (uint64_t)offset, 8);
        BASE_TRY(tensor_bytes(t, &rows, &bytes, error));
        if (!base_add_i64(offset, bytes, &offset) || !base_round_up_i64(offset, ALIGNMENT, &offset))
            return base_fail(error, SIFR_FAILED, "tensor %s: the file would be too large", t->name);
    }
    return SIFR_OK;
}

static sifr_status pad(base_writer *file, sifr_error *error) {
    static const uint8_t zeros[ALIGNMENT];
    size_t rest = (size_t)(file->written % ALIGNMENT);
    return rest ? base_writer_write(file, zeros, ALIGNMENT - rest, error) : SIFR_OK;
}

static sifr_status write_data(base_writer *file, const formats_gguf_tensor *tensors, size_t count,
                              formats_gguf_row row, void *user, float *values, uint8_t *stored,
                              sifr_error *error) {
    int64_t rows, bytes;
    for (size_t i = 0; i < count; i++) {
        const formats_gguf_tensor *t = &tensors[i];
        int64_t columns = columns_of(t);
        BASE_TRY(tensor_bytes(t, &rows, &bytes, error));
        for (int64_t r = 0; columns && r < rows; r++) {
            row(user, i, r, values);
            formats_gguf_convert(t->type, values, columns, stored);
            BASE_TRY(base_writer_write(file, stored,
                                       (size_t)formats_gguf_row_bytes(t->type, columns), error));
        }
        BASE_TRY(pad(file, error));
    }
    return SIFR_OK;
}

static sifr_status write_file(base_writer *file, const formats_gguf_meta *meta,
                              const formats_gguf_tensor *tensors, size_t count,
                              formats_gguf_row row, void *user, sifr_error *error) {
    formats_gguf_meta head = {0}, list = {0};
    int64_t widest = 0;
    float *values = NULL;
    uint8_t *stored = NULL;
    put(&head, "GGUF", 4);
    put_number(&head, VERSION, 4);
    put_number(&head, count, 8);
    put_number(&head, meta->count, 8);
    sifr_status status = put_tensors(&list, tensors, count, error);
    if (status == SIFR_OK && (head.failed || list.failed || meta->failed))
        status = base_fail_alloc(error, meta->size + list.size);
    for (size_t i = 0; i < count; i++) widest = base_max_i64(widest, columns_of(&tensors[i]));
    if (status == SIFR_OK) status = base_alloc((size_t)widest, sizeof *values, &values, error);
    if (status == SIFR_OK) status = base_alloc((size_t)widest, sizeof *values, &stored, error);
    if (status == SIFR_OK) status = base_writer_write(file, head.bytes, head.size, error);
    if (status == SIFR_OK) status = base_writer_write(file, meta->bytes, meta->size, error);
    if (status == SIFR_OK) status = base_writer_write(file, list.bytes, list.size, error);
    if (status == SIFR_OK) status = pad(file, error);
    if (status == SIFR_OK)
        status = write_data(file, tensors, count, row, user, values, stored, error);
    free(stored);
    free(values);
    formats_gguf_meta_free(&head);
    formats_gguf_meta_free(&list);
    return status;
}

sifr_status formats_gguf_write(const char *path, const formats_gguf_meta *meta,
                               const formats_gguf_tensor *tensors, size_t count,
                               formats_gguf_row row, void *user, uint64_t *bytes,
                               sifr_error *error) {
    base_writer file = {0};
    BASE_TRY(base_writer_open(&file, path, error));
    sifr_status status = write_file(&file, meta, tensors, count, row, user, error);
    *bytes = file.written;
    if (status == SIFR_OK) return base_writer_commit(&file, error);
    base_writer_abort(&file);
    return status;
}
