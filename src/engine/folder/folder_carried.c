/* What a folder holds beside its text model: found, and written as it is. */
#include <stdlib.h>

#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/folder/folder_private.h"

static int compare_places(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (const formats_tensor *const *)a;
    uintptr_t y = (uintptr_t) * (const formats_tensor *const *)b;
    return (x > y) - (x < y);
}

/* The tensors that weights are read from; *count of them, by place. */
static sifr_status find_read(const sifr_model *model, const model_architecture *architecture,
                             const formats_weights *weights, const formats_tensor ***out,
                             size_t *count, sifr_error *error) {
    const formats_tensor **read;
    size_t used = 0;
    BASE_TRY(base_alloc(model->weight_count + 1, sizeof *read, &read, error));
    for (size_t w = 0; w < model->weight_count; w++) {
        if (model->weights[w].factor) continue;
        read[used] = engine_find_tensor(weights, architecture, model->weights[w].name);
        used += read[used] != NULL;
    }
    if (used) qsort(read, used, sizeof *read, compare_places);
    *out = read;
    *count = used;
    return SIFR_OK;
}

/* Its scales' settings go with quantization_config. */
static sifr_status refuse_coded(const formats_tensor *tensor, sifr_error *error) {
    return base_fail(error, SIFR_FAILED,
                     "tensor %.200s: it is F8_E4M3 and not of the text model: such are not carried "
                     "along; train from a folder of the same model in BF16",
                     tensor->name);
}

sifr_status engine_find_carried(const sifr_model *model, const model_architecture *architecture,
                                const formats_weights *weights, const formats_tensor ***out,
                                size_t *count, sifr_error *error) {
    const formats_tensor **read, **carried = NULL;
    size_t all = weights ? formats_weights_count(weights) : 0, known, used = 0;
    *out = NULL;
    *count = 0;
    if (!architecture->multimodal || !all) return SIFR_OK;
    BASE_TRY(find_read(model, architecture, weights, &read, &known, error));
    sifr_status status = base_alloc(all, sizeof *carried, &carried, error);
    for (size_t i = 0; status == SIFR_OK && i < all; i++) {
        const formats_tensor *tensor = formats_weights_at(weights, i);
        if (engine_is_leftover(architecture, model, tensor->name)) continue;
        if (tensor->of_another) continue;
        if (known && bsearch(&tensor, read, known, sizeof *read, compare_places)) continue;
        if (tensor->scales) status = refuse_coded(tensor, error);
        carried[used++] = tensor;
    }
    free(read);
    *out = carried;
    *count = used;
    return status;
}

/* In pieces of a mapped file, of which little is in memory at a time. */
sifr_status engine_copy_tensor(const formats_tensor *tensor, formats_safetensors_writer *writer,
                               sifr_error *error) {
    enum { PIECE = 1 << 20 };
    const char *data = tensor->data;
    for (uint64_t done = 0; done < tensor->bytes; done += PIECE) {
        size_t count = tensor->bytes - done < PIECE ? (size_t)(tensor->bytes - done) : PIECE;
        base_read_ahead(data + done, count);
        BASE_TRY(formats_safetensors_append(writer, data + done, count, error));
    }
    return SIFR_OK;
}

formats_tensor_spec engine_spec_of(const formats_tensor *tensor) {
    formats_tensor_spec spec = {.name = tensor->name, .dtype = tensor->dtype, .rank = tensor->rank};
    for (int i = 0; i < tensor->rank; i++) spec.shape[i] = tensor->shape[i];
    return spec;
}
