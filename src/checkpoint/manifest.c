#include "checkpoint/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"

enum { MANIFEST_LIMIT = 1 << 30 };

const char *checkpoint_part_name(engine_part part) {
    static const char *const names[ENGINE_PARTS] = {"master", "exp_avg", "exp_avg_sq"};
    return names[part];
}

sifr_status checkpoint_tensor_name(const sifr_model *model, const checkpoint_range *range,
                                   char out[FORMATS_NAME_LIMIT], sifr_error *error) {
    const char *part = checkpoint_part_name(range->part);
    const char *weight = model->weights[range->weight].name;
    int used = range->first ? snprintf(out, FORMATS_NAME_LIMIT, "%s/%s@%lld", part, weight,
                                       (long long)range->first)
                            : snprintf(out, FORMATS_NAME_LIMIT, "%s/%s", part, weight);
    if (used > 0 && used < FORMATS_NAME_LIMIT) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "checkpoint: the weight's name %.60s… is too long", weight);
}

/* --- writing --- */

sifr_status checkpoint_add_file(json_t *files, const char *directory, const char *name,
                                sifr_error *error) {
    char path[BASE_PATH_LENGTH], hex[17];
    base_map map;
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(base_map_file(path, &map, error));
    base_hash_hex(base_hash(map.data, map.size), hex);
    json_t *entry =
        json_pack("{s:s, s:I, s:s}", "name", name, "bytes", (json_int_t)map.size, "xxh3", hex);
    base_unmap(&map);
    if (!entry || json_array_append_new(files, entry) != 0)
        return base_fail_alloc(error, strlen(name));
    return SIFR_OK;
}

static sifr_status hash_manifest(json_t *manifest, char hex[17], sifr_error *error) {
    json_object_del(manifest, "xxh3");
    char *text = json_dumps(manifest, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) return base_fail_alloc(error, 4096);
    base_hash_hex(base_hash(text, strlen(text)), hex);
    free(text);
    return SIFR_OK;
}

sifr_status checkpoint_write_manifest(json_t *manifest, const char *directory, sifr_error *error) {
    char path[BASE_PATH_LENGTH], hex[17], again[17];
    json_t *read = NULL;
    BASE_TRY(base_path_join(path, directory, CHECKPOINT_MANIFEST, error));
    BASE_TRY(hash_manifest(manifest, hex, error));
    if (json_object_set_new(manifest, "xxh3", json_string(hex)) != 0)
        return base_fail_alloc(error, sizeof hex);
    BASE_TRY(base_json_save(manifest, path, error));
    BASE_TRY(base_json_load(path, MANIFEST_LIMIT, &read, error));
    sifr_status status = hash_manifest(read, again, error);
    json_decref(read);
    if (status == SIFR_OK && strcmp(hex, again) != 0)
        return base_fail(error, SIFR_FAILED, "%s: reads back other than it was written", path);
    return status;
}

/* --- reading --- */

/* A name in the checkpoint's own folder, not a path. */
static bool is_bare_name(const char *name) {
    return name && name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 256;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static sifr_status open_file(const json_t *entry, const char *directory, formats_safetensors *out,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH], hex[17];
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *wanted = json_string_value(json_object_get(entry, "xxh3"));
    const json_t *bytes = json_object_get(entry, "bytes");
    if (!is_bare_name(name) || !wanted || !json_is_integer(bytes)) {
        return base_fail(error, SIFR_FAILED, "%s/%s: an entry of \"files\" is not one: '%.60s'",
                         directory, CHECKPOINT_MANIFEST, name ? name : "no name");
    }
    BASE_TRY(base_path_join(path, directory, name, error));
    base_map map;
    BASE_TRY(base_map_file(path, &map, error));
    bool whole = (json_int_t)map.size == json_integer_value(bytes);
    if (!whole) {
        base_set_error(error, SIFR_FAILED, "%s: %zu bytes, %lld in the manifest", path, map.size,
                       (long long)json_integer_value(bytes));
    } else {
        base_hash_hex(base_hash(map.data, map.size), hex);
        whole = strcmp(hex, wanted) == 0;
        if (!whole)
            base_set_error(error, SIFR_FAILED, "%s: checksum %s, %.16s in the manifest", path, hex,
                           wanted);
    }
    base_unmap(&map);
    if (!whole) return SIFR_FAILED;
    return ends_with(name, ".safetensors") ? formats_safetensors_open(path, out, error) : SIFR_OK;
}

static sifr_status read_manifest(const char *path, checkpoint_opened *out, sifr_error *error) {
    char wanted[17], hex[17];
    const char *format;
    int64_t version;
    BASE_TRY(base_json_load(path, MANIFEST_LIMIT, &out->json, error));
    if (!json_is_object(out->json))
        return base_fail(error, SIFR_FAILED, "%s: not a JSON object", path);
    const char *stored = json_string_value(json_object_get(out->json, "xxh3"));
    snprintf(wanted, sizeof wanted, "%s", stored ? stored : "");
    BASE_TRY(hash_manifest(out->json, hex, error));
    if (!stored || strcmp(hex, wanted) != 0)
        return base_fail(error, SIFR_FAILED, "%s: checksum %s, '%s' stored in it", path, hex,
                         wanted);
    BASE_TRY(base_json_string(out->json, "format", "", &format, path, error));
    BASE_TRY(base_json_int(out->json, "version", -1, &version, path, error));
    if (strcmp(format, "sifr checkpoint") != 0 || version != CHECKPOINT_VERSION) {
        return base_fail(error, SIFR_FAILED,
                         "%s: \"%.40s\" version %lld, this sifr reads \"sifr checkpoint\" version "
                         "%d",
                         path, format, (long long)version, CHECKPOINT_VERSION);
    }
    BASE_TRY(base_json_int(out->json, "step", -1, &out->step, path, error));
    BASE_TRY(base_json_int(out->json, "updates", -1, &out->updates, path, error));
    out->agree = json_object_get(out->json, "agree");
    out->notes = json_object_get(out->json, "notes");
    out->state = json_object_get(out->json, "state");
    if (out->step < 0 || out->updates < 0 || out->updates > out->step || !out->agree ||
        !json_is_object(out->state)) {
        return base_fail(error, SIFR_FAILED, "%s: step, updates, agree or state is missing", path);
    }
    return SIFR_OK;
}

sifr_status checkpoint_open(const char *directory, checkpoint_opened *out, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    sifr_status status;
    *out = (checkpoint_opened){0};
    BASE_TRY(base_path_join(path, directory, CHECKPOINT_MANIFEST, error));
    BASE_TRY_GOTO(status, read_manifest(path, out, error), fail);
    const json_t *files = json_object_get(out->json, "files");
    size_t count = json_array_size(files);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *out->files, &out->files, error), fail);
    out->file_count = count;
    for (size_t i = 0; i < count; i++) {
        BASE_TRY_GOTO(status, open_file(json_array_get(files, i), directory, &out->files[i], error),
                      fail);
    }
    return SIFR_OK;
fail:
    checkpoint_close(out);
    return status == SIFR_NO_MEMORY ? status : SIFR_FAILED;
}

void checkpoint_close(checkpoint_opened *opened) {
    for (size_t i = 0; i < opened->file_count; i++) formats_safetensors_close(&opened->files[i]);
    free(opened->files);
    json_decref(opened->json);
    *opened = (checkpoint_opened){0};
}

static int compare_ranges(const void *a, const void *b) {
    const checkpoint_range *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? -1 : 1;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static bool find_model_weight(const sifr_model *model, const char *name, size_t *index) {
    for (*index = 0; *index < model->weight_count; ++*index) {
        if (strcmp(model->weights[*index].name, name) == 0) return true;
    }
    return false;
}

static sifr_status read_range(const checkpoint_opened *opened, const json_t *entry,
                              const sifr_model *model, const char *where, checkpoint_range *out,
                              sifr_error *error) {
    const char *weight, *part, *tensor_name;
    int64_t file;
    BASE_TRY(base_json_string(entry, "weight", "", &weight, where, error));
    BASE_TRY(base_json_string(entry, "part", "", &part, where, error));
    BASE_TRY(base_json_string(entry, "tensor", "", &tensor_name, where, error));
    BASE_TRY(base_json_int(entry, "first", -1, &out->first, where, error));
    BASE_TRY(base_json_int(entry, "count", -1, &out->count, where, error));
    BASE_TRY(base_json_int(entry, "file", -1, &file, where, error));
    if (!find_model_weight(model, weight, &out->weight))
        return base_fail(error, SIFR_FAILED, "%s: weight '%.80s' is not in the model", where,
                         weight);
    int p = 0;
    while (p < ENGINE_PARTS && strcmp(part, checkpoint_part_name((engine_part)p)) != 0) p++;
    if (p == ENGINE_PARTS || file < 0 || (size_t)file >= opened->file_count || out->first < 0 ||
        out->count < 0)
        return base_fail(error, SIFR_FAILED, "%s: a wrong range of '%.80s'", where, weight);
    out->part = (engine_part)p;
    out->file = (size_t)file;
    const formats_tensor *tensor = opened->files[file].map.data
                                       ? formats_safetensors_find(&opened->files[file], tensor_name)
                                       : NULL;
    if (!tensor || tensor->dtype != FORMATS_F32 || tensor->elements != out->count)
        return base_fail(error, SIFR_FAILED, "%s: tensor '%.80s' is not there as described", where,
                         tensor_name);
    out->data = tensor->data;
    return SIFR_OK;
}

sifr_status checkpoint_ranges(const checkpoint_opened *opened, const sifr_model *model,
                              const char *directory, checkpoint_range **out, size_t *count,
                              sifr_error *error) {
    char where[BASE_PATH_LENGTH];
    const json_t *list = json_object_get(opened->json, "ranges");
    size_t used = json_array_size(list), at = 0;
    checkpoint_range *ranges = NULL;
    sifr_status status;
    BASE_TRY(base_path_join(where, directory, CHECKPOINT_MANIFEST, error));
    BASE_TRY(base_alloc(used, sizeof *ranges, &ranges, error));
    for (size_t i = 0; i < used; i++) {
        BASE_TRY_GOTO(status,
                      read_range(opened, json_array_get(list, i), model, where, &ranges[i], error),
                      fail);
    }
    if (used) qsort(ranges, used, sizeof *ranges, compare_ranges);
    for (size_t w = 0; w < model->weight_count; w++) {
        int64_t elements = model->weights[w].rows * model->weights[w].columns;
        for (int p = 0; p < ENGINE_PARTS; p++) {
            int64_t covered = 0;
            for (; at < used && ranges[at].weight == w && (int)ranges[at].part == p; at++) {
                if (ranges[at].first != covered || ranges[at].count > elements - covered) break;
                covered += ranges[at].count;
            }
            if (covered == elements) continue;
            status = base_fail(error, SIFR_FAILED,
                               "%s: %s of '%s' is not covered once from element %lld on", where,
                               checkpoint_part_name((engine_part)p), model->weights[w].name,
                               (long long)covered);
            goto fail;
        }
    }
    if (at != used) {
        status = base_fail(error, SIFR_FAILED, "%s: ranges overlap", where);
        goto fail;
    }
    *out = ranges;
    *count = used;
    return SIFR_OK;
fail:
    free(ranges);
    return status == SIFR_NO_MEMORY ? status : SIFR_FAILED;
}
