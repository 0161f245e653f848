/* The safetensors reader on any bytes: no crash, one line of message, and what it accepts lies
 * inside of the file, without overlap, and is found by name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/safetensors/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    formats_safetensors file;
    sifr_error error = {0};
    if (formats_safetensors_parse(data, size, "input", &file, &error) != SIFR_OK) {
        must(error.status == SIFR_FAILED && error.message[0] && !strchr(error.message, '\n'));
        must(file.count == 0 && !file.tensors);
        return 0;
    }
    uint64_t bytes = 0;
    for (size_t i = 0; i < file.count; i++) {
        const formats_tensor *t = &file.tensors[i];
        const uint8_t *begin = t->data;
        must(begin >= data + 8 && begin <= data + size &&
             t->bytes <= (uint64_t)(data + size - begin));
        must(t->rank <= FORMATS_RANK_LIMIT && formats_safetensors_find(&file, t->name) == t);
        must((uint64_t)t->elements * (uint64_t)base_dtype_bits(t->dtype) == 8 * t->bytes);
        if (i) must(strcmp(file.tensors[i - 1].name, t->name) < 0);
        bytes += t->bytes;
    }
    must(bytes <= size - 8);
    formats_safetensors_close(&file);
    return 0;
}
