/* The tensors of a model folder: which is a weight's, and whether it fits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine_private.h"
#include "engine/folder/folder_private.h"
#include "engine/state/convert.h"

static bool ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && !strcmp(text + a - b, end);
}

/* Of a folder with a tower: under one of the names that it may have. */
static const formats_tensor *find_spelt(const formats_weights *weights, const char *name) {
    char spelt[FORMATS_SPELLING_LENGTH];
    const formats_tensor *tensor = NULL;
    for (int i = 0; !tensor && formats_multimodal_spelling(name, i, spelt); i++)
        tensor = formats_weights_find(weights, spelt);
    return tensor;
}

/* Under its name, or without the prefix in older files. */
static const formats_tensor *find_named(const formats_weights *weights,
                                        const model_architecture *architecture, const char *name) {
    if (architecture->multimodal) return find_spelt(weights, name);
    const formats_tensor *tensor = formats_weights_find(weights, name);
    size_t length = strlen(architecture->prefix);
    if (!tensor && length && !strncmp(name, architecture->prefix, length)) {
        tensor = formats_weights_find(weights, name + length);
    }
    return tensor;
}

/* Under this name, or one that older files have. */
const formats_tensor *engine_find_tensor(const formats_weights *weights,
                                         const model_architecture *architecture, const char *name) {
    const formats_tensor *tensor = find_named(weights, architecture, name);
    for (size_t i = 0; i < 2 && architecture->older[i].now && !tensor; i++) {
        char text[MODEL_NAME_LENGTH];
        if (!ends_with(name, architecture->older[i].now)) continue;
        size_t kept = strlen(name) - strlen(architecture->older[i].now);
        snprintf(text, sizeof text, "%.*s%s", (int)kept, name, architecture->older[i].before);
        tensor = find_named(weights, architecture, text);
    }
    return tensor;
}

/* To the digits that 16 bits have. */
static sifr_status check_number(const model_weight *w, const formats_tensor *tensor,
                                sifr_error *error) {
    float value;
    engine_tensor_values(tensor, 0, 0, 1, &value);
    if (fabs((double)value - w->start) <= 0.005 * fabs(w->start)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "tensor %s: it is %g, but only %g, the number of transformers' class, is "
                     "supported",
                     tensor->name, (double)value, w->start);
}

enum { SHAPE_LENGTH = 96 };

/* "8 x 4", or in words what has no sizes to name. */
static const char *shape_text(int rank, const int64_t *shape, char text[SHAPE_LENGTH]) {
    size_t used = 0;
    if (rank == 0) return "that of a single number";
    for (int i = 0; i < rank && used + 24 < SHAPE_LENGTH; i++)
        used += (size_t)snprintf(text + used, SHAPE_LENGTH - used, "%s%lld", i ? " x " : "",
                                 (long long)shape[i]);
    return text;
}

static sifr_status check_tensor(const model_weight *w, const formats_tensor *tensor,
                                sifr_error *error) {
    int64_t wanted[3];
    int rank = model_weight_shape(w, wanted);
    bool fits = tensor->rank == rank;
    for (int i = 0; i < rank && fits; i++) fits = tensor->shape[i] == wanted[i];
    if (!fits) {
        char has[SHAPE_LENGTH], needs[SHAPE_LENGTH];
        return base_fail(error, SIFR_FAILED, "tensor %s: its shape is %s, but config.json needs %s",
                         tensor->name, shape_text(tensor->rank, tensor->shape, has),
                         shape_text(rank, wanted, needs));
    }
    if (formats_value_type(tensor) > BASE_FP16) {
        return base_fail(error, SIFR_FAILED,
                         "tensor %s: type %s is not supported (supported: F32, BF16, F16)",
                         tensor->name, formats_dtype_name(tensor->dtype));
    }
    return w->known ? check_number(w, tensor, error) : SIFR_OK;
}

static bool is_head(const model_architecture *architecture, const char *name) {
    char older[FORMATS_SPELLING_LENGTH];
    if (!strcmp(name, architecture->head)) return true;
    return architecture->multimodal && formats_multimodal_spelling(architecture->head, 1, older) &&
           !strcmp(name, older);
}

bool engine_is_leftover(const model_architecture *architecture, const sifr_model *model,
                        const char *name) {
    for (size_t i = 0; i < 4 && architecture->ignored[i]; i++) {
        if (ends_with(name, architecture->ignored[i])) return true;
    }
    /* A stored copy of a tied head. */
    const model_weight *head = &model->weights[model->nodes[model->node_count - 1].w[0]];
    return is_head(architecture, name) && !strcmp(head->name, architecture->embedding);
}

/* A stored tied head must equal the embedding. */
static sifr_status check_tied(const model_architecture *architecture, const sifr_model *model,
                              const formats_weights *weights, sifr_error *error) {
    const formats_tensor *head = find_named(weights, architecture, architecture->head);
    if (!head || !engine_is_leftover(architecture, model, architecture->head)) return SIFR_OK;
    const formats_tensor *table =
        engine_find_tensor(weights, architecture, architecture->embedding);
    bool same = table && head->bytes == table->bytes && head->dtype == table->dtype &&
                !memcmp(head->data, table->data, head->bytes);
    if (same) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "tensor %s: config.json says tie_word_embeddings, but it differs from %s; set "
                     "tie_word_embeddings to false to train it by itself",
                     architecture->head, architecture->embedding);
}

sifr_status engine_visit_present(const sifr_model *model, const model_architecture *architecture,
                                 const formats_weights *weights, const bool *made,
                                 engine_take_weight take, void *user, sifr_error *error) {
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        if (w->factor || (made && made[i])) continue;
        const formats_tensor *tensor = engine_find_tensor(weights, architecture, w->name);
        if (!tensor) {
            return base_fail(error, SIFR_FAILED,
                             "tensor %s: missing, but config.json needs it (there are %zu tensors)",
                             w->name, formats_weights_count(weights));
        }
        BASE_TRY(check_tensor(w, tensor, error));
    }
    BASE_TRY(check_tied(architecture, model, weights, error));
    for (size_t i = 0; take && i < model->weight_count; i++) {
        const char *name = model->weights[i].name;
        if (model->weights[i].factor || (made && made[i])) continue;
        BASE_TRY(take(user, i, engine_find_tensor(weights, architecture, name), error));
    }
    return SIFR_OK;
}

sifr_status engine_visit_folder(const sifr_model *model, const model_architecture *architecture,
                                const formats_weights *weights, engine_take_weight take, void *user,
                                sifr_error *error) {
    return engine_visit_present(model, architecture, weights, NULL, take, user, error);
}

sifr_status engine_visit_opened(const engine_folder *folder, engine_take_weight take, void *user,
                                sifr_error *error) {
    return engine_visit_present(folder->model, folder->architecture, folder->weights, folder->made,
                                take, user, error);
}
