#include "convert/export_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/heap.h"
#include "base/json.h"

enum { CONFIG_LIMIT = 16 << 20 };

sifr_status convert_text_tensors(checkpoint_model *m, sifr_error *error) {
    engine_stored *stored = &m->stored;
    if (!m->folder.config.multimodal)
        return base_fail(
            error, SIFR_USAGE,
            "%s: --text-model is for folders with a tower, and model_type %s has none; "
            "leave it out",
            m->path, m->folder.config.model_type);
    if (stored->file)
        return base_fail(
            error, SIFR_USAGE,
            "%s: an adapter, not a model; make a model folder of it first (sifr merge) "
            "for --text-model",
            m->path);
    BASE_TRY(base_alloc(stored->count, sizeof *stored->names, &stored->names, error));
    for (size_t i = 0; i < stored->count; i++) {
        char plain[FORMATS_SPELLING_LENGTH];
        const char *name = formats_multimodal_plain(stored->tensors[i].name, plain);
        base_assert(name); /* a weight's */
        snprintf(stored->names[i], MODEL_LORA_NAME, "%.*s", MODEL_LORA_NAME - 1, name);
        stored->tensors[i].name = stored->names[i];
    }
    stored->carried_count = 0;
    return SIFR_OK;
}

static sifr_status write_config(const checkpoint_model *m, const char *path, const json_t *whole,
                                sifr_error *error) {
    const model_config *config = &m->folder.config;
    json_t *text;
    BASE_TRY(formats_multimodal_text(config->multimodal, whole, path, &text, error));
    /* The weights decide where they are not as the config says. */
    int failed =
        json_object_set_new(text, "tie_word_embeddings", json_boolean(config->tie_word_embeddings));
    sifr_status status = failed ? base_fail_alloc(error, 64) : base_json_save(text, path, error);
    json_decref(text);
    return status;
}

sifr_status convert_text_files(const checkpoint_model *m, const char *folder, sifr_error *error) {
    static const char *const others[] = {"preprocessor_config.json", "processor_config.json",
                                         "video_preprocessor_config.json"};
    char path[BASE_PATH_LENGTH];
    json_t *whole;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        BASE_TRY(base_path_join(path, folder, others[i], error));
        unlink(path); /* most are not there */
    }
    BASE_TRY(base_path_join(path, folder, "config.json", error));
    BASE_TRY(base_json_load(path, CONFIG_LIMIT, &whole, error));
    sifr_status status = write_config(m, path, whole, error);
    json_decref(whole);
    return status;
}
