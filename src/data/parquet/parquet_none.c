/* For builds without carquet. */
#include "data/parquet/parquet.h"

bool formats_parquet_built(void) {
    return false;
}

const char *formats_parquet_version(void) {
    return NULL;
}

sifr_status formats_parquet_open(const void *data, size_t size, const char *name, size_t row_bytes,
                                 formats_parquet **out, sifr_error *error) {
    (void)data, (void)size, (void)row_bytes;
    *out = NULL;
    return formats_parquet_refuse(name, error);
}

void formats_parquet_close(formats_parquet *parquet) {
    (void)parquet;
}

const json_t *formats_parquet_columns(const formats_parquet *parquet) {
    (void)parquet;
    return NULL;
}

sifr_status formats_parquet_next(formats_parquet *parquet, json_t **row, bool *skippable,
                                 sifr_error *error) {
    (void)parquet;
    *row = NULL;
    *skippable = false;
    return base_fail(error, SIFR_USAGE, "Parquet is not read");
}

int64_t formats_parquet_row(const formats_parquet *parquet) {
    (void)parquet;
    return 0;
}
