/* A leaf's values in order, a page at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/json.h"
#include "data/parquet/parquet_internal.h"

/* Values are taken so many at a time. What the pages at hand of all columns may take; carquet holds
 * each page below 256 MiB itself. */
enum { BATCH = 1024 };
#define PAGES_LIMIT ((size_t)1 << 30)

static sifr_status failed(const data_parquet *p, const parquet_cursor *cursor,
                          const carquet_error_t *said, sifr_error *error) {
    if (said->code == CARQUET_ERROR_OUT_OF_MEMORY) return base_fail_alloc(error, PAGES_LIMIT);
    return base_fail(error, SIFR_FAILED, "%s: row group %d, column %d cannot be read: %.200s",
                     p->name, p->group, cursor->column, said->message);
}

static size_t value_size(const parquet_cursor *cursor) {
    switch (cursor->type) {
    case CARQUET_PHYSICAL_BOOLEAN:
        return 1;
    case CARQUET_PHYSICAL_INT32:
    case CARQUET_PHYSICAL_FLOAT:
        return 4;
    case CARQUET_PHYSICAL_BYTE_ARRAY:
        return sizeof(carquet_byte_array_t);
    default:
        return 8;
    }
}

static sifr_status check_codec(const data_parquet *p, const parquet_cursor *cursor,
                               sifr_error *error) {
    const parquet_column_metadata_t *metadata = cursor->reader->col_meta;
    if (!metadata || (metadata->codec != CARQUET_COMPRESSION_BROTLI &&
                      metadata->codec != CARQUET_COMPRESSION_LZO))
        return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "%s: its pages are packed with %s, which is not supported (supported: Snappy, "
        "zstd, gzip, LZ4); write it anew, with pandas: python3 -c 'import pandas, sys; "
        "pandas.read_parquet(sys.argv[1]).to_parquet(sys.argv[2], "
        "compression=\"zstd\")' %s rows.parquet",
        p->name, metadata->codec == CARQUET_COMPRESSION_BROTLI ? "Brotli" : "LZO", p->name);
}

sifr_status data_parquet_open_column(data_parquet *p, parquet_cursor *cursor, sifr_error *error) {
    carquet_error_t said = CARQUET_ERROR_INIT;
    cursor->count = cursor->at = cursor->value = cursor->rows = 0;
    if (!cursor->values) BASE_TRY(base_alloc(BATCH, value_size(cursor), &cursor->values, error));
    if (!cursor->definition)
        BASE_TRY(base_alloc(BATCH, sizeof(int16_t), &cursor->definition, error));
    if (!cursor->repetition)
        BASE_TRY(base_alloc(BATCH, sizeof(int16_t), &cursor->repetition, error));
    cursor->reader = carquet_reader_get_column(p->reader, p->group, cursor->column, &said);
    return cursor->reader ? check_codec(p, cursor, error) : failed(p, cursor, &said, error);
}

void data_parquet_close_column(parquet_cursor *cursor) {
    if (cursor->reader) carquet_column_reader_free(cursor->reader);
    cursor->reader = NULL;
}

static size_t held_by(const carquet_column_reader_t *r) {
    size_t held = r->page_buffer_capacity + r->decompress_capacity + r->dictionary_size +
                  (size_t)r->dictionary_count * 4 + r->indices_capacity * 4 +
                  r->decoded_capacity * (r->decoded_value_size + 4);
    for (const carquet_retained_page_t *page = r->retained_pages; page; page = page->next)
        held += page->size;
    return held;
}

static sifr_status check_held(const data_parquet *p, sifr_error *error) {
    size_t held = 0;
    for (int32_t i = 0; i < p->cursor_count; i++)
        if (p->cursors[i].reader) held += held_by(p->cursors[i].reader);
    if (held <= PAGES_LIMIT) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the pages of row group %d take more than %zu MiB at once; write the file "
                     "with smaller pages (pyarrow: data_page_size), or keep fewer columns",
                     p->name, p->group, PAGES_LIMIT >> 20);
}

/* pyarrow writes pages without values now and then, which carquet takes for damage: such pages are
 * passed over here. What is wrong with others is left to carquet. */
static sifr_status pass_empty(data_parquet *p, parquet_cursor *cursor, sifr_error *error) {
    carquet_column_reader_t *r = cursor->reader;
    carquet_error_t said = CARQUET_ERROR_INIT;
    if (r->page_loaded) r->current_page += r->page_header_size + r->page_compressed_size;
    r->page_loaded = false;
    if (carquet_column_ensure_dictionary_loaded(r, &said) != CARQUET_OK)
        return failed(p, cursor, &said, error);
    for (;;) {
        parquet_page_header_t header;
        size_t size;
        int64_t at;
        const carquet_reader_t *file = p->reader;
        if (!base_add_i64(r->data_start_offset, r->current_page, &at) || at < 0 ||
            (uint64_t)at >= file->file_size ||
            parquet_parse_page_header(file->mmap_data + at, file->file_size - (size_t)at, &header,
                                      &size, &said) != CARQUET_OK)
            return SIFR_OK;
        if (header.type != CARQUET_PAGE_DATA || header.data_page_header.num_values != 0 ||
            header.compressed_page_size < 0 || size == 0)
            return SIFR_OK;
        r->current_page += (int64_t)size + header.compressed_page_size;
    }
}

/* The next page that has values. Nothing of the one before is used any more. */
static sifr_status load_page(data_parquet *p, parquet_cursor *cursor, sifr_error *error) {
    carquet_column_reader_t *r = cursor->reader;
    carquet_error_t said = CARQUET_ERROR_INIT;
    if (r->page_loaded && r->page_values_read < r->page_num_values) return SIFR_OK;
    carquet_column_clear_retained_pages(r);
    BASE_TRY(pass_empty(p, cursor, error));
    if (carquet_column_ensure_page_loaded(r, &said) != CARQUET_OK)
        return failed(p, cursor, &said, error);
    return check_held(p, error);
}

/* Levels and values of one page alone, since those of the page before it go away. */
static sifr_status fill(data_parquet *p, parquet_cursor *cursor, sifr_error *error) {
    carquet_column_reader_t *r = cursor->reader;
    carquet_error_t said = CARQUET_ERROR_INIT;
    cursor->count = cursor->at = cursor->value = 0;
    if (r->values_remaining <= 0) return SIFR_OK;
    BASE_TRY(load_page(p, cursor, error));
    int64_t wanted = r->page_num_values - r->page_values_read;
    if (wanted > BATCH) wanted = BATCH;
    if (wanted > r->values_remaining) wanted = r->values_remaining;
    if (wanted <= 0) return data_parquet_damaged(p, "a page has no values", error);
    cursor->count = carquet_column_read_batch_ex(r, cursor->values, wanted, cursor->definition,
                                                 cursor->repetition, &said);
    if (cursor->count > 0 && said.code == CARQUET_OK) return SIFR_OK;
    cursor->count = 0;
    return failed(p, cursor, &said, error);
}

sifr_status data_parquet_peek(data_parquet *p, parquet_cursor *cursor, int16_t *definition,
                              int16_t *repetition, bool *there, sifr_error *error) {
    if (cursor->at == cursor->count) BASE_TRY(fill(p, cursor, error));
    *there = cursor->at < cursor->count;
    if (!*there) return SIFR_OK;
    *definition = cursor->most ? cursor->definition[cursor->at] : 0;
    *repetition = cursor->repeated ? cursor->repetition[cursor->at] : 0;
    return SIFR_OK;
}

static sifr_status make_string(data_parquet *p, const parquet_cursor *cursor, json_t **out,
                               sifr_error *error) {
    carquet_byte_array_t bytes;
    memcpy(&bytes, (const carquet_byte_array_t *)cursor->values + cursor->value, sizeof bytes);
    if (bytes.length < 0 || (bytes.length && !bytes.data))
        return data_parquet_damaged(p, "a text has no bytes", error);
    const char *text = bytes.length ? (const char *)bytes.data : "";
    size_t size = (size_t)bytes.length;
    p->bytes += size;
    p->skippable = true;
    if (p->bytes > p->row_bytes)
        return base_fail(error, SIFR_FAILED, "%s: row %lld has more than %zu bytes", p->name,
                         (long long)p->row, p->row_bytes);
    if (memchr(text, 0, size))
        return base_fail(error, SIFR_FAILED, "%s: row %lld has a NUL byte: not text", p->name,
                         (long long)p->row);
    *out = json_stringn(text, size);
    if (!*out)
        return base_fail(error, SIFR_FAILED, "%s: row %lld is not valid UTF-8; convert the file",
                         p->name, (long long)p->row);
    p->skippable = false;
    return SIFR_OK;
}

static json_t *make_integer(const parquet_cursor *cursor) {
    bool is_signed = cursor->form == PARQUET_INTEGER;
    if (cursor->type == CARQUET_PHYSICAL_INT32) {
        int32_t value;
        memcpy(&value, (const int32_t *)cursor->values + cursor->value, sizeof value);
        return json_integer(is_signed ? value : (json_int_t)(uint32_t)value);
    }
    int64_t value;
    memcpy(&value, (const int64_t *)cursor->values + cursor->value, sizeof value);
    if (!is_signed && value < 0) return json_real((double)(uint64_t)value);
    return json_integer(value);
}

/* Dates that no calendar of ISO has are null. */
static json_t *make_time(const parquet_cursor *cursor) {
    char text[PARQUET_TIME_SIZE];
    int64_t value;
    int32_t narrow;
    if (cursor->type == CARQUET_PHYSICAL_INT32) {
        memcpy(&narrow, (const int32_t *)cursor->values + cursor->value, sizeof narrow);
        value = narrow;
    } else {
        memcpy(&value, (const int64_t *)cursor->values + cursor->value, sizeof value);
    }
    return data_parquet_time_text(cursor, value, text) ? json_string(text) : json_null();
}

/* JSON has no infinity and no NaN, which stands for what is missing. */
static json_t *make_real(const parquet_cursor *cursor) {
    double value;
    if (cursor->type == CARQUET_PHYSICAL_FLOAT)
        value = ((const float *)cursor->values)[cursor->value];
    else
        value = ((const double *)cursor->values)[cursor->value];
    return base_json_finite(value);
}

static sifr_status make(data_parquet *p, const parquet_cursor *cursor, json_t **out,
                        sifr_error *error) {
    if (cursor->form == PARQUET_STRING) return make_string(p, cursor, out, error);
    if (cursor->form >= PARQUET_DATE)
        *out = make_time(cursor);
    else if (cursor->form == PARQUET_BOOLEAN)
        *out = json_boolean(((const uint8_t *)cursor->values)[cursor->value]);
    else
        *out = cursor->form == PARQUET_REAL ? make_real(cursor) : make_integer(cursor);
    return *out ? SIFR_OK : base_fail_alloc(error, 64);
}

sifr_status data_parquet_take(data_parquet *p, parquet_cursor *cursor, json_t **out,
                              sifr_error *error) {
    int16_t definition, repetition;
    bool there;
    BASE_TRY(data_parquet_peek(p, cursor, &definition, &repetition, &there, error));
    if (!there) return data_parquet_damaged(p, "a column ends before its last row", error);
    bool full = definition == cursor->most;
    sifr_status status = SIFR_OK;
    if (out) *out = NULL;
    if (full && out) status = make(p, cursor, out, error);
    cursor->rows += repetition == 0;
    cursor->value += full;
    cursor->at++;
    return status;
}
