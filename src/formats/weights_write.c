/* The weights of a model folder, written: formats_weights_write of weights.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "formats/weights.h"

static const uint64_t default_shard_bytes = 5000000000;

/* A tensor and its place in the caller's list; the spec comes first, for qsort. */
typedef struct placed_spec {
    formats_tensor_spec spec;
    size_t position;
    size_t shard;
} placed_spec;

typedef struct weights_job {
    const char *directory;
    placed_spec *specs; /* in the caller's order, hence by shard */
    size_t count, shards;
    uint64_t bytes;
    formats_fill fill;
    void *user;
} weights_job;

static void shard_name(const weights_job *job, size_t shard, char out[64]) {
    if (job->shards == 1) {
        strcpy(out, "model.safetensors");
    } else {
        snprintf(out, 64, "model-%05zu-of-%05zu.safetensors", shard + 1, job->shards);
    }
}

/* Cuts before each tensor that would take its shard past the limit. */
static sifr_status cut_shards(weights_job *job, uint64_t limit, sifr_error *error) {
    uint64_t filled = 0, bytes;
    for (size_t i = 0; i < job->count; i++) {
        BASE_TRY(formats_tensor_bytes(&job->specs[i].spec, &bytes, error));
        if (filled && bytes > limit - (filled < limit ? filled : limit)) {
            job->shards++;
            filled = 0;
        }
        filled += bytes;
        job->bytes += bytes;
        job->specs[i].shard = job->shards;
    }
    job->shards++;
    return SIFR_OK;
}

static sifr_status write_shard(const weights_job *job, size_t shard, sifr_error *error) {
    char name[64], path[BASE_PATH_LENGTH];
    formats_safetensors_writer writer = {0};
    formats_tensor_spec *specs = NULL;
    size_t first = 0, count = 0;
    while (first < job->count && job->specs[first].shard != shard) first++;
    while (first + count < job->count && job->specs[first + count].shard == shard) count++;
    shard_name(job, shard, name);
    BASE_TRY(base_path_join(path, job->directory, name, error));

    placed_spec *mine = job->specs + first;
    if (count) qsort(mine, count, sizeof *mine, formats_tensor_spec_compare);
    BASE_TRY(base_alloc(count, sizeof *specs, &specs, error));
    for (size_t i = 0; i < count; i++) specs[i] = mine[i].spec;
    sifr_status status = formats_safetensors_writer_open(&writer, path, specs, count, error);
    free(specs);
    if (status != SIFR_OK) return status;

    for (size_t i = 0; i < count; i++) {
        uint64_t bytes, before = writer.file.written;
        BASE_TRY_GOTO(status, formats_tensor_bytes(&mine[i].spec, &bytes, error), fail);
        BASE_TRY_GOTO(status, job->fill(job->user, mine[i].position, &writer, error), fail);
        if (writer.file.written - before != bytes) {
            status =
                base_fail(error, SIFR_FAILED, "%s: tensor %.200s: %llu bytes came, not %llu", path,
                          mine[i].spec.name, (unsigned long long)(writer.file.written - before),
                          (unsigned long long)bytes);
            goto fail;
        }
    }
    return formats_safetensors_commit(&writer, error);
fail:
    formats_safetensors_abort(&writer);
    return status;
}

static int compare_by_name(const void *a, const void *b) {
    return strcmp(((const placed_spec *)a)->spec.name, ((const placed_spec *)b)->spec.name);
}

static sifr_status write_index(weights_job *job, const char *path, sifr_error *error) {
    char name[64];
    sifr_status status = SIFR_OK;
    json_t *map = json_object();
    json_t *index = json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)job->bytes,
                              "weight_map", map);
    bool good = index != NULL;
    qsort(job->specs, job->count, sizeof *job->specs, compare_by_name);
    for (size_t i = 0; good && i < job->count; i++) {
        shard_name(job, job->specs[i].shard, name);
        good = json_object_set_new(map, job->specs[i].spec.name, json_string(name)) == 0;
    }
    status = good ? base_json_save(index, path, error) : base_fail_alloc(error, 64);
    json_decref(index);
    json_decref(map);
    return status;
}

static void remove_shards(const weights_job *job, size_t count) {
    char name[64], path[BASE_PATH_LENGTH];
    for (size_t i = 0; i < count; i++) {
        shard_name(job, i, name);
        if (base_path_join(path, job->directory, name, NULL) == SIFR_OK) unlink(path);
    }
}

sifr_status formats_weights_write(const char *directory, const formats_tensor_spec *specs,
                                  size_t count, uint64_t max_shard_bytes, formats_fill fill,
                                  void *user, sifr_error *error) {
    weights_job job = {.directory = directory, .count = count, .fill = fill, .user = user};
    char single[BASE_PATH_LENGTH], index[BASE_PATH_LENGTH];
    sifr_status status = SIFR_OK;
    size_t written = 0;
    BASE_TRY(base_path_join(single, directory, "model.safetensors", error));
    BASE_TRY(base_path_join(index, directory, "model.safetensors.index.json", error));
    BASE_TRY(base_alloc(count, sizeof *job.specs, &job.specs, error));
    for (size_t i = 0; i < count; i++) {
        job.specs[i].spec = specs[i];
        job.specs[i].position = i;
    }
    BASE_TRY_GOTO(status,
                  cut_shards(&job, max_shard_bytes ? max_shard_bytes : default_shard_bytes, error),
                  done);
    const char *other = job.shards == 1 ? index : single;
    if (access(other, F_OK) == 0) {
        status = base_fail(error, SIFR_FAILED,
                           "%s: weights of another layout are in the folder: write to a fresh one",
                           other);
        goto done;
    }
    for (; written < job.shards; written++) {
        BASE_TRY_GOTO(status, write_shard(&job, written, error), done);
    }
    if (job.shards > 1) status = write_index(&job, index, error);
done:
    if (status != SIFR_OK) remove_shards(&job, written);
    free(job.specs);
    return status;
}
