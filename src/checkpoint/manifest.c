#include "checkpoint/manifest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/json.h"
#include "engine/state/convert.h"

enum { MANIFEST_LIMIT = 1 << 30 };

bool checkpoint_has_part(const sifr_model *model, const optim_row *optimizer, size_t weight,
                         engine_part part) {
    const model_weight *w = &model->weights[weight];
    if (part == ENGINE_MASTER) return !w->based;
    if (w->frozen || !optimizer) return !w->frozen;
    return (int)part - ENGINE_STATE1 < optim_states(optim_row_for(optimizer, w->rest));
}

sifr_status checkpoint_tensor_name(const sifr_model *model, const checkpoint_range *range,
                                   char out[FORMATS_NAME_LIMIT], sifr_error *error) {
    const char *part = range->name;
    const char *weight = model->weights[range->weight].name;
    int used = range->first ? snprintf(out, FORMATS_NAME_LIMIT, "%s/%s@%lld", part, weight,
                                       (long long)range->first)
                            : snprintf(out, FORMATS_NAME_LIMIT, "%s/%s", part, weight);
    if (used > 0 && used < FORMATS_NAME_LIMIT) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "checkpoint: the weight's name %.60s… is too long", weight);
}

static uint64_t hash_map(const base_map *map) {
    base_read_by_pieces(map);
    return base_hash_pieces(map->data, map->size, base_read_ahead);
}

/* --- writing --- */

sifr_status checkpoint_sum_file(const char *directory, const char *name, checkpoint_sum *out,
                                sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    base_map map;
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(base_map_file(path, &map, error));
    *out = (checkpoint_sum){map.size, hash_map(&map)};
    base_unmap(&map);
    return SIFR_OK;
}

sifr_status checkpoint_add_file(json_t *files, const char *name, const checkpoint_sum *sum,
                                sifr_error *error) {
    char hex[17];
    base_hash_hex(sum->hash, hex);
    json_t *entry =
        json_pack("{s:s, s:I, s:s}", "name", name, "bytes", (json_int_t)sum->bytes, "xxh3", hex);
    if (!entry || json_array_append_new(files, entry) != 0)
        return base_fail_alloc(error, strlen(name));
    return SIFR_OK;
}

sifr_status checkpoint_add_range(json_t *list, const sifr_engine *engine,
                                 const checkpoint_range *range, sifr_error *error) {
    char name[FORMATS_NAME_LIMIT];
    const sifr_model *model = engine_model(engine);
    BASE_TRY(checkpoint_tensor_name(model, range, name, error));
    json_t *entry =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "weight", model->weights[range->weight].name,
                  "part", range->name, "first", (json_int_t)range->first, "count",
                  (json_int_t)range->count, "file", (json_int_t)range->file, "tensor", name);
    if (!entry || json_array_append_new(list, entry) != 0)
        return base_fail_alloc(error, sizeof name);
    if (range->dtype != engine_part_type(engine, range->part) &&
        json_object_set_new(entry, "dtype", json_string(base_dtype_name(range->dtype))) != 0)
        return base_fail_alloc(error, sizeof name);
    if (range->each > 1 && json_object_set_new(entry, "each", json_integer(range->each)) != 0)
        return base_fail_alloc(error, sizeof name);
    return SIFR_OK;
}

sifr_status checkpoint_add_types(json_t *manifest, const sifr_engine *engine, sifr_error *error) {
    json_t *types = json_object();
    if (json_object_set_new(manifest, "types", types) != 0) return base_fail_alloc(error, 256);
    for (int p = 0; p < engine_parts(engine); p++) {
        const char *type = base_dtype_name(engine_part_type(engine, (engine_part)p));
        const char *name = engine_part_name(engine_optimizer(engine), (engine_part)p);
        if (json_object_set_new(types, name, json_string(type))) return base_fail_alloc(error, 64);
    }
    return SIFR_OK;
}

sifr_status checkpoint_add_scaler(json_t *manifest, const sifr_engine *engine, sifr_error *error) {
    const engine_loss_scaler *s = engine_scaler(engine);
    bool dynamic = engine_settings(engine)->fp16.loss_scale <= 0;
    if (engine_settings(engine)->precision != SIFR_FP16 || !dynamic) return SIFR_OK;
    json_t *scaler = json_pack(
        "{s:f, s:I, s:I, s:I}", "scale", s->scale, "iteration", (json_int_t)s->iteration,
        "last_overflow", (json_int_t)s->last_overflow, "hysteresis", (json_int_t)s->hysteresis);
    if (!scaler || json_object_set_new(manifest, "loss_scaler", scaler) != 0)
        return base_fail_alloc(error, 256);
    return SIFR_OK;
}

sifr_status checkpoint_add_memory(json_t *manifest, const sifr_engine *engine, sifr_error *error) {
    const optim_memory *m = engine_memory(engine);
    if (!engine_optimizer(engine)->remembers) return SIFR_OK;
    json_t *made = json_pack("{s:f, s:f}", "lr_max", m->largest_rate, "weight_sum", m->weights);
    if (!made || json_object_set_new(manifest, "optimizer", made) != 0)
        return base_fail_alloc(error, 128);
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
        return base_fail(error, SIFR_FAILED, "%s: does not read back as it was written", path);
    return status;
}

/* --- reading --- */

/* Whether this is a plain name in the checkpoint's folder, not a path. */
static bool is_bare_name(const char *name) {
    return name && name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 256;
}

/* An entry of "files"; `index` may be any. */
static sifr_status file_entry(const checkpoint_opened *opened, size_t index, const char *directory,
                              const char **name, const char **hash, json_int_t *bytes,
                              sifr_error *error) {
    const json_t *entry = json_array_get(json_object_get(opened->json, "files"), index);
    const json_t *size = json_object_get(entry, "bytes");
    *name = json_string_value(json_object_get(entry, "name"));
    *hash = json_string_value(json_object_get(entry, "xxh3"));
    *bytes = json_integer_value(size);
    if (is_bare_name(*name) && *hash && json_is_integer(size)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s/%s: not a valid entry of \"files\": '%.60s'",
                     directory, CHECKPOINT_MANIFEST, *name ? *name : "no name");
}

sifr_status checkpoint_check_file(const checkpoint_opened *opened, size_t index,
                                  const char *directory, bool whole, sifr_error *error) {
    char path[BASE_PATH_LENGTH], hex[17];
    const char *name, *hash;
    json_int_t bytes;
    base_map map;
    sifr_status status = SIFR_OK;
    BASE_TRY(file_entry(opened, index, directory, &name, &hash, &bytes, error));
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(base_map_file(path, &map, error));
    if ((json_int_t)map.size != bytes) {
        status = base_fail(error, SIFR_FAILED, "%s: has %zu bytes, but %lld in the manifest", path,
                           map.size, (long long)bytes);
    } else if (whole) {
        base_hash_hex(hash_map(&map), hex);
        if (strcmp(hex, hash) != 0)
            status = base_fail(error, SIFR_FAILED, "%s: has checksum %s, but %.16s in the manifest",
                               path, hex, hash);
    }
    base_unmap(&map);
    return status;
}

sifr_status checkpoint_check_states(const checkpoint_opened *opened, const optim_row *row,
                                    const char *directory, const char *whose, const char *remedy,
                                    sifr_error *error) {
    const json_t *types = json_object_get(opened->json, "types");
    char had[160] = "";
    size_t used = 0, count = 0;
    bool same = true;
    int parts = ENGINE_STATE1 + optim_states(row);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)types, key, value) {
        int p = 0;
        while (p < parts && strcmp(key, engine_part_name(row, (engine_part)p))) p++;
        same &= p < parts;
        count++;
        if (strcmp(key, "master") == 0 || used >= sizeof had) continue;
        used += (size_t)snprintf(had + used, sizeof had - used, "%s%.40s", used ? ", " : "", key);
    }
    if (!types && row == &optim_adam) return SIFR_OK;
    if (types && same && (int)count == parts) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE, "%s: has the state of another optimizer (%s) than %s, which %s; %s",
        directory, types ? (used ? had : "none") : "exp_avg, exp_avg_sq", row->name, whose, remedy);
}

sifr_status checkpoint_check_types(const checkpoint_opened *opened, const sifr_engine *engine,
                                   const char *directory, sifr_error *error) {
    const json_t *types = json_object_get(opened->json, "types");
    BASE_TRY(checkpoint_check_states(
        opened, engine_optimizer(engine), directory, "this run has",
        "set optimizer as it was, or start a new run in another output folder", error));
    for (int p = 0; p < engine_parts(engine); p++) {
        const char *part = engine_part_name(engine_optimizer(engine), (engine_part)p), *was;
        const char *now = base_dtype_name(engine_part_type(engine, (engine_part)p));
        BASE_TRY(base_json_string(types, part, "fp32", &was, directory, error));
        if (strcmp(was, now) == 0) continue;
        return base_fail(error, SIFR_USAGE,
                         "%s: has %s in %s, but this run keeps it in %s; set "
                         "bf16.bf16_master_weights_and_grads and bf16.bf16_optimizer_states as "
                         "they were, or start a new run in another output folder",
                         directory, part, was, now);
    }
    return SIFR_OK;
}

sifr_status checkpoint_open_file(const checkpoint_opened *opened, const checkpoint_range *ranges,
                                 size_t count, const char *directory, formats_safetensors *out,
                                 sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    const char *name, *hash;
    json_int_t bytes;
    BASE_TRY(file_entry(opened, ranges->file, directory, &name, &hash, &bytes, error));
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(formats_safetensors_open(path, out, error));
    for (size_t i = 0; i < count; i++) {
        const formats_tensor *tensor = formats_safetensors_find(out, ranges[i].tensor);
        int64_t values = checkpoint_values(&ranges[i], ranges[i].count);
        if (tensor && tensor->dtype == ranges[i].dtype && tensor->elements == values) continue;
        formats_safetensors_close(out);
        return base_fail(error, SIFR_FAILED, "%s: tensor '%.80s' is not there as %s describes it",
                         path, ranges[i].tensor, CHECKPOINT_MANIFEST);
    }
    return SIFR_OK;
}

sifr_status checkpoint_open_ranges(const checkpoint_opened *opened, const checkpoint_range *ranges,
                                   size_t count, size_t file, const char *directory, bool whole,
                                   formats_safetensors *out, sifr_error *error) {
    checkpoint_range *here;
    size_t used = 0;
    BASE_TRY(base_alloc(count, sizeof *here, &here, error));
    for (size_t i = 0; i < count; i++)
        if (ranges[i].file == file) here[used++] = ranges[i];
    sifr_status status = SIFR_OK;
    if (used && whole) status = checkpoint_check_file(opened, file, directory, true, error);
    if (used && status == SIFR_OK)
        status = checkpoint_open_file(opened, here, used, directory, out, error);
    free(here);
    return status;
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
        return base_fail(error, SIFR_FAILED, "%s: has checksum %s, but '%s' is stored in it", path,
                         hex, wanted);
    memcpy(out->hash, hex, sizeof hex);
    BASE_TRY(base_json_string(out->json, "format", "", &format, path, error));
    BASE_TRY(base_json_int(out->json, "version", -1, &version, path, error));
    if (strcmp(format, "sifr checkpoint") != 0 || version != CHECKPOINT_VERSION) {
        return base_fail(
            error, SIFR_FAILED,
            "%s: is \"%.40s\" version %lld, but this sifr reads \"sifr checkpoint\" version %d",
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
    *out = (checkpoint_opened){0};
    BASE_TRY(base_path_join(path, directory, CHECKPOINT_MANIFEST, error));
    sifr_status status = read_manifest(path, out, error);
    out->file_count = json_array_size(json_object_get(out->json, "files"));
    if (status == SIFR_OK) return SIFR_OK;
    checkpoint_close(out);
    return status == SIFR_NO_MEMORY ? status : SIFR_FAILED;
}

void checkpoint_close(checkpoint_opened *opened) {
    json_decref(opened->json);
    *opened = (checkpoint_opened){0};
}

sifr_status checkpoint_read_scaler(const checkpoint_opened *opened, const sifr_engine *engine,
                                   const char *directory, engine_loss_scaler *out,
                                   sifr_error *error) {
    const json_t *stored = json_object_get(opened->json, "loss_scaler");
    engine_loss_scaler s = {0};
    *out = *engine_scaler(engine);
    if (!stored || engine_settings(engine)->precision != SIFR_FP16 ||
        engine_settings(engine)->fp16.loss_scale > 0)
        return SIFR_OK;
    BASE_TRY(base_json_double(stored, "scale", 0, &s.scale, directory, error));
    BASE_TRY(base_json_int(stored, "iteration", -1, &s.iteration, directory, error));
    BASE_TRY(base_json_int(stored, "last_overflow", -1, &s.last_overflow, directory, error));
    BASE_TRY(base_json_int(stored, "hysteresis", 0, &s.hysteresis, directory, error));
    if (!isfinite(s.scale) || s.scale <= 0 || s.iteration < 0 || s.last_overflow < -1 ||
        s.last_overflow >= s.iteration || s.hysteresis < 1)
        return base_fail(error, SIFR_FAILED, "%s/%s: \"loss_scaler\" is not valid", directory,
                         CHECKPOINT_MANIFEST);
    *out = s;
    return SIFR_OK;
}

sifr_status checkpoint_read_memory(const checkpoint_opened *opened, const sifr_engine *engine,
                                   const char *directory, optim_memory *out, sifr_error *error) {
    const json_t *stored = json_object_get(opened->json, "optimizer");
    optim_memory m = {0};
    *out = m;
    if (!engine_optimizer(engine)->remembers) return SIFR_OK;
    BASE_TRY(base_json_double(stored, "lr_max", -1, &m.largest_rate, directory, error));
    BASE_TRY(base_json_double(stored, "weight_sum", -1, &m.weights, directory, error));
    if (!(m.largest_rate >= 0 && m.weights >= 0) || !isfinite(m.largest_rate + m.weights))
        return base_fail(error, SIFR_FAILED, "%s/%s: \"optimizer\" is not valid", directory,
                         CHECKPOINT_MANIFEST);
    *out = m;
    return SIFR_OK;
}

/* --- ranges --- */

static int compare_ranges(const void *a, const void *b) {
    const checkpoint_range *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? -1 : 1;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int compare_files(const void *a, const void *b) {
    const checkpoint_range *x = a, *y = b;
    return x->file != y->file ? (x->file < y->file ? -1 : 1) : compare_ranges(a, b);
}

/* Index of each weight by its name. */
static sifr_status index_weights(const sifr_model *model, json_t **out, sifr_error *error) {
    *out = json_object();
    for (size_t w = 0; *out && w < model->weight_count; w++) {
        if (json_object_set_new(*out, model->weights[w].name, json_integer((json_int_t)w)) == 0)
            continue;
        json_decref(*out);
        *out = NULL;
    }
    return *out ? SIFR_OK : base_fail_alloc(error, 64 * model->weight_count);
}

/* The part of this name among those of `optimizer`; NULL: of any, and all but master weights are
 * ENGINE_STATE1. -1: there is none. */
static int part_of(const optim_row *optimizer, const char *name) {
    int count = ENGINE_STATE1 + (optimizer ? optim_states(optimizer) : 0);
    for (int p = 0; p < count; p++)
        if (strcmp(name, engine_part_name(optimizer, (engine_part)p)) == 0) return p;
    return optimizer ? -1 : ENGINE_STATE1;
}

/* `part` by its name in `types`, unless the entry says otherwise. */
static sifr_status read_range_type(const json_t *entry, const json_t *types, const char *part,
                                   const char *where, base_dtype *out, sifr_error *error) {
    static const base_dtype built[] = {BASE_FP32, BASE_BF16, BASE_FP16, BASE_UINT8};
    const char *name;
    BASE_TRY(base_json_string(types, part, "fp32", &name, where, error));
    BASE_TRY(base_json_string(entry, "dtype", name, &name, where, error));
    for (size_t i = 0; i < sizeof built / sizeof *built; i++) {
        if (strcmp(name, base_dtype_name(built[i])) != 0) continue;
        *out = built[i];
        return SIFR_OK;
    }
    return base_fail(error, SIFR_FAILED,
                     "%s: has %.40s in %.40s, which is not supported (supported: fp32, bf16, fp16, "
                     "uint8)",
                     where, part, name);
}

static sifr_status read_range(const checkpoint_opened *opened, const json_t *entry,
                              const json_t *weights, const optim_row *optimizer, const char *where,
                              checkpoint_range *out, sifr_error *error) {
    const char *weight;
    int64_t file;
    BASE_TRY(base_json_string(entry, "weight", "", &weight, where, error));
    BASE_TRY(base_json_string(entry, "part", "", &out->name, where, error));
    BASE_TRY(base_json_string(entry, "tensor", "", &out->tensor, where, error));
    BASE_TRY(base_json_int(entry, "first", -1, &out->first, where, error));
    BASE_TRY(base_json_int(entry, "count", -1, &out->count, where, error));
    BASE_TRY(base_json_int(entry, "file", -1, &file, where, error));
    BASE_TRY(base_json_int(entry, "each", 1, &out->each, where, error));
    const json_t *index = json_object_get(weights, weight);
    if (!index)
        return base_fail(error, SIFR_FAILED, "%s: weight '%.80s' is not in the model", where,
                         weight);
    int p = part_of(optimizer, out->name);
    if (p < 0 || file < 0 || (size_t)file >= opened->file_count || out->first < 0 ||
        out->count < 0 || out->each < 1 || out->each > DEVICE_BLOCK || out->first % out->each)
        return base_fail(error, SIFR_FAILED, "%s: invalid range of '%.80s'", where, weight);
    out->weight = (size_t)json_integer_value(index);
    out->part = (engine_part)p;
    out->file = (size_t)file;
    const json_t *types = json_object_get(opened->json, "types");
    return read_range_type(entry, types, out->name, where, &out->dtype, error);
}

/* Checks sorted ranges against the model: for all parts of `optimizer`, or NULL: for master weights
 * alone. `any`: the model does not say which weights were trained, and the ranges do. */
static sifr_status check_cover(const checkpoint_range *ranges, size_t count,
                               const sifr_model *model, const optim_row *optimizer, bool any,
                               const char *where, sifr_error *error) {
    int parts = ENGINE_STATE1 + (optimizer ? optim_states(optimizer) : 0);
    size_t at = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        int64_t elements = model->weights[w].rows * model->weights[w].columns;
        bool trained = true;
        for (int p = 0; p < parts; p++) {
            bool last =
                optimizer && optimizer->rest && p == ENGINE_STATE1 + optim_states(optimizer->rest);
            if (any && (p == ENGINE_STATE1 || last))
                trained = at < count && ranges[at].weight == w && (int)ranges[at].part == p;
            bool by_model = !any || p == ENGINE_MASTER;
            bool has = checkpoint_has_part(model, optimizer, w, (engine_part)p);
            if (by_model ? !has : !trained) continue;
            int64_t covered = 0;
            for (; at < count && ranges[at].weight == w && (int)ranges[at].part == p; at++) {
                if (ranges[at].first != covered || ranges[at].count > elements - covered) break;
                covered += ranges[at].count;
            }
            if (covered == elements) continue;
            return base_fail(error, SIFR_FAILED,
                             "%s: %s of '%s' is missing or stored twice from element %lld on",
                             where, engine_part_name(optimizer, (engine_part)p),
                             model->weights[w].name, (long long)covered);
        }
    }
    if (at == count) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: ranges overlap", where);
}

/* Leaves the averages of the weights as if they were master weights, and those of weights that have
 * none, which are frozen. */
static sifr_status take_averages(checkpoint_range *ranges, size_t *count, size_t weights,
                                 const char *where, sifr_error *error) {
    bool *has;
    size_t used = 0;
    BASE_TRY(base_alloc(weights + 1, sizeof *has, &has, error));
    for (size_t i = 0; i < *count; i++)
        has[ranges[i].weight] |= strcmp(ranges[i].name, CHECKPOINT_AVERAGE) == 0;
    bool any = memchr(has, true, weights + 1) != NULL;
    for (size_t i = 0; i < *count; i++) {
        bool average = strcmp(ranges[i].name, CHECKPOINT_AVERAGE) == 0;
        if (!average && (ranges[i].part != ENGINE_MASTER || has[ranges[i].weight])) continue;
        ranges[used] = ranges[i];
        ranges[used++].part = ENGINE_MASTER;
    }
    free(has);
    *count = used;
    if (any) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: the run kept no average of its weights (ema)", where);
}

/* The ranges of the parts of `optimizer`, by weight and place; NULL: of master weights alone, or
 * with `average` of the averages of the weights. */
static sifr_status find_ranges(const checkpoint_opened *opened, const sifr_model *model,
                               const optim_row *optimizer, bool any, bool average,
                               const char *directory, checkpoint_range **out, size_t *count,
                               sifr_error *error) {
    char where[BASE_PATH_LENGTH];
    const json_t *list = json_object_get(opened->json, "ranges");
    size_t all = json_array_size(list), used = 0;
    checkpoint_range *ranges = NULL;
    json_t *weights = NULL;
    sifr_status status;
    BASE_TRY_GOTO(status, base_path_join(where, directory, CHECKPOINT_MANIFEST, error), done);
    BASE_TRY_GOTO(status, index_weights(model, &weights, error), done);
    BASE_TRY_GOTO(status, base_alloc(all, sizeof *ranges, &ranges, error), done);
    for (size_t i = 0; i < all; i++) {
        checkpoint_range *range = &ranges[used];
        BASE_TRY_GOTO(
            status,
            read_range(opened, json_array_get(list, i), weights, optimizer, where, range, error),
            done);
        used += optimizer || average || range->part == ENGINE_MASTER;
    }
    if (average)
        BASE_TRY_GOTO(status, take_averages(ranges, &used, model->weight_count, where, error),
                      done);
    if (used) qsort(ranges, used, sizeof *ranges, compare_ranges);
    BASE_TRY_GOTO(status, check_cover(ranges, used, model, optimizer, any, where, error), done);
    *out = ranges;
    *count = used;
    ranges = NULL;
done:
    free(ranges);
    json_decref(weights);
    return status == SIFR_OK || status == SIFR_NO_MEMORY ? status : SIFR_FAILED;
}

sifr_status checkpoint_ranges(const checkpoint_opened *opened, const sifr_engine *engine,
                              const char *directory, checkpoint_range **out, size_t *count,
                              sifr_error *error) {
    BASE_TRY(find_ranges(opened, engine_model(engine), engine_optimizer(engine), false, false,
                         directory, out, count, error));
    if (*count) qsort(*out, *count, sizeof **out, compare_files);
    return SIFR_OK;
}

sifr_status checkpoint_master_ranges(const checkpoint_opened *opened, const sifr_model *model,
                                     bool average, const char *directory, checkpoint_range **out,
                                     size_t *count, sifr_error *error) {
    return find_ranges(opened, model, NULL, false, average, directory, out, count, error);
}

sifr_status checkpoint_state_ranges(const checkpoint_opened *opened, const sifr_model *model,
                                    const optim_row *optimizer, const char *directory,
                                    checkpoint_range **out, size_t *count, sifr_error *error) {
    return find_ranges(opened, model, optimizer, true, false, directory, out, count, error);
}

/* --- tensors of the model folder --- */

json_t *checkpoint_tensors(const sifr_model *model, const engine_stored *stored) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < stored->count; i++) {
        const engine_stored_tensor *t = &stored->tensors[i];
        json_t *entry =
            json_pack("{s:s, s:s, s:s}", "name", t->name, "dtype", formats_dtype_name(t->dtype),
                      "weight", model->weights[t->weight].name);
        if (entry && json_array_append_new(list, entry) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static sifr_status read_tensor(const json_t *entry, const json_t *weights, const char *where,
                               engine_stored_tensor *out, sifr_error *error) {
    static const base_dtype built[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    const char *dtype, *weight;
    BASE_TRY(base_json_string(entry, "name", "", &out->name, where, error));
    BASE_TRY(base_json_string(entry, "dtype", "", &dtype, where, error));
    BASE_TRY(base_json_string(entry, "weight", "", &weight, where, error));
    const json_t *index = json_object_get(weights, weight);
    size_t i = 0, count = sizeof built / sizeof *built;
    while (i < count && strcmp(dtype, formats_dtype_name(built[i])) != 0) i++;
    if (!index || i == count || !*out->name)
        return base_fail(error, SIFR_FAILED, "%s: invalid tensor '%.80s' of '%.80s'", where,
                         out->name, weight);
    out->dtype = built[i];
    out->weight = (size_t)json_integer_value(index);
    return SIFR_OK;
}

/* Each weight of the model in order, then at most one of them again; of adapters, as many as are
 * trained. */
static sifr_status check_tensors(const engine_stored *stored, const sifr_model *model,
                                 const char *where, sifr_error *error) {
    size_t trained = 0;
    for (size_t i = 0; i < model->weight_count; i++) trained += !model->weights[i].frozen;
    bool adapter = model_is_adapter(model);
    bool its = adapter && stored->count == trained;
    for (size_t i = 0; its && i < trained; i++)
        its = !model->weights[stored->tensors[i].weight].frozen &&
              (i == 0 || strcmp(stored->tensors[i - 1].name, stored->tensors[i].name) < 0);
    if (its) return SIFR_OK;
    bool all = !adapter &&
               (stored->count == model->weight_count || stored->count == model->weight_count + 1);
    for (size_t i = 0; all && i < model->weight_count; i++) all = stored->tensors[i].weight == i;
    if (all) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: \"tensors\" are not those of the model", where);
}

sifr_status checkpoint_read_tensors(const checkpoint_opened *opened, const sifr_model *model,
                                    const char *directory, engine_stored *out, sifr_error *error) {
    char where[BASE_PATH_LENGTH];
    const json_t *list = json_object_get(opened->json, "tensors");
    json_t *weights = NULL;
    sifr_status status;
    *out = (engine_stored){0};
    if (!list) return SIFR_OK;
    BASE_TRY_GOTO(status, base_path_join(where, directory, CHECKPOINT_MANIFEST, error), done);
    BASE_TRY_GOTO(status, index_weights(model, &weights, error), done);
    BASE_TRY_GOTO(status,
                  base_alloc(json_array_size(list), sizeof *out->tensors, &out->tensors, error),
                  done);
    for (; out->count < json_array_size(list); out->count++)
        BASE_TRY_GOTO(status,
                      read_tensor(json_array_get(list, out->count), weights, where,
                                  &out->tensors[out->count], error),
                      done);
    status = check_tensors(out, model, where, error);
    if (model_is_adapter(model)) out->file = ENGINE_ADAPTER_FILE;
done:
    json_decref(weights);
    if (status != SIFR_OK) engine_stored_free(out);
    return status == SIFR_OK || status == SIFR_NO_MEMORY ? status : SIFR_FAILED;
}
