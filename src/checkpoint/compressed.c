#include "checkpoint/compressed.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "plan/queries.h"

static const char *const names[ENGINE_COMPRESSED] = {"errors", "factors"};

static void file_name(const sifr_engine *engine, int32_t rank, char out[64]) {
    snprintf(out, 64, "compressed-%05d-of-%05d.safetensors", (int)rank + 1,
             (int)comm_size(engine_group(engine)));
}

bool checkpoint_has_compressed(const sifr_engine *engine) {
    const plan_schedule *s = engine_schedule(engine);
    const sifr_compression *c = &s->settings.step.compression;
    return s->compresses && (c->error_feedback || c->warm_start) &&
           sifr_engine_steps(engine) > c->start;
}

int64_t checkpoint_compressed_bytes(const sifr_engine *engine) {
    int64_t bytes = 0, elements;
    for (int i = 0; i < ENGINE_COMPRESSED; i++)
        if (engine_compressed(engine, i, &elements)) bytes += elements * (int64_t)sizeof(float);
    return bytes;
}

static sifr_status write_file(const sifr_engine *engine, const char *path, sifr_error *error) {
    formats_tensor_spec specs[ENGINE_COMPRESSED];
    formats_safetensors_writer writer;
    const float *data[ENGINE_COMPRESSED];
    size_t count = 0;
    for (int i = 0; i < ENGINE_COMPRESSED; i++) {
        specs[count] = (formats_tensor_spec){.name = names[i], .dtype = BASE_FP32, .rank = 1};
        data[count] = engine_compressed(engine, i, &specs[count].shape[0]);
        count += data[count] != NULL;
    }
    BASE_TRY(formats_safetensors_writer_open(&writer, path, specs, count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < count && status == SIFR_OK; i++)
        status = formats_safetensors_append(&writer, data[i],
                                            (size_t)specs[i].shape[0] * sizeof(float), error);
    if (status == SIFR_OK) return formats_safetensors_commit(&writer, error);
    formats_safetensors_abort(&writer);
    return status;
}

/* A tensor of an open file that has as many elements as the engine's; NULL: it has none. */
static const formats_tensor *find(const formats_safetensors *file, int i, int64_t elements) {
    const formats_tensor *tensor = formats_safetensors_find(file, names[i]);
    bool fits = tensor && tensor->dtype == BASE_FP32 && (int64_t)tensor->elements == elements;
    return fits ? tensor : NULL;
}

static sifr_status compare_file(const sifr_engine *engine, const char *path, sifr_error *error) {
    formats_safetensors file;
    int64_t elements;
    BASE_TRY(formats_safetensors_open(path, &file, error));
    sifr_status status = SIFR_OK;
    for (int i = 0; i < ENGINE_COMPRESSED && status == SIFR_OK; i++) {
        const float *data = engine_compressed(engine, i, &elements);
        const formats_tensor *tensor = data ? find(&file, i, elements) : NULL;
        if (data && (!tensor || memcmp(tensor->data, data, tensor->bytes) != 0))
            status = base_fail(error, SIFR_FAILED, "%s: '%s' does not read back as it was written",
                               path, names[i]);
    }
    formats_safetensors_close(&file);
    return status;
}

sifr_status checkpoint_save_compressed(const sifr_engine *engine, const char *directory,
                                       checkpoint_sum *sum, sifr_error *error) {
    char name[64], path[BASE_PATH_LENGTH];
    file_name(engine, comm_rank(engine_group(engine)), name);
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(write_file(engine, path, error));
    BASE_TRY(compare_file(engine, path, error));
    return checkpoint_sum_file(directory, name, sum, error);
}

static json_t *ranks_of(const sifr_engine *engine) {
    const plan_mesh *mesh = &engine_schedule(engine)->settings.mesh;
    return json_pack("{s:I, s:I, s:I, s:I}", "data_ranks",
                     (json_int_t)plan_mesh_ranks(mesh, PLAN_DATA), "stages",
                     (json_int_t)plan_mesh_ranks(mesh, PLAN_STAGES), "contexts",
                     (json_int_t)plan_mesh_ranks(mesh, PLAN_CONTEXTS), "tensors",
                     (json_int_t)plan_mesh_ranks(mesh, PLAN_TENSORS));
}

sifr_status checkpoint_add_compressed(json_t *manifest, json_t *files, const sifr_engine *engine,
                                      const checkpoint_sum *sums, sifr_error *error) {
    json_int_t first = (json_int_t)json_array_size(files);
    json_t *entry = ranks_of(engine);
    char name[64];
    for (int32_t r = 0; r < comm_size(engine_group(engine)); r++) {
        file_name(engine, r, name);
        BASE_TRY(checkpoint_add_file(files, name, &sums[r], error));
    }
    if (json_object_set_new(entry, "first_file", json_integer(first)) != 0 ||
        json_object_set_new(manifest, "compression", entry) != 0)
        return base_fail_alloc(error, 256);
    return SIFR_OK;
}

/* --- loading --- */

/* Of this rank's file; what is not there, or of another size, stays zeros. *lacks tells. */
static sifr_status take_file(const checkpoint_opened *opened, const sifr_engine *engine,
                             const char *directory, size_t index, bool *lacks, sifr_error *error) {
    char name[64], path[BASE_PATH_LENGTH];
    formats_safetensors file;
    int64_t elements;
    file_name(engine, comm_rank(engine_group(engine)), name);
    BASE_TRY(checkpoint_check_file(opened, index, directory, true, error));
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(formats_safetensors_open(path, &file, error));
    for (int i = 0; i < ENGINE_COMPRESSED; i++) {
        float *data = engine_compressed(engine, i, &elements);
        const formats_tensor *tensor = data ? find(&file, i, elements) : NULL;
        if (tensor) memcpy(data, tensor->data, tensor->bytes);
        *lacks |= data && !tensor;
    }
    formats_safetensors_close(&file);
    return SIFR_OK;
}

/* Checkpoints may lack contexts: there were none. */
static json_int_t ranks_in(const json_t *entry, const char *key) {
    const json_t *value = json_object_get(entry, key);
    return json_is_integer(value) ? json_integer_value(value) : 1;
}

/* NULL: they are those of this run's ranks. */
static const char *differs(const json_t *entry, const sifr_engine *engine) {
    json_t *own = ranks_of(engine), *value;
    const char *key, *other = NULL;
    json_object_foreach(own, key, value) {
        if (ranks_in(entry, key) != json_integer_value(value)) other = key;
    }
    json_decref(own);
    return other;
}

sifr_status checkpoint_load_compressed(const checkpoint_opened *opened, const sifr_engine *engine,
                                       const char *directory, const sifr_log *log,
                                       sifr_error *error) {
    const json_t *entry = json_object_get(opened->json, "compression");
    const json_t *first = json_object_get(entry, "first_file");
    comm_group *group = engine_group(engine);
    bool says = comm_rank(group) == 0, lacks = false;
    engine_clear_compressed(engine);
    if (!entry) return SIFR_OK;
    const char *key = engine_schedule(engine)->compresses ? differs(entry, engine) : NULL;
    if (!engine_schedule(engine)->compresses || key) {
        json_int_t was = ranks_in(entry, key ? key : "data_ranks");
        if (says)
            base_log(log, SIFR_LOG_WARNING,
                     "%s: errors of compressed gradients are dropped: they are those of %lld %s, "
                     "which this run does not have",
                     directory, (long long)was,
                     !key || strcmp(key, "data_ranks") == 0 ? "ranks that compress gradients"
                     : strcmp(key, "stages") == 0           ? "pipeline stages"
                     : strcmp(key, "contexts") == 0         ? "context ranks"
                                                            : "tensor ranks");
        return SIFR_OK;
    }
    json_int_t index = json_is_integer(first) ? json_integer_value(first) : -1;
    sifr_status status = SIFR_OK;
    if (index < 0 || (size_t)(index + comm_size(group)) > opened->file_count)
        status = base_fail(error, SIFR_FAILED, "%s/%s: \"compression\" names no files", directory,
                           CHECKPOINT_MANIFEST);
    else
        status =
            take_file(opened, engine, directory, (size_t)(index + comm_rank(group)), &lacks, error);
    if (lacks && says)
        base_log(log, SIFR_LOG_WARNING,
                 "%s: errors or factors of compressed gradients are dropped: this run keeps others "
                 "(compression.params)",
                 directory);
    return status;
}
