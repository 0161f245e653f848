/* The reader of torch.save's files on any bytes: no crash, one line of message, and what it accepts
 * can be read and is sorted by name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/torch/torch_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    formats_torch_file file;
    sifr_error error = {0};
    if (formats_torch_parse(data, size, "input", &file, &error) != SIFR_OK) {
        must(error.status == SIFR_FAILED && error.message[0] && !strchr(error.message, '\n'));
        must(file.count == 0 && !file.tensors);
        return 0;
    }
    unsigned sum = 0;
    for (size_t i = 0; i < file.count; i++) {
        const formats_tensor *t = &file.tensors[i];
        const uint8_t *bytes = t->data;
        must(t->bytes <= size && t->rank <= FORMATS_RANK_LIMIT);
        must((uint64_t)t->elements * (uint64_t)base_dtype_bits(t->dtype) == 8 * t->bytes);
        if (t->bytes) sum += bytes[0] + bytes[t->bytes - 1];
        if (i) must(strcmp(file.tensors[i - 1].name, t->name) < 0);
    }
    must(sum <= 2 * 255 * (unsigned)file.count);
    formats_torch_close(&file);
    return 0;
}
