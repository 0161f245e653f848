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

static void check_row(const formats_records *records, formats_records_kind kind,
                      const json_t *row) {
    size_t columns = json_array_size(formats_records_columns(records));
    must(json_is_object(row) && formats_records_line(records) >= 1);
    if (kind == FORMATS_RECORDS_CSV || kind == FORMATS_RECORDS_TSV)
        must(json_object_size(row) == columns);
    if (kind != FORMATS_RECORDS_CONLL) return;
    size_t words = json_array_size(json_object_get(row, "tokens"));
    must(words > 0 && json_array_size(json_object_get(row, "tags")) == words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    formats_records *records;
    sifr_error error = {0};
    json_t *row = NULL;
    if (size == 0) return 0;
    formats_records_kind kind = (formats_records_kind)(data[0] % 5);
    formats_packing packing = (formats_packing)(data[0] / 5 % 3);
    sifr_status status =
        formats_records_parse_packed(kind, packing, data + 1, size - 1, "input", &records, &error);
    if (status == SIFR_OK) {
        for (size_t rows = 0;; rows++) {
            must(rows <= (size_t)1 << 24);
            status = formats_records_next(records, &row, &error);
            if (status == SIFR_OK && !row) break;
            if (status == SIFR_OK)
                check_row(records, kind, row);
            else if (!formats_records_skippable(records))
                break;
            json_decref(row);
        }
        formats_records_close(records);
    }
    must(status == SIFR_OK || (error.message[0] && !strchr(error.message, '\n')));
    return 0;
}
