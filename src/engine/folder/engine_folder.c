/* Fills an engine with the weights of a Hugging Face model folder. */
#include <stdlib.h>

#include "base/text.h"
#include "engine/engine_private.h"
#include "engine/folder/folder_private.h"
#include "engine/state/convert.h"

/* Tensors that are not read, and the first of them. */
typedef struct leftovers {
    size_t count;
    const char *first;
} leftovers;

static void leave(leftovers *out, const char *name) {
    if (out->count++ == 0) out->first = name;
}

static bool is_read(const engine_folder *folder, const formats_tensor *tensor) {
    const sifr_model *model = folder->model;
    if (tensor->of_another) return true;
    if (engine_is_leftover(folder->architecture, model, tensor->name)) return true;
    for (size_t w = 0; w < model->weight_count; w++) {
        bool made = folder->made && folder->made[w];
        if (!made && engine_find_tensor(folder->weights, folder->architecture,
                                        model->weights[w].name) == tensor)
            return true;
    }
    return false;
}

static void find_leftovers(const engine_folder *folder, leftovers *heads, leftovers *others) {
    size_t count = formats_weights_count(folder->weights), known = 0;
    for (size_t i = 0; i < folder->model->weight_count; i++)
        known += !folder->model->weights[i].factor;
    for (size_t i = 0; i < count; i++)
        known += formats_weights_at(folder->weights, i)->of_another ||
                 engine_is_leftover(folder->architecture, folder->model,
                                    formats_weights_at(folder->weights, i)->name);
    if (known == count && !folder->made_count) return;
    for (size_t i = 0; i < count; i++) {
        const formats_tensor *tensor = formats_weights_at(folder->weights, i);
        if (is_read(folder, tensor)) continue;
        bool body = model_place_of(tensor->name, folder->architecture->prefix) == MODEL_BODY;
        leave(body ? others : heads, tensor->name);
    }
}

/* Of a folder with a tower nothing is left out. */
static void say_carried(const engine_folder *folder, const sifr_log *log) {
    const formats_tensor **carried;
    size_t count;
    uint64_t bytes = 0;
    char text[32];
    if (engine_find_carried(folder->model, folder->architecture, folder->weights, &carried, &count,
                            NULL) != SIFR_OK)
        return;
    for (size_t i = 0; i < count; i++) bytes += carried[i]->bytes;
    if (count)
        base_log(log, SIFR_LOG_INFO,
                 "%s: its text model alone is read; %zu other tensor%s, %s, %s carried along as "
                 "%s, %.200s%s",
                 folder->config.model_type, count, count == 1 ? "" : "s",
                 base_format_bytes(bytes, text), count == 1 ? "is" : "are",
                 count == 1 ? "it is" : "they are", carried[0]->name, count == 1 ? "" : " first");
    free((void *)carried);
}

static void say_fp8(const engine_folder *folder, const sifr_log *log) {
    size_t count = 0;
    for (size_t i = 0; i < formats_weights_count(folder->weights); i++)
        count += formats_weights_at(folder->weights, i)->scales != NULL;
    if (count)
        base_log(log, SIFR_LOG_INFO,
                 "%zu matri%s of 8 bits (F8_E4M3) %s read as BF16, and written as such, without "
                 "quantization_config",
                 count, count == 1 ? "x" : "ces", count == 1 ? "is" : "are");
}

void engine_folder_warn(const engine_folder *folder, const sifr_log *log) {
    leftovers heads = {0}, others = {0};
    if (!folder->weights) return;
    say_fp8(folder, log);
    if (folder->architecture->multimodal)
        say_carried(folder, log);
    else
        find_leftovers(folder, &heads, &others);
    formats_weights_warn(folder->weights, log);
    engine_folder_say_made(folder, log);
    const model_config *config = &folder->config;
    if (config->task == MODEL_SEQUENCE_CLASSES && !folder->architecture->encoder &&
        config->pad_token_id < 0)
        base_log(
            log, SIFR_LOG_WARNING,
            "config.json has no pad_token_id: with this model transformers classifies one text "
            "at a time");
    if (heads.count)
        base_log(log, SIFR_LOG_INFO, "%zu tensor%s of another head left out, %.200s%s", heads.count,
                 heads.count == 1 ? "" : "s", heads.first, heads.count == 1 ? "" : " first");
    if (others.count)
        base_log(log, SIFR_LOG_WARNING,
                 "%zu tensor%s ignored, %.200s%s: not part of the model that config.json "
                 "describes, so neither read nor saved",
                 others.count, others.count == 1 ? "" : "s", others.first,
                 others.count == 1 ? "" : " first");
}

/* Of a mapped file, only pages with this rank's values are read. */
static sifr_status load_weight(void *user, size_t index, const formats_tensor *tensor,
                               sifr_error *error) {
    return engine_fill(user, index, engine_tensor_values, tensor, error);
}

sifr_status engine_load_folder(sifr_engine *engine, const model_architecture *architecture,
                               const formats_weights *weights, sifr_error *error) {
    BASE_TRY(engine_settle(engine, error));
    return engine_visit_folder(engine->model, architecture, weights, load_weight, engine, error);
}

static void initial_values(const void *user, size_t index, int64_t first, int64_t count,
                           float *values) {
    const sifr_engine *engine = user;
    model_initial_values(engine->model, index, engine->settings.seed, first, count, values);
}

sifr_status engine_load_opened(sifr_engine *engine, const engine_folder *folder,
                               sifr_error *error) {
    BASE_TRY(engine_settle(engine, error));
    BASE_TRY(engine_visit_present(engine->model, folder->architecture, folder->weights,
                                  folder->made, load_weight, engine, error));
    for (size_t i = 0; i < engine->model->weight_count; i++) {
        const formats_tensor *tensor = engine_adapter_tensor(folder, i);
        bool made = engine->model->weights[i].factor || (folder->made && folder->made[i]);
        if (tensor)
            BASE_TRY(engine_fill(engine, i, engine_tensor_values, tensor, error));
        else if (engine->model->weights[i].norms_of)
            BASE_TRY(engine_fill_magnitudes(engine, folder, i, error));
        else if (made)
            BASE_TRY(engine_fill(engine, i, initial_values, engine, error));
    }
    return SIFR_OK;
}

sifr_status engine_load_frozen(sifr_engine *engine, const engine_folder *folder,
                               sifr_error *error) {
    for (size_t i = 0; i < engine->model->weight_count; i++) {
        const model_weight *w = &engine->model->weights[i];
        if (!w->based) continue;
        const formats_tensor *tensor =
            engine_find_tensor(folder->weights, folder->architecture, w->name);
        BASE_TRY(engine_fill(engine, i, engine_tensor_values, tensor, error));
    }
    return SIFR_OK;
}
