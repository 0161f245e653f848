/* The reader of pickles on any bytes: no crash, one line of message, and views with sizes >= 0. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/torch/torch_pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    formats_pickle pickle;
    sifr_error error = {0};
    if (formats_pickle_parse(data, size, "input", &pickle, &error) != SIFR_OK) {
        must(error.status == SIFR_FAILED && error.message[0] && !strchr(error.message, '\n'));
        must(pickle.count == 0 && !pickle.views);
        return 0;
    }
    for (size_t i = 0; i < pickle.count; i++) {
        const formats_torch_view *v = &pickle.views[i];
        must(v->name.length > 0 && v->name.length <= FORMATS_NAME_LIMIT && v->offset >= 0);
        must(v->dtype > BASE_NONE && v->dtype < BASE_DTYPES && v->rank <= FORMATS_RANK_LIMIT);
        for (int d = 0; d < v->rank; d++) must(v->shape[d] >= 0 && v->stride[d] >= 0);
    }
    formats_pickle_free(&pickle);
    return 0;
}
