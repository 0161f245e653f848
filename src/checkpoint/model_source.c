#include "checkpoint/model_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "checkpoint/adapter_base.h"
#include "engine/state/convert.h"

/* --- which of them --- */

/* The step after which a run wrote the model in its output folder; -1: not known. */
static int64_t model_step(const char *directory) {
    char path[BASE_PATH_LENGTH];
    json_t *trainer;
    int64_t step = -1;
    if (base_path_join(path, directory, "trainer_state.json", NULL) != SIFR_OK ||
        !base_is_file(path) || base_json_load(path, 1 << 28, &trainer, NULL) != SIFR_OK)
        return -1;
    if (base_json_int(trainer, "global_step", -1, &step, path, NULL) != SIFR_OK) step = -1;
    json_decref(trainer);
    return step;
}

/* The newest checkpoint of a run if it should be used for the folder; otherwise "". */
static sifr_status find_newest(const char *path, char out[BASE_PATH_LENGTH], const sifr_log *log,
                               sifr_error *error) {
    int64_t *steps;
    size_t count;
    char name[64];
    out[0] = '\0';
    BASE_TRY(checkpoint_list(path, &steps, &count, error));
    int64_t newest = count ? steps[0] : -1;
    free(steps);
    if (newest < 0) return SIFR_OK;
    bool model = formats_weights_there(path) || base_has_file(path, ENGINE_ADAPTER_FILE);
    int64_t step = model ? model_step(path) : -1;
    if (model && (step < 0 || step >= newest)) return SIFR_OK;
    snprintf(name, sizeof name, "checkpoint-%lld", (long long)newest);
    BASE_TRY(base_path_join(out, path, name, error));
    if (model)
        base_log(log, SIFR_LOG_INFO, "%s: its model is of step %lld; using %s, which is newer",
                 path, (long long)step, name);
    else
        base_log(log, SIFR_LOG_INFO, "%s: holds no model yet; using its newest %s", path, name);
    return SIFR_OK;
}

/* The folder with the checkpoint's config.json and tokenizer: the one above it, as a run leaves
 * them, or the checkpoint's own. */
static sifr_status find_files(const char *path, char out[BASE_PATH_LENGTH], sifr_error *error) {
    snprintf(out, BASE_PATH_LENGTH, "%s", path);
    if (base_has_file(path, "config.json")) return SIFR_OK;
    if (!realpath(path, out))
        return base_fail(error, SIFR_FAILED, "%s: cannot read the folder", path);
    char *slash = strrchr(out, '/');
    if (slash && slash != out) *slash = '\0';
    if (base_has_file(out, "config.json")) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: there is no config.json in this checkpoint, nor in %s; copy the model's "
                     "config.json and tokenizer into one of them",
                     path, out);
}

/* --- a checkpoint --- */

/* A tensor that has a whole weight. */
static checkpoint_span whole_span(const checkpoint_model *m, size_t weight,
                                  const formats_tensor *tensor) {
    model_block whole = model_whole(&m->folder.model->weights[weight]);
    return (checkpoint_span){{whole, 0, tensor->elements}, tensor};
}

static sifr_status make_spans(checkpoint_model *m, size_t count, sifr_error *error) {
    size_t weights = m->folder.model->weight_count;
    BASE_TRY(base_alloc(count + weights, sizeof *m->spans, &m->spans, error));
    BASE_TRY(base_alloc(weights + 1, sizeof *m->first_span, &m->first_span, error));
    for (size_t w = 0, r = 0; w < weights; w++) {
        m->first_span[w] = m->span_count;
        for (; r < count && m->ranges[r].weight == w; r++) {
            const checkpoint_range *range = &m->ranges[r];
            m->spans[m->span_count++] = (checkpoint_span){
                range->span, formats_safetensors_find(&m->state[range->file], range->tensor)};
        }
        if (!m->folder.model->weights[w].based) continue;
        base_assert(m->base.tensors[w]);
        m->spans[m->span_count++] = whole_span(m, w, m->base.tensors[w]);
    }
    base_assert(m->span_count <= count + weights);
    m->first_span[weights] = m->span_count;
    return SIFR_OK;
}

/* Tensors of frozen weights are copied from the base, if they have the same type there. */
static void copy_frozen(checkpoint_model *m) {
    for (size_t i = 0; m->base.path[0] && i < m->stored.count; i++) {
        engine_stored_tensor *stored = &m->stored.tensors[i];
        const formats_tensor *tensor = m->base.tensors[stored->weight];
        if (tensor && tensor->dtype == stored->dtype) stored->copied = tensor;
    }
}

static bool names_weight(const json_t *list, const char *weight) {
    const json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "weight"));
        if (name && strcmp(name, weight) == 0) return true;
    }
    return false;
}

/* Whether the run's model had a head with weights of its own, as its folder may have had it
 * whatever its config said. Of a model beside a tower alone. */
static bool has_head(const checkpoint_opened *opened) {
    static const char head[] = "lm_head.weight";
    const json_t *base = json_object_get(opened->json, "base");
    return names_weight(json_object_get(opened->json, "tensors"), head) ||
           names_weight(json_object_get(base, "weights"), head);
}

/* What went along with the run's model goes along with an export. */
static sifr_status carry(checkpoint_model *m, sifr_error *error) {
    size_t count = m->base.carried_count;
    BASE_TRY(base_alloc(count, sizeof *m->stored.carried, &m->stored.carried, error));
    for (size_t i = 0; i < count; i++) m->stored.carried[i] = m->base.carried[i];
    m->stored.carried_count = count;
    return SIFR_OK;
}

static sifr_status open_checkpoint(checkpoint_model *m, sifr_error *error) {
    engine_folder *folder = &m->folder;
    size_t count;
    BASE_TRY(find_files(m->path, m->files, error));
    BASE_TRY(checkpoint_open(m->path, &m->opened, error));
    m->step = m->opened.step;
    if (base_has_file(m->files, "adapter_config.json"))
        BASE_TRY(model_lora_load(m->files, &m->lora, error));
    model_choice choice = {.lora = m->lora.json ? &m->lora : NULL, .untied = has_head(&m->opened)};
    BASE_TRY(model_config_load_as(m->files, &choice, &folder->config, error));
    BASE_TRY(model_from_config(&folder->config, &folder->model, error));
    for (size_t w = 0; w < folder->model->weight_count; w++)
        folder->model->weights[w].based = false;
    folder->architecture = model_architecture_find(folder->config.model_type);
    if (model_task_labelled(folder->config.task))
        BASE_TRY(model_labels_load(m->files, &folder->labels, error));
    BASE_TRY(checkpoint_base_open(&m->opened, folder->architecture, m->path, folder->model,
                                  &m->base_weights, &m->base, error));
    BASE_TRY(checkpoint_master_ranges(&m->opened, folder->model, m->average, m->path, &m->ranges,
                                      &count, error));
    BASE_TRY(checkpoint_read_tensors(&m->opened, folder->model, m->path, &m->stored, error));
    m->typed = m->stored.count > 0;
    if (!m->typed)
        BASE_TRY(engine_stored_make(folder->model, folder->architecture, NULL, BASE_FP32,
                                    &m->stored, error));
    copy_frozen(m);
    BASE_TRY(carry(m, error));
    BASE_TRY(base_alloc(m->opened.file_count, sizeof *m->state, &m->state, error));
    for (size_t i = 0; i < m->opened.file_count; i++)
        BASE_TRY(checkpoint_open_ranges(&m->opened, m->ranges, count, i, m->path, true,
                                        &m->state[i], error));
    return make_spans(m, count, error);
}

/* --- a model folder --- */

static sifr_status add_tensor(void *user, size_t index, const formats_tensor *tensor,
                              sifr_error *error) {
    base_assert(index < ((checkpoint_model *)user)->span_count);
    checkpoint_model *m = user;
    (void)error;
    m->spans[index] = whole_span(m, index, tensor);
    return SIFR_OK;
}

/* Values of what the adapter holds. */
static sifr_status add_adapter(checkpoint_model *m, sifr_error *error) {
    const sifr_model *model = m->folder.model;
    for (size_t i = 0; i < model->weight_count; i++) {
        const formats_tensor *tensor = engine_adapter_tensor(&m->folder, i);
        if (tensor) m->spans[i] = whole_span(m, i, tensor);
        if (!m->spans[i].tensor)
            return base_fail(error, SIFR_FAILED,
                             "%s: tensor %s: it is neither there nor in the adapter", m->path,
                             model->weights[i].name);
    }
    return SIFR_OK;
}

static sifr_status open_folder(checkpoint_model *m, const char *adapter, const sifr_log *log,
                               sifr_error *error) {
    engine_folder *folder = &m->folder;
    memcpy(m->files, m->path, sizeof m->files);
    engine_folder_options options = {.choice.lora = &m->lora, .adapter = adapter};
    if (adapter) BASE_TRY(model_lora_load(adapter, &m->lora, error));
    if (adapter && strlen(adapter) >= sizeof m->adapter)
        return base_fail(error, SIFR_USAGE, "%.60s…: the path is too long", adapter);
    if (adapter) snprintf(m->adapter, sizeof m->adapter, "%s", adapter);
    if (adapter && base_has_file(adapter, "chat_template.jinja"))
        BASE_TRY(base_path_join(m->template, adapter, "chat_template.jinja", error));
    BASE_TRY(engine_folder_open_as(m->path, adapter ? &options : NULL, folder, error));
    size_t weights = folder->model->weight_count;
    m->typed = true;
    m->span_count = weights;
    BASE_TRY(base_alloc(weights, sizeof *m->spans, &m->spans, error));
    BASE_TRY(base_alloc(weights + 1, sizeof *m->first_span, &m->first_span, error));
    for (size_t i = 0; i <= weights; i++) m->first_span[i] = i;
    BASE_TRY(engine_visit_opened(folder, add_tensor, m, error));
    if (adapter) BASE_TRY(add_adapter(m, error));
    if (adapter) checkpoint_warn_adapter_base(&m->lora, adapter, m->path, false, log);
    return engine_stored_make(folder->model, folder->architecture, folder->weights, BASE_FP32,
                              &m->stored, error);
}

/* --- both --- */

static sifr_status open_path(const char *path, const char *adapter, checkpoint_model *out,
                             const sifr_log *log, sifr_error *error) {
    char base[BASE_PATH_LENGTH] = "";
    bool checkpoint = base_has_file(path, CHECKPOINT_MANIFEST);
    if (!checkpoint && !adapter) BASE_TRY(find_newest(path, out->path, log, error));
    if (checkpoint && adapter)
        return base_fail(error, SIFR_USAGE,
                         "%s: a checkpoint; an adapter (%s) is for a model folder", path, adapter);
    checkpoint = checkpoint || out->path[0];
    if (!checkpoint && !adapter) BASE_TRY(checkpoint_find_adapter_base(path, base, error));
    if (base[0]) adapter = path;
    if (!out->path[0]) snprintf(out->path, sizeof out->path, "%s", base[0] ? base : path);
    return checkpoint ? open_checkpoint(out, error) : open_folder(out, adapter, log, error);
}

sifr_status checkpoint_model_open(const char *path, const char *adapter, checkpoint_model *out,
                                  const sifr_log *log, sifr_error *error) {
    *out = (checkpoint_model){.step = -1};
    if (strlen(path) >= sizeof out->path)
        return base_fail(error, SIFR_USAGE, "%.60s…: the path is too long", path);
    sifr_status status = open_path(path, adapter, out, log, error);
    if (status != SIFR_OK) checkpoint_model_close(out);
    return status;
}

sifr_status checkpoint_model_open_average(const char *path, checkpoint_model *out,
                                          sifr_error *error) {
    *out = (checkpoint_model){.step = -1, .average = true};
    if (strlen(path) >= sizeof out->path)
        return base_fail(error, SIFR_USAGE, "%.60s…: the path is too long", path);
    if (!base_has_file(path, CHECKPOINT_MANIFEST))
        return base_fail(error, SIFR_USAGE,
                         "%s: no checkpoint of a run, which alone has the average of the weights "
                         "beside them; name RUN/checkpoint-N (a run that has ended also leaves the "
                         "model folder RUN/ema)",
                         path);
    snprintf(out->path, sizeof out->path, "%s", path);
    sifr_status status = open_checkpoint(out, error);
    if (status != SIFR_OK) checkpoint_model_close(out);
    return status;
}

void checkpoint_model_close(checkpoint_model *m) {
    for (size_t i = 0; m->state && i < m->opened.file_count; i++)
        formats_safetensors_close(&m->state[i]);
    free(m->state);
    free(m->ranges);
    free(m->spans);
    free(m->first_span);
    engine_stored_free(&m->stored);
    checkpoint_base_free(&m->base);
    formats_weights_close(m->base_weights);
    checkpoint_close(&m->opened);
    engine_folder_close(&m->folder);
    model_lora_free(&m->lora);
    *m = (checkpoint_model){0};
}

/* Each element is in one of the tensors; the next is mostly in the same or in the one behind. */
void checkpoint_span_values(const checkpoint_span *spans, size_t span_count, int64_t columns,
                            int64_t first, int64_t count, float *values) {
    size_t span = 0;
    for (int64_t at = first, end = first + count; at < end;) {
        base_assert(span < span_count);
        model_stretch s;
        while (!model_span_next(&spans[span].span, columns, at, end, &s) || s.at > at)
            span = (span + 1) % span_count;
        engine_tensor_values(spans[span].tensor, 0, s.place, s.count, values + (at - first));
        at += s.count;
    }
}

void checkpoint_model_values(const void *user, size_t index, int64_t first, int64_t count,
                             float *values) {
    base_assert(index < ((const checkpoint_model *)user)->folder.model->weight_count);
    const checkpoint_model *m = user;
    size_t begin = m->first_span[index];
    int64_t columns = model_whole(&m->folder.model->weights[index]).columns[1];
    checkpoint_span_values(m->spans + begin, m->first_span[index + 1] - begin, columns, first,
                           count, values);
    if (m->step >= 0 && !m->stored.file) /* to the type of the model folder, as an export would */
        engine_round(m->stored.tensors[index].dtype, values, count);
}
