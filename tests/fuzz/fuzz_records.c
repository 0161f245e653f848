/* The readers of labelled rows on any bytes: no crash, one line of message, and rows with the
 * columns that were announced. The first byte chooses the kind and the packing. A row that is not
 * well formed is skipped where the reader says that it can be. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/records/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void check_row(const data_records *records, data_records_kind kind, const json_t *row) {
    size_t columns = json_array_size(data_records_columns(records));
    must(json_is_object(row) && data_records_line(records) >= 1);
    if (kind == DATA_RECORDS_CSV || kind == DATA_RECORDS_TSV)
        must(json_object_size(row) == columns);
    if (kind != DATA_RECORDS_CONLL) return;
    size_t words = json_array_size(json_object_get(row, "tokens"));
    must(words > 0 && json_array_size(json_object_get(row, "tags")) == words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    data_records *records;
    sifr_error error = {0};
    json_t *row = NULL;
    if (size == 0) return 0;
    data_records_kind kind = (data_records_kind)(data[0] % 5);
    data_packing packing = (data_packing)(data[0] / 5 % 3);
    sifr_status status =
        data_records_parse_packed(kind, packing, data + 1, size - 1, "input", &records, &error);
    if (status == SIFR_OK) {
        for (size_t rows = 0;; rows++) {
            must(rows <= (size_t)1 << 24);
            status = data_records_next(records, &row, &error);
            if (status == SIFR_OK && !row) break;
            if (status == SIFR_OK)
                check_row(records, kind, row);
            else if (!data_records_skippable(records))
                break;
            json_decref(row);
        }
        data_records_close(records);
    }
    must(status == SIFR_OK || (error.message[0] && !strchr(error.message, '\n')));
    return 0;
}
