#include "checkpoint/frozen_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/json.h"

static uint64_t hash_tensor(const formats_tensor *tensor) {
    return base_hash_pieces(tensor->data, tensor->bytes, base_read_ahead);
}

static sifr_status allocate(const sifr_model *model, checkpoint_base *out, sifr_error *error) {
    BASE_TRY(base_alloc(model->weight_count, sizeof *out->tensors, &out->tensors, error));
    return base_alloc(model->weight_count, sizeof *out->hashes, &out->hashes, error);
}

void checkpoint_base_free(checkpoint_base *base) {
    free(base->tensors);
    free(base->hashes);
    *base = (checkpoint_base){0};
}

static sifr_status name_folder(const char *path, checkpoint_base *out, sifr_error *error) {
    if (realpath(path, out->path)) return SIFR_OK;
    out->path[0] = '\0';
    return base_fail(error, SIFR_FAILED, "%s: cannot find the folder", path);
}

/* --- of a run --- */

/* Each rank hashes every so many-th tensor, and the exchange brings the others'. */
static sifr_status hash_tensors(const checkpoint_base *base, size_t count, comm_group *group,
                                sifr_error *error) {
    size_t ranks = (size_t)comm_size(group), rank = (size_t)comm_rank(group);
    size_t each = (count + ranks - 1) / ranks;
    uint64_t *mine = NULL, *all = NULL;
    sifr_status status = base_alloc(each, sizeof *mine, &mine, error);
    if (status == SIFR_OK) status = base_alloc(each * ranks, sizeof *all, &all, error);
    for (size_t i = 0; status == SIFR_OK && i < each; i++) {
        size_t w = i * ranks + rank;
        if (w < count && base->tensors[w]) mine[i] = hash_tensor(base->tensors[w]);
    }
    status = comm_agree_status(group, status, error);
    if (status == SIFR_OK)
        status = comm_all_gather_control(group, mine, (int64_t)(each * sizeof *mine), all, error);
    for (size_t w = 0; status == SIFR_OK && w < count; w++)
        base->hashes[w] = all[w % ranks * each + w / ranks];
    free(mine);
    free(all);
    return status;
}

static sifr_status find_tensors(const char *path, const engine_folder *folder, checkpoint_base *out,
                                sifr_error *error) {
    const sifr_model *model = folder->model;
    BASE_TRY(name_folder(path, out, error));
    BASE_TRY(allocate(model, out, error));
    for (size_t w = 0; w < model->weight_count; w++) {
        if (model->weights[w].based)
            out->tensors[w] =
                engine_find_tensor(folder->weights, folder->architecture, model->weights[w].name);
    }
    return SIFR_OK;
}

static bool some_based(const sifr_model *model) {
    for (size_t w = 0; w < model->weight_count; w++)
        if (model->weights[w].based) return true;
    return false;
}

sifr_status checkpoint_base_make(const char *path, const engine_folder *folder, comm_group *group,
                                 checkpoint_base *out, sifr_error *error) {
    *out = (checkpoint_base){0};
    if (!some_based(folder->model)) return SIFR_OK;
    sifr_status status = find_tensors(path, folder, out, error);
    status = comm_agree_status(group, status, error);
    if (status == SIFR_OK) status = hash_tensors(out, folder->model->weight_count, group, error);
    if (status != SIFR_OK) checkpoint_base_free(out);
    return status;
}

sifr_status checkpoint_base_check(const checkpoint_base *base, const sifr_model *model,
                                  sifr_error *error) {
    for (size_t w = 0; base->path[0] && w < model->weight_count; w++) {
        if (!base->tensors[w] || hash_tensor(base->tensors[w]) == base->hashes[w]) continue;
        return base_fail(error, SIFR_FAILED,
                         "%s: the frozen weight %s was changed while the run used it; put the "
                         "folder back as it was, and resume",
                         base->path, model->weights[w].name);
    }
    return SIFR_OK;
}

/* --- in a manifest --- */

sifr_status checkpoint_base_add(json_t *manifest, const checkpoint_base *base,
                                const sifr_model *model, sifr_error *error) {
    if (!base || !base->path[0]) return SIFR_OK;
    json_t *list = json_array(),
           *entry = json_pack("{s:s, s:o}", "path", base->path, "weights", list);
    if (!entry || json_object_set_new(manifest, "base", entry) != 0)
        return base_fail_alloc(error, sizeof base->path);
    for (size_t w = 0; w < model->weight_count; w++) {
        char hex[17];
        if (!base->tensors[w]) continue;
        base_hash_hex(base->hashes[w], hex);
        json_t *weight = json_pack("{s:s, s:s, s:s}", "weight", model->weights[w].name, "dtype",
                                   formats_dtype_name(base->tensors[w]->dtype), "xxh3", hex);
        if (!weight || json_array_append_new(list, weight) != 0) return base_fail_alloc(error, 256);
    }
    return SIFR_OK;
}

/* Whether an entry's type and hash are those of a tensor. */
static bool is_same(const json_t *entry, const formats_tensor *tensor, uint64_t hash) {
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const char *stored = json_string_value(json_object_get(entry, "xxh3"));
    char hex[17];
    base_hash_hex(hash, hex);
    return dtype && stored && !strcmp(dtype, formats_dtype_name(tensor->dtype)) &&
           !strcmp(stored, hex);
}

static const json_t *base_of(const checkpoint_opened *opened, const char **path) {
    const json_t *base = json_object_get(opened->json, "base");
    *path = json_string_value(json_object_get(base, "path"));
    return json_object_get(base, "weights");
}

static const json_t *find_entry(const json_t *list, const char *name) {
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry) {
        const char *weight = json_string_value(json_object_get(entry, "weight"));
        if (weight && strcmp(weight, name) == 0) return entry;
    }
    return NULL;
}

sifr_status checkpoint_base_compare(const checkpoint_opened *opened, const checkpoint_base *base,
                                    const sifr_model *model, const char *directory,
                                    sifr_error *error) {
    const char *path;
    const json_t *list = base_of(opened, &path);
    size_t used = 0;
    for (size_t w = 0; base && base->path[0] && w < model->weight_count; w++) {
        const char *name = model->weights[w].name;
        /* Entries have the order of the weights. */
        const json_t *entry = json_array_get(list, used);
        const char *weight = json_string_value(json_object_get(entry, "weight"));
        if (!base->tensors[w]) continue;
        base_assert(model->weights[w].based);
        if (!weight || strcmp(weight, name) != 0)
            return base_fail(error, SIFR_USAGE,
                             "%s: was not made with the frozen weight %s of %s: resume with the "
                             "sifr that made it, or start a new run in another output folder",
                             directory, name, base->path);
        if (!is_same(entry, base->tensors[w], base->hashes[w]))
            return base_fail(error, SIFR_USAGE,
                             "%s: was made with other values of the frozen weight %s than %s has "
                             "now: put back the folder that the run began with (it was at %s), or "
                             "start a new run in another output folder",
                             directory, name, base->path, path ? path : "an unknown place");
        used++;
    }
    if (used == json_array_size(list)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: takes weights from %s, which this run does not freeze: freeze what was "
                     "frozen, or start a new run in another output folder",
                     directory, path ? path : "an unknown place");
}

/* --- of a checkpoint --- */

static sifr_status open_tensor(const formats_weights *weights,
                               const model_architecture *architecture, const json_t *entry,
                               size_t index, const sifr_model *model, const char *directory,
                               checkpoint_base *out, sifr_error *error) {
    const model_weight *w = &model->weights[index];
    const formats_tensor *tensor = engine_find_tensor(weights, architecture, w->name);
    if (!tensor)
        return base_fail(error, SIFR_FAILED,
                         "%s: its frozen weight %s is no longer in %s; put that folder back as it "
                         "was",
                         directory, w->name, out->path);
    out->tensors[index] = tensor;
    out->hashes[index] = hash_tensor(tensor);
    if (tensor->elements == w->rows * w->columns && tensor->dtype <= BASE_FP16 &&
        is_same(entry, tensor, out->hashes[index]))
        return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: its frozen weight %s has other values in %s than when the checkpoint was "
                     "made; put that folder back as it was",
                     directory, w->name, out->path);
}

static sifr_status open_tensors(const checkpoint_opened *opened,
                                const model_architecture *architecture, const char *directory,
                                sifr_model *model, const formats_weights *weights,
                                checkpoint_base *out, sifr_error *error) {
    const char *path;
    const json_t *list = base_of(opened, &path);
    size_t found = 0;
    BASE_TRY(allocate(model, out, error));
    for (size_t w = 0; w < model->weight_count; w++) {
        const json_t *entry = find_entry(list, model->weights[w].name);
        if (!entry) continue;
        model->weights[w].based = true;
        BASE_TRY(open_tensor(weights, architecture, entry, w, model, directory, out, error));
        found++;
    }
    if (found == json_array_size(list)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s/%s: \"base\" names weights that the model lacks",
                     directory, CHECKPOINT_MANIFEST);
}

sifr_status checkpoint_base_open(const checkpoint_opened *opened,
                                 const model_architecture *architecture, const char *directory,
                                 sifr_model *model, formats_weights **weights, checkpoint_base *out,
                                 sifr_error *error) {
    const char *path;
    sifr_error reason = {0};
    *out = (checkpoint_base){0};
    *weights = NULL;
    if (!json_object_get(opened->json, "base")) return SIFR_OK;
    if (!base_of(opened, &path) || !path || strlen(path) >= sizeof out->path)
        return base_fail(error, SIFR_FAILED, "%s/%s: \"base\" is not valid", directory,
                         CHECKPOINT_MANIFEST);
    snprintf(out->path, sizeof out->path, "%s", path);
    if (!base_is_directory(path))
        return base_fail(error, SIFR_FAILED,
                         "%s: its frozen weights are in %s, which is not there; put that folder "
                         "back, or a link to it",
                         directory, path);
    if (formats_weights_open(path, weights, &reason) != SIFR_OK)
        return base_fail(error, SIFR_FAILED, "%s: its frozen weights are in %s: %s", directory,
                         path, reason.message);
    return open_tensors(opened, architecture, directory, model, *weights, out, error);
}
