#include "train/prepare/agreement.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/heap.h"
#include "sifr/version.h"

enum {
    NOTE_LENGTH = 256,       /* length of a rank's description of a difference */
    TEXT_LIMIT = 1 << 20,    /* of the first rank's facts */
    SAMPLE_BLOCK = 64 << 10, /* bytes of weights in one hash */
    SAMPLE_BYTES = 64 << 20  /* bytes of weights hashed in all, roughly */
};

/* Describes the first value that differs in `note`: its path, this rank's value, and rank 0's. */
static bool find_difference(const char *path, const json_t *first, const json_t *mine,
                            char note[NOTE_LENGTH]) {
    const char *key;
    json_t *value;
    char below[128];
    if (json_equal(first, mine)) return false;
    if (!json_is_object(first) || !json_is_object(mine)) {
        char *a = first ? json_dumps(first, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
        char *b = mine ? json_dumps(mine, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
        snprintf(note, NOTE_LENGTH, "%s is %.60s, and %.60s on rank 0", path, b ? b : "absent",
                 a ? a : "absent");
        free(a);
        free(b);
        return true;
    }
    json_t *both = json_deep_copy(mine);
    if (both) json_object_update_missing(both, (json_t *)(uintptr_t)first);
    bool found = false;
    json_object_foreach(both, key, value) {
        snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
        found =
            find_difference(below, json_object_get(first, key), json_object_get(mine, key), note);
        if (found) break;
    }
    json_decref(both);
    return found;
}

/* Sends the first rank's text to all ranks; NULL if it is too long or memory ran out here. */
static sifr_status share_text(comm_group *group, const char *text, json_t **out,
                              sifr_error *error) {
    int64_t length = text ? (int64_t)strlen(text) : 0;
    *out = NULL;
    BASE_TRY(comm_broadcast(group, 0, &length, sizeof length, error));
    char piece[4096];
    json_error_t ignored;
    char *whole = length < TEXT_LIMIT ? calloc(1, (size_t)length + 1) : NULL;
    for (int64_t at = 0; at < length; at += (int64_t)sizeof piece) {
        int64_t bytes = base_min_i64(length - at, (int64_t)sizeof piece);
        if (comm_rank(group) == 0) memcpy(piece, text + at, (size_t)bytes);
        sifr_status status = comm_broadcast(group, 0, piece, bytes, error);
        if (status != SIFR_OK) {
            free(whole);
            return status;
        }
        if (whole) memcpy(whole + at, piece, (size_t)bytes);
    }
    if (whole) *out = json_loads(whole, JSON_DECODE_ANY, &ignored);
    free(whole);
    return SIFR_OK;
}

/* Adds to the message the value that differs, as described by the first rank that differs from rank
 * 0. */
static sifr_status explain(comm_group *group, const json_t *facts, const char *text,
                           sifr_error *error) {
    char note[NOTE_LENGTH] = "", said[sizeof error->message];
    json_t *first;
    char *notes;
    sifr_error other;
    snprintf(said, sizeof said, "%s", error->message);
    BASE_TRY(share_text(group, text, &first, &other));
    if (first && facts) find_difference("", first, facts, note);
    json_decref(first);
    size_t size = (size_t)comm_size(group);
    BASE_TRY(base_alloc(size, NOTE_LENGTH, &notes, &other));
    sifr_status status = comm_all_gather_control(group, note, NOTE_LENGTH, notes, &other);
    for (size_t r = 0; r < size && status == SIFR_OK; r++) {
        const char *theirs = notes + r * NOTE_LENGTH;
        if (!theirs[0]) continue;
        base_set_error(error, SIFR_USAGE, "%s; on rank %zu %s", said, r, theirs);
        break;
    }
    free(notes);
    return status;
}

/* Takes ownership of `facts`. NULL means that memory ran out here, which is then the difference. */
static sifr_status agree_on(comm_group *group, const char *label, json_t *facts,
                            sifr_error *error) {
    char *text = facts ? json_dumps(facts, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    uint64_t hash = text ? base_hash(text, strlen(text)) : 0;
    sifr_status status = comm_agree(group, label, hash, error);
    if (status == SIFR_USAGE) {
        sifr_status told = explain(group, facts, text, error);
        if (told == SIFR_LOST_RANK) status = told;
    }
    free(text);
    json_decref(facts);
    return status;
}

static json_t *hash_text(uint64_t hash) {
    char hex[17];
    base_hash_hex(hash, hex);
    return json_string(hex);
}

sifr_status train_agree_program(comm_group *group, sifr_error *error) {
    base_map map = {0};
    sifr_error ignored;
    uint64_t hash = 0;
    if (comm_size(group) == 1) return SIFR_OK;
    if (base_map_file("/proc/self/exe", &map, &ignored) == SIFR_OK)
        hash = base_hash(map.data, map.size);
    base_unmap(&map);
    return agree_on(group, "program",
                    json_pack("{s:s, s:o}", "version", sifr_version(), "build", hash_text(hash)),
                    error);
}

/* Hashes every stride-th block of the tensors' data, laid end to end. */
static uint64_t hash_values(const formats_weights *weights) {
    uint64_t stride = formats_weights_bytes(weights) / SAMPLE_BYTES, hash = 0, block = 0;
    if (stride < 1) stride = 1;
    for (size_t i = 0; i < formats_weights_count(weights); i++) {
        const formats_tensor *tensor = formats_weights_at(weights, i);
        const uint8_t *data = tensor->data;
        for (uint64_t at = 0; at < tensor->bytes; at += SAMPLE_BLOCK, block++) {
            if (block % stride) continue;
            uint64_t bytes = tensor->bytes - at < SAMPLE_BLOCK ? tensor->bytes - at : SAMPLE_BLOCK;
            hash = base_hash_seeded(data + at, bytes, hash);
        }
    }
    return hash;
}

static uint64_t hash_tensors(const formats_weights *weights) {
    uint64_t hash = 0;
    for (size_t i = 0; i < formats_weights_count(weights); i++) {
        const formats_tensor *tensor = formats_weights_at(weights, i);
        hash = base_hash_seeded(tensor->name, strlen(tensor->name), hash);
        hash = base_hash_seeded(&tensor->dtype, sizeof tensor->dtype, hash);
        hash = base_hash_seeded(tensor->shape, (size_t)tensor->rank * sizeof *tensor->shape, hash);
    }
    return hash;
}

static uint64_t hash_file(const char *directory, const char *name) {
    char path[BASE_PATH_LENGTH];
    base_map map = {0};
    sifr_error ignored;
    uint64_t hash = 0;
    if (base_path_join(path, directory, name, &ignored) == SIFR_OK &&
        base_map_file(path, &map, &ignored) == SIFR_OK)
        hash = base_hash(map.data, map.size);
    base_unmap(&map);
    return hash;
}

static uint64_t hash_labels(const model_labels *labels) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < labels->count; i++)
        hash = base_hash_seeded(labels->names[i], strlen(labels->names[i]) + 1, hash);
    return hash;
}

/* Removes the keys that may differ between hosts. */
static json_t *comparable(const sifr_config *config) {
    static const char *const own[] = {"model", "data", "dataset", "eval_data", "threads"};
    json_t *effective = config_effective(config);
    json_t *sifr = json_object_get(effective, "sifr");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) json_object_del(sifr, own[i]);
    return effective;
}

sifr_status train_agree_input(comm_group *group, const sifr_config *config,
                              const engine_folder *folder, sifr_error *error) {
    if (comm_size(group) == 1) return SIFR_OK;
    BASE_TRY(agree_on(group, "config", comparable(config), error));
    json_t *model = json_pack("{s:o, s:o, s:o}", "config.json (hash)",
                              hash_text(hash_file(config->model, "config.json")), "tensors (hash)",
                              hash_text(hash_tensors(folder->weights)), "values (hash)",
                              hash_text(hash_values(folder->weights)));
    /* Those of a new head may come from the data, which may differ between hosts. */
    if (model && folder->labels.count)
        json_object_set_new(model, "labels (hash)", hash_text(hash_labels(&folder->labels)));
    return agree_on(group, "model", model, error);
}

sifr_status train_agree_machine(comm_group *group, const device *dev, sifr_error *error) {
    char machine[512];
    if (comm_size(group) == 1) return SIFR_OK;
    device_describe(dev, machine, sizeof machine);
    return agree_on(group, "machine",
                    json_pack("{s:s, s:s}", "instruction set", device_isa(dev), "kernels", machine),
                    error);
}

sifr_status train_agree_data(comm_group *group, const data_set *data, const data_set *held_out,
                             sifr_error *error) {
    if (comm_size(group) == 1) return SIFR_OK;
    json_t *facts = json_pack("{s:I, s:o}", "tokens", (json_int_t)data_set_tokens(data),
                              "tokens (hash)", hash_text(data_set_hash(data)));
    if (held_out && facts)
        json_object_set_new(facts, "eval_data (hash)", hash_text(data_set_hash(held_out)));
    return agree_on(group, "data", facts, error);
}
