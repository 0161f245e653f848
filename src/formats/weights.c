#include "formats/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder_file.h"
#include "base/heap.h"
#include "base/json.h"
#include "formats/folder.h"
#include "formats/fp8.h"
#include "formats/torch/torch_file.h"

enum { INDEX_FILE_LIMIT = 100000000, FILE_LIMIT = 10000 };

/* The two forms of weights: names of a folder's files. */
typedef struct weights_form {
    const char *single, *index, *ending;
} weights_form;

static const weights_form forms[] = {
    {"model.safetensors", "model.safetensors.index.json", ".safetensors"},
    {"pytorch_model.bin", "pytorch_model.bin.index.json", ".bin"},
};

enum { FORMS = sizeof forms / sizeof *forms };

/* An open file; one of the two owns what `tensors` points at. */
typedef struct weights_file {
    const formats_tensor *tensors;
    size_t count;
    formats_safetensors safetensors;
    formats_torch_file torch;
} weights_file;

struct formats_weights {
    weights_file *files;
    size_t file_count;
    const formats_tensor **tensors; /* of all files, sorted by name */
    size_t count;
    uint64_t bytes;
    int64_t total_size; /* as the index says; -1: it does not, or counts shared bytes otherwise */
    const char *index;  /* its file's name */
    size_t unnamed;     /* tensors that the index does not name */
    char first_unnamed[256];
    formats_scales *scales;
};

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const formats_index_entry *)a)->tensor,
                  ((const formats_index_entry *)b)->tensor);
}

/* Only names of files in the folder itself: no path, nothing that prints oddly. */
static bool is_bare_name(const char *name, const char *ending) {
    size_t length = strlen(name), end = strlen(ending);
    if (length <= end || length > 255) return false;
    if (strcmp(name + length - end, ending) != 0) return false;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F || name[i] == '/' || name[i] == '\\') {
            return false;
        }
    }
    return true;
}

static sifr_status read_index(formats_index *out, const char *ending, const char *name,
                              sifr_error *error) {
    json_t *json = out->json, *map = json_object_get(json, "weight_map"), *file;
    const json_t *metadata = json_object_get(json, "metadata");
    const char *tensor;
    if (!json_is_object(map) || json_object_size(map) == 0) {
        return base_fail(error, SIFR_FAILED, "%s: has no \"weight_map\" of tensors", name);
    }
    if (metadata && !json_is_object(metadata) && !json_is_null(metadata)) {
        return base_fail(error, SIFR_FAILED, "%s: \"metadata\" must be an object", name);
    }
    sifr_status status = base_json_int(metadata, "total_size", -1, &out->total_size, name, error);
    if (status == SIFR_OK && out->total_size < -1) {
        return base_fail(error, SIFR_FAILED, "%s: \"total_size\" is negative", name);
    }
    if (status != SIFR_OK) {
        if (error) error->status = SIFR_FAILED;
        return SIFR_FAILED;
    }
    BASE_TRY(base_alloc(json_object_size(map), sizeof *out->entries, &out->entries, error));
    json_object_foreach(map, tensor, file) {
        const char *bare = json_string_value(file);
        if (!bare || !is_bare_name(bare, ending)) {
            return base_fail(error, SIFR_FAILED,
                             "%s: tensor %.200s: \"%.200s\" is no name of a %s file in the same "
                             "folder",
                             name, tensor, bare ? bare : "(not a string)", ending);
        }
        out->entries[out->count++] = (formats_index_entry){tensor, bare};
    }
    qsort(out->entries, out->count, sizeof *out->entries, compare_entries);
    return SIFR_OK;
}

sifr_status formats_index_parse(const char *text, size_t size, const char *ending, const char *name,
                                formats_index *out, sifr_error *error) {
    json_t *json;
    *out = (formats_index){0};
    sifr_status status = base_json_parse(text, size, name, &json, error);
    if (status == SIFR_OK) {
        out->json = json;
        status = read_index(out, ending, name, error);
    } else if (status == SIFR_USAGE) {
        status = SIFR_FAILED;
        if (error) error->status = status;
    }
    if (status != SIFR_OK) formats_index_free(out);
    return status;
}

void formats_index_free(formats_index *index) {
    free(index->entries);
    json_decref(index->json);
    *index = (formats_index){0};
}

static int compare_strings(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_tensors(const void *a, const void *b) {
    return strcmp((*(const formats_tensor *const *)a)->name,
                  (*(const formats_tensor *const *)b)->name);
}

/* What the index says of the tensors in one of its files. */
static sifr_status check_shard(formats_weights *w, const formats_index *index,
                               const char *index_path, const char *name, const weights_file *file,
                               sifr_error *error) {
    for (size_t i = 0; i < file->count; i++) {
        formats_index_entry key = {file->tensors[i].name, NULL};
        const formats_index_entry *entry =
            bsearch(&key, index->entries, index->count, sizeof key, compare_entries);
        if (!entry) {
            if (w->unnamed++ == 0)
                snprintf(w->first_unnamed, sizeof w->first_unnamed, "%s", key.tensor);
            continue;
        }
        if (strcmp(entry->file, name) != 0) {
            return base_fail(error, SIFR_FAILED,
                             "%s: tensor %.200s lies in %s, but the index says %s", index_path,
                             key.tensor, name, entry->file);
        }
    }
    return SIFR_OK;
}

static sifr_status gather_tensors(formats_weights *w, sifr_error *error) {
    size_t total = 0;
    for (size_t f = 0; f < w->file_count; f++) total += w->files[f].count;
    BASE_TRY(base_alloc(total, sizeof *w->tensors, &w->tensors, error));
    for (size_t f = 0; f < w->file_count; f++) {
        for (size_t i = 0; i < w->files[f].count; i++) {
            w->tensors[w->count++] = &w->files[f].tensors[i];
            w->bytes += w->files[f].tensors[i].bytes;
        }
    }
    if (total) qsort(w->tensors, total, sizeof *w->tensors, compare_tensors);
    return SIFR_OK;
}

/* Every tensor of the index is there, and those that it does not name are there once. */
static sifr_status check_index(formats_weights *w, const formats_index *index, const char *path,
                               sifr_error *error) {
    for (size_t i = 0; i < index->count; i++) {
        if (!formats_weights_find(w, index->entries[i].tensor)) {
            return base_fail(error, SIFR_FAILED,
                             "%s: tensor %.200s is not in %s, where the index says it lies", path,
                             index->entries[i].tensor, index->entries[i].file);
        }
    }
    for (size_t i = 1; w->unnamed && i < w->count; i++) {
        if (strcmp(w->tensors[i - 1]->name, w->tensors[i]->name) == 0) {
            return base_fail(error, SIFR_FAILED,
                             "%s: tensor %.200s lies in two files, and the index does not say "
                             "which counts",
                             path, w->tensors[i]->name);
        }
    }
    /* transformers has counted tied weights once or twice in a .bin index, by its version. */
    w->total_size = strcmp(w->index, forms[0].index) == 0 ? index->total_size : -1;
    return SIFR_OK;
}

void formats_weights_warn(const formats_weights *w, const sifr_log *log) {
    if (w->unnamed)
        base_log(log, SIFR_LOG_WARNING,
                 "%s does not list %zu tensor%s of its files, %.200s%s; read anyway", w->index,
                 w->unnamed, w->unnamed == 1 ? "" : "s", w->first_unnamed,
                 w->unnamed == 1 ? "" : " first");
    if (w->total_size >= 0 && (uint64_t)w->total_size != w->bytes)
        base_log(log, SIFR_LOG_WARNING,
                 "%s: \"total_size\" is %lld, but the tensors take %llu bytes: is the folder "
                 "whole, and of one model?",
                 w->index, (long long)w->total_size, (unsigned long long)w->bytes);
}

static bool ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static sifr_status open_file(weights_file *file, const char *path, sifr_error *error) {
    if (ends_with(path, ".bin")) {
        BASE_TRY(formats_torch_open(path, &file->torch, error));
        file->tensors = file->torch.tensors;
        file->count = file->torch.count;
    } else {
        BASE_TRY(formats_safetensors_open(path, &file->safetensors, error));
        file->tensors = file->safetensors.tensors;
        file->count = file->safetensors.count;
    }
    return SIFR_OK;
}

static sifr_status open_shards(formats_weights *w, const char *directory,
                               const formats_index *index, const char *index_path,
                               sifr_error *error) {
    sifr_status status = SIFR_OK;
    const char **names = NULL;
    size_t count = 0;
    char path[BASE_PATH_LENGTH];
    BASE_TRY(base_alloc(index->count, sizeof *names, &names, error));
    for (size_t i = 0; i < index->count; i++) names[i] = index->entries[i].file;
    qsort(names, index->count, sizeof *names, compare_strings);
    for (size_t i = 0; i < index->count; i++) {
        if (count == 0 || strcmp(names[count - 1], names[i]) != 0) names[count++] = names[i];
    }
    if (count > FILE_LIMIT) {
        status = base_fail(error, SIFR_FAILED, "%s: names %zu files, more than the limit of %d",
                           index_path, count, FILE_LIMIT);
        goto done;
    }
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *w->files, &w->files, error), done);
    for (size_t i = 0; i < count; i++) {
        BASE_TRY_GOTO(status, base_path_join(path, directory, names[i], error), done);
        if (access(path, F_OK) != 0) {
            status =
                base_fail(error, SIFR_FAILED,
                          "%s: missing, though the index names it: download the whole model", path);
            goto done;
        }
        BASE_TRY_GOTO(status, base_folder_file(directory, names[i], path, error), done);
        BASE_TRY_GOTO(status, open_file(&w->files[i], path, error), done);
        w->file_count++;
        BASE_TRY_GOTO(status, check_shard(w, index, index_path, names[i], &w->files[i], error),
                      done);
    }
done:
    free(names);
    return status;
}

static sifr_status open_index(formats_weights *w, const char *directory, const char *index_path,
                              const char *ending, sifr_error *error) {
    char *text;
    size_t size;
    formats_index index;
    BASE_TRY(base_read_file(index_path, INDEX_FILE_LIMIT, &text, &size, error));
    sifr_status status = formats_index_parse(text, size, ending, index_path, &index, error);
    free(text);
    if (status != SIFR_OK) return status;
    BASE_TRY_GOTO(status, open_shards(w, directory, &index, index_path, error), done);
    BASE_TRY_GOTO(status, gather_tensors(w, error), done);
    status = check_index(w, &index, index_path, error);
done:
    formats_index_free(&index);
    return status;
}

static sifr_status open_single(formats_weights *w, const char *path, sifr_error *error) {
    BASE_TRY(base_alloc(1, sizeof *w->files, &w->files, error));
    BASE_TRY(open_file(&w->files[0], path, error));
    w->file_count = 1;
    return gather_tensors(w, error);
}

static bool holds(const char *directory, const char *name) {
    char path[BASE_PATH_LENGTH];
    return base_path_join(path, directory, name, NULL) == SIFR_OK && access(path, F_OK) == 0;
}

bool formats_weights_there(const char *directory) {
    bool there = false;
    for (int i = 0; i < FORMS; i++)
        there |= holds(directory, forms[i].single) || holds(directory, forms[i].index);
    return there;
}

static sifr_status open_form(formats_weights *w, const char *directory, const weights_form *form,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    bool single = holds(directory, form->single);
    w->index = form->index;
    BASE_TRY(base_path_join(path, directory, single ? form->single : form->index, error));
    if (!single) return open_index(w, directory, path, form->ending, error);
    if (holds(directory, form->index))
        return base_fail(error, SIFR_FAILED,
                         "%s: holds both %s and %s; remove the one that is not wanted", directory,
                         form->single, form->index);
    return open_single(w, path, error);
}

static sifr_status open_bound(formats_weights *w, const char *directory, const weights_form *form,
                              sifr_error *error) {
    BASE_TRY(open_form(w, directory, form, error));
    return formats_fp8_bind(directory, w->tensors, w->count, &w->scales, error);
}

static sifr_status open_folder(formats_weights *w, const char *directory, sifr_error *error) {
    for (int i = 0; i < FORMS; i++) {
        if (holds(directory, forms[i].single) || holds(directory, forms[i].index))
            return open_bound(w, directory, &forms[i], error);
    }
    return base_fail(error, SIFR_FAILED,
                     "%s: holds neither model.safetensors nor model.safetensors.index.json, nor "
                     "the like of pytorch_model.bin: not a model folder, or incomplete",
                     directory);
}

sifr_status formats_weights_open(const char *path, formats_weights **out, sifr_error *error) {
    formats_weights *w = NULL;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *w, &w, error));
    w->total_size = -1;
    sifr_status status =
        base_is_directory(path) ? open_folder(w, path, error) : open_single(w, path, error);
    if (status != SIFR_OK) {
        formats_weights_close(w);
        return status;
    }
    *out = w;
    return SIFR_OK;
}

void formats_weights_close(formats_weights *weights) {
    if (!weights) return;
    for (size_t f = 0; f < weights->file_count; f++) {
        formats_safetensors_close(&weights->files[f].safetensors);
        formats_torch_close(&weights->files[f].torch);
    }
    free(weights->files);
    free((void *)weights->tensors);
    free(weights->scales);
    free(weights);
}

size_t formats_weights_count(const formats_weights *weights) {
    return weights->count;
}

const formats_tensor *formats_weights_at(const formats_weights *weights, size_t position) {
    return weights->tensors[position];
}

const formats_tensor *formats_weights_find(const formats_weights *weights, const char *name) {
    formats_tensor wanted = {.name = name};
    const formats_tensor *key = &wanted;
    if (!weights->count) return NULL;
    const formats_tensor **found =
        bsearch(&key, weights->tensors, weights->count, sizeof key, compare_tensors);
    return found ? *found : NULL;
}

uint64_t formats_weights_bytes(const formats_weights *weights) {
    return weights->bytes;
}

size_t formats_weights_file_count(const formats_weights *weights) {
    return weights->file_count;
}
