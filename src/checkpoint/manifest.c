/* manifest.json of a checkpoint: written, and read with the files that it names. */
#include "checkpoint/manifest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/json.h"
#include "checkpoint/directory.h"

enum { MANIFEST_LIMIT = 1 << 30 };

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

static json_t *bounds(const int64_t pair[2]) {
    return json_pack("[I, I]", (json_int_t)pair[0], (json_int_t)pair[1]);
}

/* The type that the manifest's "types" have for a part. */
static base_dtype type_of(const sifr_engine *engine, const char *part) {
    const char *name;
    base_dtype type = BASE_NONE;
    for (int n = 0; engine_named_part(engine, n, &name, &type); n++)
        if (strcmp(name, part) == 0) break;
    return type;
}

sifr_status checkpoint_add_range(json_t *list, const sifr_engine *engine,
                                 const checkpoint_range *range, sifr_error *error) {
    base_assert(range->span.count > 0 && range->each >= 1);
    char name[FORMATS_NAME_LIMIT];
    const sifr_model *model = engine_model(engine);
    BASE_TRY(checkpoint_tensor_name(model, range, name, error));
    json_t *entry =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "weight", model->weights[range->weight].name,
                  "part", range->name, "first", (json_int_t)range->span.first, "count",
                  (json_int_t)range->span.count, "file", (json_int_t)range->file, "tensor", name);
    if (!entry || json_array_append_new(list, entry) != 0)
        return base_fail_alloc(error, sizeof name);
    const model_block *block = &range->span.block;
    if (!checkpoint_is_whole(model, range) &&
        (json_object_set_new(entry, "rows", bounds(block->rows)) != 0 ||
         json_object_set_new(entry, "columns", bounds(block->columns)) != 0))
        return base_fail_alloc(error, sizeof name);
    if (range->dtype != type_of(engine, range->name) &&
        json_object_set_new(entry, "dtype", json_string(base_dtype_name(range->dtype))) != 0)
        return base_fail_alloc(error, sizeof name);
    if (range->each > 1 && json_object_set_new(entry, "each", json_integer(range->each)) != 0)
        return base_fail_alloc(error, sizeof name);
    return SIFR_OK;
}

sifr_status checkpoint_add_types(json_t *manifest, const sifr_engine *engine, sifr_error *error) {
    json_t *types = json_object();
    if (json_object_set_new(manifest, "types", types) != 0) return base_fail_alloc(error, 256);
    const char *name;
    base_dtype type;
    for (int n = 0; engine_named_part(engine, n, &name, &type); n++)
        if (json_object_set_new(types, name, json_string(base_dtype_name(type))))
            return base_fail_alloc(error, 64);
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
    int states = 0;
    const char *key;
    json_t *value;
    const optim_row *of;
    while (optim_named_state(row, states, &of) >= 0) states++;
    json_object_foreach((json_t *)(uintptr_t)types, key, value) {
        bool master = strcmp(key, "master") == 0;
        same &= master || optim_find_state(row, key, &of) >= 0;
        count++;
        if (master || used >= sizeof had) continue;
        used += (size_t)snprintf(had + used, sizeof had - used, "%s%.40s", used ? ", " : "", key);
    }
    if (!types && row == &optim_adam) return SIFR_OK;
    if (types && same && (int)count == ENGINE_STATE1 + states) return SIFR_OK;
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
    const char *part, *was;
    base_dtype type;
    for (int n = 0; engine_named_part(engine, n, &part, &type); n++) {
        const char *now = base_dtype_name(type);
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
    base_assert(count > 0 && ranges[count - 1].file == ranges[0].file);
    char path[BASE_PATH_LENGTH];
    const char *name, *hash;
    json_int_t bytes;
    BASE_TRY(file_entry(opened, ranges->file, directory, &name, &hash, &bytes, error));
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(formats_safetensors_open(path, out, error));
    for (size_t i = 0; i < count; i++) {
        const formats_tensor *tensor = formats_safetensors_find(out, ranges[i].tensor);
        int64_t values = checkpoint_values(&ranges[i], ranges[i].span.count);
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
    BASE_TRY(base_json_int(out->json, "version", -1, &out->version, path, error));
    if (strcmp(format, "sifr checkpoint") != 0 || out->version < 1 ||
        out->version > CHECKPOINT_VERSION) {
        return base_fail(error, SIFR_FAILED,
                         "%s: is \"%.40s\" version %lld, but this sifr reads \"sifr checkpoint\" "
                         "versions 1 to %d",
                         path, format, (long long)out->version, CHECKPOINT_VERSION);
    }
    BASE_TRY(base_json_int(out->json, "step", -1, &out->step, path, error));
    BASE_TRY(base_json_int(out->json, "updates", -1, &out->updates, path, error));
    out->must_match = json_object_get(out->json, "agree");
    out->may_differ = json_object_get(out->json, "notes");
    out->state = json_object_get(out->json, "state");
    if (out->step < 0 || out->updates < 0 || out->updates > out->step || !out->must_match ||
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

/* A damaged one is passed over. */
static sifr_status peek_step(const char *output, int64_t step, json_t **manifest,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    checkpoint_names names;
    checkpoint_opened opened;
    sifr_error reason = {0};
    checkpoint_name(step, &names);
    BASE_TRY(base_path_join(path, output, names.final, error));
    sifr_status status = checkpoint_open(path, &opened, &reason);
    if (status == SIFR_FAILED) return SIFR_OK;
    if (status != SIFR_OK) return base_fail(error, status, "%s", reason.message);
    *manifest = json_incref(opened.json);
    checkpoint_close(&opened);
    return SIFR_OK;
}

sifr_status checkpoint_peek(const char *output, json_t **manifest, sifr_error *error) {
    int64_t *steps;
    size_t count;
    *manifest = NULL;
    BASE_TRY(checkpoint_list(output, &steps, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count && !*manifest; i++)
        status = peek_step(output, steps[i], manifest, error);
    free(steps);
    return status;
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
