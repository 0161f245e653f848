/* For builds without carquet. */
#include "data/parquet/parquet.h"

bool data_parquet_built(void) {
    return false;
}

const char *data_parquet_version(void) {
    return NULL;
}

sifr_status data_parquet_open(const void *data, size_t size, const char *name, size_t row_bytes,
                              data_parquet **out, sifr_error *error) {
    (void)data, (void)size, (void)row_bytes;
    *out = NULL;
    return data_parquet_refuse(name, error);
}

void data_parquet_close(data_parquet *parquet) {
    (void)parquet;
}

const json_t *data_parquet_columns(const data_parquet *parquet) {
    (void)parquet;
    return NULL;
}

sifr_status data_parquet_next(data_parquet *parquet, json_t **row, bool *skippable,
                              sifr_error *error) {
    (void)parquet;
    *row = NULL;
    *skippable = false;
    return base_fail(error, SIFR_USAGE, "Parquet is not read");
}

int64_t data_parquet_row(const data_parquet *parquet) {
    (void)parquet;
    return 0;
}
