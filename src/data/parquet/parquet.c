#include "data/parquet/parquet.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "data/parquet/parquet_internal.h"

bool data_parquet_built(void) {
    return true;
}

const char *data_parquet_version(void) {
    return carquet_version();
}

static sifr_status open_reader(data_parquet *p, const void *data, size_t size, sifr_error *error) {
    static const char mark[] = "PAR1";
    carquet_error_t said = CARQUET_ERROR_INIT;
    carquet_reader_options_t options;
    if (size < 12 || memcmp(data, mark, 4) != 0)
        return base_fail(error, SIFR_FAILED, "%s: no Parquet file: it does not begin with PAR1",
                         p->name);
    carquet_reader_options_init(&options);
    options.num_threads = 1;
    p->reader = carquet_reader_open_buffer(data, size, &options, &said);
    if (p->reader) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: the Parquet file cannot be read: %.200s", p->name,
                     said.message);
}

sifr_status data_parquet_open(const void *data, size_t size, const char *name, size_t row_bytes,
                              data_parquet **out, sifr_error *error) {
    data_parquet *p;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *p, &p, error));
    p->row_bytes = row_bytes;
    sifr_status status = base_copy_text(name, strlen(name), &p->name, error);
    if (status == SIFR_OK) status = open_reader(p, data, size, error);
    if (status == SIFR_OK) status = data_parquet_schema(p, error);
    if (status == SIFR_OK)
        *out = p;
    else
        data_parquet_close(p);
    return status;
}

static void close_group(data_parquet *p) {
    for (int32_t i = 0; i < p->cursor_count; i++) data_parquet_close_column(&p->cursors[i]);
    p->open = false;
}

void data_parquet_close(data_parquet *p) {
    if (!p) return;
    close_group(p);
    for (int32_t i = 0; i < p->cursor_count; i++) {
        free(p->cursors[i].values);
        free(p->cursors[i].definition);
        free(p->cursors[i].repetition);
    }
    if (p->reader) carquet_reader_close(p->reader);
    free(p->cursors);
    free(p->nodes);
    free(p->name);
    json_decref(p->columns);
    free(p);
}

const json_t *data_parquet_columns(const data_parquet *p) {
    return p->columns;
}

int64_t data_parquet_row(const data_parquet *p) {
    return p->row;
}

/* What is left of the open row group is nothing, where the file is whole. */
static sifr_status end_group(data_parquet *p, sifr_error *error) {
    for (int32_t i = 0; i < p->cursor_count; i++) {
        int16_t definition, repetition;
        bool there;
        BASE_TRY(data_parquet_peek(p, &p->cursors[i], &definition, &repetition, &there, error));
        if (there) return data_parquet_damaged(p, "a column has more rows than others", error);
    }
    close_group(p);
    p->group++;
    return SIFR_OK;
}

static sifr_status open_group(data_parquet *p, sifr_error *error) {
    carquet_row_group_metadata_t metadata;
    if (carquet_reader_row_group_metadata(p->reader, p->group, &metadata) != CARQUET_OK ||
        metadata.num_rows < 0)
        return data_parquet_damaged(p, "a row group has no description", error);
    p->group_rows = metadata.num_rows;
    p->group_row = 0;
    p->open = true;
    for (int32_t i = 0; i < p->cursor_count; i++)
        BASE_TRY(data_parquet_open_column(p, &p->cursors[i], error));
    return SIFR_OK;
}

sifr_status data_parquet_next(data_parquet *p, json_t **row, bool *skippable, sifr_error *error) {
    *row = NULL;
    *skippable = false;
    while (!p->open || p->group_row == p->group_rows) {
        if (p->open) BASE_TRY(end_group(p, error));
        if (p->group >= carquet_reader_num_row_groups(p->reader)) return SIFR_OK;
        BASE_TRY(open_group(p, error));
    }
    p->row++;
    p->group_row++;
    p->bytes = 0;
    p->skippable = false;
    sifr_status status = data_parquet_assemble(p, row, error);
    if (status == SIFR_OK || !p->skippable) return status;
    sifr_error later = {0};
    *skippable = data_parquet_pass(p, p->group_row, &later) == SIFR_OK;
    return status;
}
