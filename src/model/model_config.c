#include "model/model_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "formats/fp8.h"
#include "model/model_reader.h"
#include "model/registry.h"

enum { CONFIG_FILE_LIMIT = 16 << 20 };

/* Weights in 8 bits are read; how is for formats/fp8.h. */
static sifr_status check_quantization(const model_reader *r) {
    formats_fp8 ignored;
    const json_t *value = model_member(r->json, "quantization_config");
    const json_t *text = json_object_get(r->json, "text_config");
    if (model_member(text, "quantization_config") && !value)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: text_config: quantization_config is read at the top of the file "
                         "alone; put it there",
                         r->name);
    return value ? formats_fp8_read(value, r->name, &ignored, r->error) : SIFR_OK;
}

/* What the architecture reads, and what all have. */
static sifr_status read_model(const model_reader *r, model_config *out) {
    BASE_TRY(model_check_keys(r));
    BASE_TRY(r->architecture->read(r, out));
    BASE_TRY(model_read_labels(r, out));
    BASE_TRY(model_check_scales(r, out));
    double deviation = out->initializer_range == 0 ? 0.02 : out->initializer_range;
    BASE_TRY(
        model_read_double(r, "initializer_range", deviation, 0, 1, false, &out->initializer_range));
    return model_read_token_id(r, "pad_token_id", out->pad_token_id, &out->pad_token_id);
}

/* The text model of a folder with a tower: the plain decoder reads what would be its config. */
static sifr_status read_text(const model_reader *r, const json_t *text, model_config *out) {
    char name[BASE_PATH_LENGTH + 16];
    const char *type = json_string_value(json_object_get(text, "model_type"));
    bool flat = !model_member(r->json, "text_config");
    snprintf(name, sizeof name, "%s%s", r->name, flat ? "" : ": text_config");
    model_reader inner = *r;
    inner.json = text;
    inner.name = name;
    inner.architecture = model_architecture_find(type);
    BASE_TRY(read_model(&inner, out));
    snprintf(out->text_type, sizeof out->text_type, "%s", type);
    if (r->choice && r->choice->untied) out->tie_word_embeddings = false;
    return SIFR_OK;
}

static sifr_status read_multimodal(const model_reader *r, model_config *out) {
    const formats_multimodal *kind = r->architecture->multimodal;
    json_t *text;
    out->multimodal = kind;
    BASE_TRY(
        formats_multimodal_media(kind, r->json, r->name, out->media, &out->media_count, r->error));
    BASE_TRY(formats_multimodal_text(kind, r->json, r->name, &text, r->error));
    sifr_status status = read_text(r, text, out);
    json_decref(text);
    return status;
}

/* As the file has them: the text model's keys under its own model_type, or the tower's. */
static sifr_status check_types(const model_reader *r, const model_config *c) {
    char name[BASE_PATH_LENGTH + 16], type[64];
    const json_t *text = model_member(r->json, "text_config");
    const char *own = json_string_value(json_object_get(text, "model_type"));
    BASE_TRY(model_check_types(r, c->model_type));
    if (!r->architecture->multimodal || !text) return SIFR_OK;
    snprintf(name, sizeof name, "%s: text_config", r->name);
    snprintf(type, sizeof type, "%.50s_text", c->model_type);
    model_reader inner = *r;
    inner.json = text;
    inner.name = name;
    return model_check_types(&inner, own ? own : type);
}

static sifr_status read_config(model_reader *r, model_config *out) {
    const char *type;
    if (!json_is_object(r->json)) {
        return base_fail(r->error, SIFR_USAGE, "%s: must be a JSON object", r->name);
    }
    BASE_TRY(base_json_string(r->json, "model_type", NULL, &type, r->name, r->error));
    r->architecture = type ? model_architecture_find(type) : NULL;
    if (!r->architecture) return model_refuse_type(r, type);
    BASE_TRY(model_read_task(r, out));
    BASE_TRY(check_quantization(r));
    strcpy(out->model_type, type);
    BASE_TRY(r->architecture->multimodal ? read_multimodal(r, out) : read_model(r, out));
    return check_types(r, out);
}

static void switch_dropout_off(model_config *out) {
    double *all[] = {&out->embedding_dropout,        &out->residual_dropout,
                     &out->attention_dropout,        &out->classifier_dropout,
                     &out->attention_output_dropout, &out->inner_dropout,
                     &out->deberta.pooler_dropout};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        out->undropped |= *all[i] > 0;
        *all[i] = 0;
    }
}

sifr_status model_config_parse_as(const char *text, size_t size, const char *name,
                                  const model_choice *choice, model_config *out,
                                  sifr_error *error) {
    json_t *json;
    *out = (model_config){.bos_token_id = -1, .pad_token_id = -1};
    BASE_TRY(base_json_parse(text, size, name, &json, error));
    model_reader reader = {.json = json, .name = name, .error = error, .choice = choice};
    sifr_status status = read_config(&reader, out);
    if (status == SIFR_OK && choice && choice->undropped) switch_dropout_off(out);
    json_decref(json);
    return status;
}

sifr_status model_config_parse(const char *text, size_t size, const char *name, model_config *out,
                               sifr_error *error) {
    return model_config_parse_as(text, size, name, NULL, out, error);
}

sifr_status model_config_load_as(const char *path, const model_choice *choice, model_config *out,
                                 sifr_error *error) {
    char file[BASE_PATH_LENGTH], *text;
    size_t size;
    if (base_is_directory(path)) {
        BASE_TRY(base_path_join(file, path, "config.json", error));
        path = file;
    } else if (access(path, F_OK) != 0) {
        return base_fail(
            error, SIFR_FAILED,
            "%s: no such file or folder%s; give a model's folder, as `hf download` fetches one "
            "into its --local-dir",
            path, base_home_hint(path));
    }
    BASE_TRY(base_read_file(path, CONFIG_FILE_LIMIT, &text, &size, error));
    sifr_status status = model_config_parse_as(text, size, path, choice, out, error);
    free(text);
    return status;
}

sifr_status model_config_load(const char *path, model_config *out, sifr_error *error) {
    return model_config_load_as(path, NULL, out, error);
}
