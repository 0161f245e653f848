#include "formats/deepspeed/deepspeed_checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "base/heap.h"
#include "formats/deepspeed/deepspeed_internal.h"

enum { TAG_LIMIT = 256 };

/* --- which checkpoint --- */

static bool contains(const char *name, const char *word) {
    return strstr(name, word) != NULL;
}

/* What of a folder is not read, by the names in it. */
static sifr_status check_names(const char *folder, char **names, size_t count, sifr_error *error) {
    for (size_t i = 0; i < count; i++) {
        const char *name = names[i];
        if (strcmp(name, ".metadata") == 0 || contains(name, ".distcp"))
            return base_fail(error, SIFR_USAGE,
                             "%s: PyTorch's distributed checkpoints (DCP: .metadata, *.distcp) are "
                             "not supported; convert it: python3 -m "
                             "torch.distributed.checkpoint.format_utils dcp_to_torch %s "
                             "pytorch_model.bin",
                             folder, folder);
        const char *parallel = strstr(name, "mp_rank_");
        if (parallel && strncmp(parallel, "mp_rank_00_", 11) != 0)
            return base_fail(error, SIFR_USAGE,
                             "%s: %s: checkpoints of tensor or pipeline parallel runs are not "
                             "supported; make a universal one of it: DeepSpeed's "
                             "ds_to_universal.py",
                             folder, name);
        if (strncmp(name, "expp_rank_", 10) == 0 || contains(name, "_expert_"))
            return base_fail(error, SIFR_USAGE,
                             "%s: %s: checkpoints of mixtures of experts are not supported", folder,
                             name);
        if (strncmp(name, "layer_", 6) == 0 && contains(name, "model_states.pt"))
            return base_fail(error, SIFR_USAGE,
                             "%s: %s: checkpoints of pipeline parallel runs are not supported",
                             folder, name);
    }
    return SIFR_OK;
}

static bool has_states(char **names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (contains(names[i], "_model_states.pt") || contains(names[i], "_optim_states.pt"))
            return true;
    return false;
}

static bool has_folder(const char *folder, const char *name) {
    char path[BASE_PATH_LENGTH];
    return base_path_join(path, folder, name, NULL) == SIFR_OK && base_is_directory(path);
}

/* The tag in DIR/latest_universal or DIR/latest; false where there is neither. */
static sifr_status read_tag(const char *path, char out[TAG_LIMIT], bool *there, sifr_error *error) {
    static const char *const files[] = {"latest_universal", "latest"};
    for (size_t i = 0; i < 2; i++) {
        char file[BASE_PATH_LENGTH], *text;
        size_t size;
        BASE_TRY(base_path_join(file, path, files[i], error));
        if (!base_is_file(file)) continue;
        BASE_TRY(base_read_file(file, 4096, &text, &size, error));
        while (size && strchr(" \t\r\n", text[size - 1])) size--;
        bool good = size > 0 && size < TAG_LIMIT && !memchr(text, 0, size) &&
                    !memchr(text, '/', size) && text[0] != '.';
        if (good) {
            memcpy(out, text, size);
            out[size] = '\0';
        }
        free(text);
        *there = true;
        if (good) return SIFR_OK;
        return base_fail(error, SIFR_FAILED, "%s: names no folder beside it", file);
    }
    *there = false;
    return SIFR_OK;
}

static sifr_status read_folder(formats_deepspeed *c, sifr_error *error) {
    char **names;
    size_t count;
    if (!base_is_directory(c->folder))
        return base_fail(error, SIFR_USAGE, "%s: no such folder", c->folder);
    BASE_TRY(base_list_directory(c->folder, &names, &count, error));
    sifr_status status = check_names(c->folder, names, count, error);
    if (status == SIFR_OK && has_folder(c->folder, "zero"))
        status = formats_deepspeed_universal(c, error);
    else if (status == SIFR_OK && has_states(names, count))
        status = formats_deepspeed_zero(c, names, count, error);
    else if (status == SIFR_OK)
        status = base_fail(error, SIFR_USAGE,
                           "%s: no checkpoint of DeepSpeed: there is no file latest, no "
                           "*_model_states.pt, and no folder zero",
                           c->folder);
    base_free_names(names, count);
    return status;
}

static sifr_status find_folder(formats_deepspeed *c, const char *path, sifr_error *error) {
    char tag[TAG_LIMIT];
    bool there;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    if (length == 0 || length >= sizeof c->folder)
        return base_fail(error, SIFR_USAGE, "'%.60s': not a path of a folder", path);
    memcpy(c->folder, path, length);
    c->folder[length] = '\0';
    BASE_TRY(read_tag(c->folder, tag, &there, error));
    if (!there) return SIFR_OK;
    char folder[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(folder, c->folder, tag, error));
    memcpy(c->folder, folder, sizeof folder);
    return SIFR_OK;
}

static int compare_weights(const void *a, const void *b) {
    return strcmp(((const formats_deepspeed_weight *)a)->name,
                  ((const formats_deepspeed_weight *)b)->name);
}

/* Sorted by name; no two alike, and each with all its elements. */
static sifr_status check_weights(formats_deepspeed *c, sifr_error *error) {
    if (!c->count) return base_fail(error, SIFR_FAILED, "%s: it names no parameter", c->folder);
    qsort(c->weights, c->count, sizeof *c->weights, compare_weights);
    for (size_t i = 0; i < c->count; i++) {
        const formats_deepspeed_weight *w = &c->weights[i];
        int64_t count = 0;
        if (i > 0 && strcmp(w->name, c->weights[i - 1].name) == 0)
            return base_fail(error, SIFR_FAILED, "%s: two parameters are called %.200s", c->folder,
                             w->name);
        for (size_t p = 0; p < w->pieces; p++) count += c->pieces[w->first_piece + p].count;
        if (count != w->elements)
            return base_fail(error, SIFR_FAILED,
                             "%s: of parameter %.200s there are %lld of %lld elements", c->folder,
                             w->name, (long long)count, (long long)w->elements);
    }
    return SIFR_OK;
}

sifr_status formats_deepspeed_open(const char *path, formats_deepspeed **out, sifr_error *error) {
    formats_deepspeed *c;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *c, &c, error));
    c->step = -1;
    sifr_status status = find_folder(c, path, error);
    if (status == SIFR_OK) status = read_folder(c, error);
    if (status == SIFR_OK) status = check_weights(c, error);
    if (status == SIFR_OK)
        *out = c;
    else
        formats_deepspeed_close(c);
    return status;
}

void formats_deepspeed_close(formats_deepspeed *c) {
    if (!c) return;
    for (size_t i = 0; i < c->tree_count; i++) formats_torch_tree_close(c->trees[i]);
    for (size_t i = 0; i < c->count; i++) free((char *)(uintptr_t)c->weights[i].name);
    free(c->trees);
    free(c->weights);
    free(c->pieces);
    free(c);
}

size_t formats_deepspeed_count(const formats_deepspeed *c) {
    return c->count;
}

const formats_deepspeed_weight *formats_deepspeed_at(const formats_deepspeed *c, size_t index) {
    return &c->weights[index];
}

int formats_deepspeed_stage(const formats_deepspeed *c) {
    return c->stage;
}

size_t formats_deepspeed_ranks(const formats_deepspeed *c) {
    return c->ranks;
}

int64_t formats_deepspeed_step(const formats_deepspeed *c) {
    return c->step;
}

const char *formats_deepspeed_folder(const formats_deepspeed *c) {
    return c->folder;
}

static void convert(const deepspeed_piece *piece, int64_t first, int64_t count, float *out) {
    if (piece->dtype == BASE_FP32) {
        memcpy(out, piece->data + first * 4, (size_t)count * 4);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, piece->data + (first + i) * 2, 2);
        out[i] = piece->dtype == BASE_BF16 ? base_bf16_to_float(half) : base_half_to_float(half);
    }
}

void formats_deepspeed_read(const formats_deepspeed *c, size_t index, int64_t first, int64_t count,
                            float *out) {
    const formats_deepspeed_weight *w = &c->weights[index];
    for (size_t p = 0; p < w->pieces && count > 0; p++) {
        const deepspeed_piece *piece = &c->pieces[w->first_piece + p];
        if (first >= piece->count) {
            first -= piece->count;
            continue;
        }
        int64_t here = base_min_i64(count, piece->count - first);
        convert(piece, first, here, out);
        out += here;
        count -= here;
        first = 0;
    }
}
