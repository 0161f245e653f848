/* Adapter folders as PEFT has them: adapter_config.json and adapter_model.safetensors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/folder/folder_private.h"
#include "engine/state/convert.h"

const formats_tensor *engine_adapter_tensor(const engine_folder *folder, size_t weight) {
    char name[MODEL_LORA_NAME];
    const model_weight *w = &folder->model->weights[weight];
    const formats_tensor *tensor = NULL;
    if (!folder->adapter || w->frozen) return NULL;
    for (int i = 0; !tensor && model_lora_spelling(w, i, name); i++)
        tensor = formats_weights_find(folder->adapter, name);
    return tensor;
}

static sifr_status check_shape(const model_weight *w, const formats_tensor *tensor,
                               sifr_error *error) {
    int64_t wanted[3];
    int rank = model_weight_shape(w, wanted);
    bool fits = tensor->rank == rank;
    for (int i = 0; i < rank && fits; i++) fits = tensor->shape[i] == wanted[i];
    if (!fits)
        return base_fail(error, SIFR_FAILED,
                         "tensor %s: it has %lld x %lld values, but for this model and its "
                         "adapter_config.json it must have %lld x %lld: is it of another base?",
                         tensor->name, (long long)tensor->shape[0],
                         (long long)(tensor->rank > 1 ? tensor->shape[1] : 1), (long long)wanted[0],
                         (long long)(rank > 1 ? wanted[1] : 1));
    if (tensor->dtype <= BASE_FP16) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "tensor %s: type %s is not supported (supported: F32, BF16, F16)",
                     tensor->name, formats_dtype_name(tensor->dtype));
}

static sifr_status check_finite(const formats_tensor *tensor, sifr_error *error) {
    enum { PIECE = 1024 };
    float values[PIECE];
    for (int64_t first = 0; first < tensor->elements; first += PIECE) {
        int64_t count = base_min_i64(PIECE, tensor->elements - first);
        engine_tensor_values(tensor, 0, first, count, values);
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(values[i]))
                return base_fail(error, SIFR_FAILED, "tensor %s: value %lld is %g: it is damaged",
                                 tensor->name, (long long)(first + i), (double)values[i]);
    }
    return SIFR_OK;
}

static bool is_tower(const engine_folder *folder, const char *tensor) {
    char plain[FORMATS_SPELLING_LENGTH];
    size_t length = strlen(MODEL_LORA_PREFIX);
    bool its = !strncmp(tensor, MODEL_LORA_PREFIX, length);
    return folder->architecture->multimodal && its &&
           !formats_multimodal_plain(tensor + length, plain);
}

/* Each trained weight has its tensor, and each tensor its weight. */
static sifr_status check_tensors(const engine_folder *folder, sifr_error *error) {
    const sifr_model *model = folder->model;
    size_t found = 0, count = formats_weights_count(folder->adapter);
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        const formats_tensor *tensor = engine_adapter_tensor(folder, i);
        char name[MODEL_LORA_NAME];
        if (w->frozen && folder->made && folder->made[i])
            return base_fail(error, SIFR_FAILED,
                             "%s is neither in the adapter nor in the base's folder, so what it "
                             "was trained with is lost; train it again with modules_to_save that "
                             "name its module",
                             w->name);
        if (w->frozen) continue;
        /* PEFT does not save those of "lora_only": they begin as the base's. */
        if (!tensor && w->adapted_bias) continue;
        if (!tensor)
            return base_fail(error, SIFR_FAILED,
                             "tensor %s: missing, but the model and adapter_config.json need it "
                             "(there are %zu tensors): is it of another base?",
                             model_lora_tensor(w, name), count);
        BASE_TRY(check_shape(w, tensor, error));
        BASE_TRY(check_finite(tensor, error));
        found++;
    }
    for (size_t t = 0; found < count && t < count; t++) {
        const formats_tensor *tensor = formats_weights_at(folder->adapter, t);
        size_t i = 0;
        while (i < model->weight_count && engine_adapter_tensor(folder, i) != tensor) i++;
        if (i == model->weight_count && is_tower(folder, tensor->name))
            return base_fail(error, SIFR_FAILED,
                             "tensor %s: it is of the tower, which is not trained here: adapters "
                             "are read for the text model alone",
                             tensor->name);
        if (i == model->weight_count)
            return base_fail(error, SIFR_FAILED,
                             "tensor %s: the model and adapter_config.json have no such weight: is "
                             "it of another base?",
                             tensor->name);
    }
    return SIFR_OK;
}

sifr_status engine_adapter_open(const char *directory, engine_folder *folder, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(path, directory, ENGINE_ADAPTER_FILE, error));
    if (!base_is_file(path))
        return base_fail(error, SIFR_FAILED,
                         "%s: not there; PEFT writes it with save_pretrained (adapter_model.bin is "
                         "not read)",
                         path);
    BASE_TRY(formats_weights_open(path, &folder->adapter, error));
    sifr_status status = check_tensors(folder, error);
    return status == SIFR_OK ? status : base_fail_in(error, status, "%s", path);
}

/* --- written --- */

static int compare_names(const void *a, const void *b) {
    const engine_stored_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

sifr_status engine_adapter_stored(const sifr_model *model, engine_stored *out, sifr_error *error) {
    BASE_TRY(base_alloc(model->weight_count, sizeof *out->names, &out->names, error));
    for (size_t i = 0; i < model->weight_count; i++) {
        if (model->weights[i].frozen) continue;
        out->tensors[out->count] = (engine_stored_tensor){
            i, model_lora_tensor(&model->weights[i], out->names[out->count]), BASE_FP32, NULL};
        out->count++;
    }
    qsort(out->tensors, out->count, sizeof *out->tensors, compare_names);
    out->file = ENGINE_ADAPTER_FILE;
    return SIFR_OK;
}

sifr_status engine_write_file(const char *directory, const char *name,
                              const formats_tensor_spec *specs, size_t count, formats_fill fill,
                              void *user, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    formats_safetensors_writer writer;
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(formats_safetensors_writer_open(&writer, path, specs, count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) status = fill(user, i, &writer, error);
    if (status == SIFR_OK) return formats_safetensors_commit(&writer, error);
    formats_safetensors_abort(&writer);
    return status;
}
