/* The reader of model.safetensors.index.json on any bytes: no crash, one line of message, and no
 * name that leads out of the folder. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    formats_index index;
    sifr_error error = {0};
    if (formats_index_parse((const char *)data, size, ".safetensors", "input", &index, &error) !=
        SIFR_OK) {
        must(error.status == SIFR_FAILED && error.message[0] && !strchr(error.message, '\n'));
        return 0;
    }
    must(index.count > 0 && index.total_size >= -1);
    for (size_t i = 0; i < index.count; i++) {
        const char *file = index.entries[i].file;
        must(!strpbrk(file, "/\\") && strcmp(file, "..") != 0 && strlen(file) <= 255);
        if (i) must(strcmp(index.entries[i - 1].tensor, index.entries[i].tensor) < 0);
    }
    formats_index_free(&index);
    return 0;
}
