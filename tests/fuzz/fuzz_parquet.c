/* The reader of Parquet on any bytes: no crash, one line of message, no more memory than it says.
 * A row that cannot be used is skipped where the reader says that it can be. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/parquet/parquet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    data_parquet *parquet;
    sifr_error error = {0};
    json_t *row = NULL;
    bool skippable;
    sifr_status status = data_parquet_open(data, size, "input", 1 << 20, &parquet, &error);
    if (status == SIFR_OK) {
        size_t columns = json_array_size(data_parquet_columns(parquet));
        for (size_t rows = 0; rows < 10000; rows++) {
            status = data_parquet_next(parquet, &row, &skippable, &error);
            if (status == SIFR_OK && !row) break;
            if (status == SIFR_OK)
                must(json_object_size(row) == columns);
            else if (!skippable)
                break;
            json_decref(row);
        }
        data_parquet_close(parquet);
    }
    must(status == SIFR_OK || (error.message[0] && !strchr(error.message, '\n')));
    return 0;
}
