#include "checkpoint/frozen_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/json.h"
#include "formats/fp8.h"

static uint64_t hash_tensor(const formats_tensor *tensor) {
    uint64_t hash = base_hash_pieces(tensor->data, tensor->bytes, base_read_ahead);
    if (!tensor->scales) return hash;
    const formats_tensor *scales = tensor->scales->values;
    return base_hash_seeded(scales->data, scales->bytes, hash);
}

static sifr_status allocate(const sifr_model *model, checkpoint_base *out, sifr_error *error) {
    BASE_TRY(base_alloc(model->weight_count, sizeof *out->tensors, &out->tensors, error));
    return base_alloc(model->weight_count, sizeof *out->hashes, &out->hashes, error);
}

static sifr_status allocate_carried(checkpoint_base *out, size_t count, sifr_error *error) {
    return base_alloc(count, sizeof *out->carried_hashes, &out->carried_hashes, error);
}

void checkpoint_base_free(checkpoint_base *base) {
    free(base->tensors);
    free(base->hashes);
    free((void *)base->carried);
    free(base->carried_hashes);
    *base = (checkpoint_base){0};
}

static sifr_status name_folder(const char *path, checkpoint_base *out, sifr_error *error) {
    if (realpath(path, out->path)) return SIFR_OK;
    out->path[0] = '\0';
    return base_fail(error, SIFR_FAILED, "%s: cannot find the folder", path);
}

/* --- of a run --- */

/* Of `weights` weights, and of what goes along behind them. */
static const formats_tensor *tensor_at(const checkpoint_base *base, size_t weights, size_t i) {
    return i < weights ? base->tensors[i] : base->carried[i - weights];
}

/* Each rank hashes every so many-th tensor, and the exchange brings the others'. */
static sifr_status hash_tensors(const checkpoint_base *base, size_t weights, comm_group *group,
                                sifr_error *error) {
    size_t ranks = (size_t)comm_size(group), rank = (size_t)comm_rank(group);
    size_t count = weights + base->carried_count, each = (count + ranks - 1) / ranks;
    uint64_t *mine = NULL, *all = NULL;
    sifr_status status = base_alloc(each, sizeof *mine, &mine, error);
    if (status == SIFR_OK) status = base_alloc(each * ranks, sizeof *all, &all, error);
    for (size_t i = 0; status == SIFR_OK && i < each; i++) {
        size_t t = i * ranks + rank;
        const formats_tensor *tensor = t < count ? tensor_at(base, weights, t) : NULL;
        if (tensor) mine[i] = hash_tensor(tensor);
    }
    status = comm_agree_status(group, status, error);
    if (status == SIFR_OK)
        status = comm_all_gather_control(group, mine, (int64_t)(each * sizeof *mine), all, error);
    for (size_t t = 0; status == SIFR_OK && t < count; t++) {
        uint64_t hash = all[t % ranks * each + t / ranks];
        if (t < weights)
            base->hashes[t] = hash;
        else
            base->carried_hashes[t - weights] = hash;
    }
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
    if (model_is_adapter(model)) return SIFR_OK;
    BASE_TRY(engine_find_carried(model, folder->architecture, folder->weights, &out->carried,
                                 &out->carried_count, error));
    return allocate_carried(out, out->carried_count, error);
}

static bool some_based(const sifr_model *model) {
    for (size_t w = 0; w < model->weight_count; w++)
        if (model->weights[w].based) return true;
    return false;
}

sifr_status checkpoint_base_make(const char *path, const engine_folder *folder, comm_group *group,
                                 checkpoint_base *out, sifr_error *error) {
    *out = (checkpoint_base){0};
    if (!some_based(folder->model) && !folder->architecture->multimodal) return SIFR_OK;
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
    for (size_t i = 0; i < base->carried_count; i++) {
        if (hash_tensor(base->carried[i]) == base->carried_hashes[i]) continue;
        return base_fail(
            error, SIFR_FAILED,
            "%s: tensor %.200s, which is carried along, was changed while the run used "
            "the folder; put the folder back as it was, and resume",
            base->path, base->carried[i]->name);
    }
    return SIFR_OK;
}

/* --- in a manifest --- */

static json_t *describe_carried(const formats_tensor *tensor, uint64_t hash) {
    char hex[17];
    json_t *shape = json_array();
    bool whole = shape != NULL;
    base_hash_hex(hash, hex);
    for (int i = 0; whole && i < tensor->rank; i++)
        whole = json_array_append_new(shape, json_integer(tensor->shape[i])) == 0;
    if (!whole) return json_decref(shape), NULL;
    return json_pack("{s:s, s:s, s:o, s:s}", "name", tensor->name, "dtype",
                     formats_dtype_name(tensor->dtype), "shape", shape, "xxh3", hex);
}

static sifr_status add_carried(json_t *entry, const checkpoint_base *base, sifr_error *error) {
    json_t *list = json_array();
    if (!base->carried_count) return json_decref(list), SIFR_OK;
    if (!list || json_object_set_new(entry, "carried", list) != 0)
        return base_fail_alloc(error, 256);
    for (size_t i = 0; i < base->carried_count; i++) {
        json_t *one = describe_carried(base->carried[i], base->carried_hashes[i]);
        if (!one || json_array_append_new(list, one) != 0) return base_fail_alloc(error, 256);
    }
    return SIFR_OK;
}

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
    return add_carried(entry, base, error);
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

/* Whether a manifest's entry is of this tensor. */
static sifr_status same_carried(const json_t *entry, const formats_tensor *tensor, uint64_t hash,
                                bool *same, sifr_error *error) {
    json_t *own = describe_carried(tensor, hash);
    *same = own && json_equal(own, entry);
    json_decref(own);
    return own ? SIFR_OK : base_fail_alloc(error, 256);
}

static const json_t *carried_of(const checkpoint_opened *opened) {
    return json_object_get(json_object_get(opened->json, "base"), "carried");
}

/* What goes along is what went along when the checkpoint was made. */
static sifr_status compare_carried(const checkpoint_opened *opened, const checkpoint_base *base,
                                   const char *directory, const char *path, sifr_error *error) {
    const json_t *list = carried_of(opened);
    size_t count = base ? base->carried_count : 0;
    for (size_t i = 0; i < count; i++) {
        bool same;
        BASE_TRY(same_carried(json_array_get(list, i), base->carried[i], base->carried_hashes[i],
                              &same, error));
        if (same) continue;
        return base_fail(error, SIFR_USAGE,
                         "%s: was made when tensor %.200s of %s, which is carried along, was "
                         "another: put back the folder that the run began with (it was at %s), or "
                         "start a new run in another output folder",
                         directory, base->carried[i]->name, base->path, path ? path : "?");
    }
    if (count == json_array_size(list)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: was made when %zu tensors were carried along, but %s has %zu now: put "
                     "back the folder that the run began with (it was at %s), or start a new run "
                     "in another output folder",
                     directory, json_array_size(list), base ? base->path : "the model", count,
                     path ? path : "?");
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
    if (used == json_array_size(list)) return compare_carried(opened, base, directory, path, error);
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
    if (tensor->elements == w->rows * w->columns && formats_value_type(tensor) <= BASE_FP16 &&
        is_same(entry, tensor, out->hashes[index]))
        return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: its frozen weight %s has other values in %s than when the checkpoint was "
                     "made; put that folder back as it was",
                     directory, w->name, out->path);
}

static sifr_status open_carried(const checkpoint_opened *opened, const char *directory,
                                const formats_weights *weights, checkpoint_base *out,
                                sifr_error *error) {
    const json_t *list = carried_of(opened), *entry;
    size_t i, count = json_array_size(list);
    bool same = true;
    BASE_TRY(base_alloc(count, sizeof *out->carried, &out->carried, error));
    BASE_TRY(allocate_carried(out, count, error));
    json_array_foreach(list, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        const formats_tensor *tensor = name ? formats_weights_find(weights, name) : NULL;
        if (!tensor)
            return base_fail(error, SIFR_FAILED,
                             "%s: tensor %.200s, which is carried along, is no longer in %s; put "
                             "that folder back as it was",
                             directory, name ? name : "(not named)", out->path);
        out->carried[i] = tensor;
        out->carried_hashes[i] = hash_tensor(tensor);
        BASE_TRY(same_carried(entry, tensor, out->carried_hashes[i], &same, error));
        if (same) continue;
        return base_fail(error, SIFR_FAILED,
                         "%s: tensor %.200s, which is carried along, is another in %s than when "
                         "the checkpoint was made; put that folder back as it was",
                         directory, name, out->path);
    }
    out->carried_count = count;
    return SIFR_OK;
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
    if (found == json_array_size(list)) return open_carried(opened, directory, weights, out, error);
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
    const char *what = json_array_size(carried_of(opened)) ? "what its text model carries along is"
                                                           : "its frozen weights are";
    if (!base_is_directory(path))
        return base_fail(error, SIFR_FAILED,
                         "%s: %s in %s, which is not there; put that folder back, or a link to it",
                         directory, what, path);
    if (formats_weights_open(path, weights, &reason) != SIFR_OK)
        return base_fail(error, SIFR_FAILED, "%s: %s in %s: %s", directory, what, path,
                         reason.message);
    return open_tensors(opened, architecture, directory, model, *weights, out, error);
}
