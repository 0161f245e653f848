#include "train/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "checkpoint/model_source.h"
#include "train/output.h"

typedef struct export_run {
    checkpoint_model model;
    char destination[BASE_PATH_LENGTH];
    char temporary[BASE_PATH_LENGTH]; /* beside it; "": not made */
    float *piece;                     /* of a weight */
} export_run;

/* The folder's final path, without trailing slashes, and the temporary name that it is made under.
 */
static sifr_status check_destination(export_run *run, const char *destination, sifr_error *error) {
    char **names;
    size_t length = strlen(destination), count;
    while (length > 1 && destination[length - 1] == '/') length--;
    if (length == 0 || length + 32 > sizeof run->destination)
        return base_fail(error, SIFR_USAGE, "'%.60s': not a path for a model folder", destination);
    memcpy(run->destination, destination, length);
    if (access(run->destination, F_OK) != 0) return SIFR_OK;
    if (!base_is_directory(run->destination))
        return base_fail(error, SIFR_USAGE, "%s: not a folder; name a new folder",
                         run->destination);
    BASE_TRY(base_list_directory(run->destination, &names, &count, error));
    base_free_names(names, count);
    if (count == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: not empty, and nothing is overwritten; name a new folder, or empty this "
                     "one",
                     run->destination);
}

static sifr_status count_bytes(const export_run *run, uint64_t *out, sifr_error *error) {
    const checkpoint_model *m = &run->model;
    *out = 0;
    for (size_t i = 0; i < m->stored.count; i++) {
        const engine_stored_tensor *tensor = &m->stored.tensors[i];
        const model_weight *w = &m->folder.model->weights[tensor->weight];
        int64_t bytes;
        if (!base_mul_i64(w->rows * w->columns, base_dtype_bytes(tensor->dtype), &bytes))
            return base_fail(error, SIFR_FAILED, "tensor %s: too large", tensor->name);
        *out += (uint64_t)bytes;
    }
    return SIFR_OK;
}

static sifr_status check_room(const export_run *run, uint64_t bytes, sifr_error *error) {
    char need[32], have[32];
    base_disk disk;
    uint64_t wanted = bytes + bytes / 64 + (1 << 20);
    BASE_TRY(base_disk_find(run->destination, &disk, error));
    if (disk.free_bytes >= wanted) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the model needs %s of disk space, and %s are free; free some, or name a "
                     "folder on a larger disk",
                     run->destination, base_format_bytes(wanted, need),
                     base_format_bytes(disk.free_bytes, have));
}

static sifr_status make_temporary(export_run *run, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    int used = snprintf(path, sizeof path, "%s.tmp-%ld", run->destination, (long)getpid());
    if (used < 0 || (size_t)used >= sizeof path)
        return base_fail(error, SIFR_USAGE, "%s: the path is too long", run->destination);
    BASE_TRY(base_remove_tree(path, error)); /* left by a killed export with the same process id */
    BASE_TRY(base_make_directories(path, error));
    memcpy(run->temporary, path, sizeof path);
    return SIFR_OK;
}

/* Copies everything but the weights and a run's own files. */
static sifr_status carry_files(const export_run *run, sifr_error *error) {
    static const char *const records[] = {TRAIN_OUTPUT_MARK,    "latest",
                                          "metrics.jsonl",      "metrics.csv",
                                          "trainer_state.json", "manifest.json"};
    char path[BASE_PATH_LENGTH];
    BASE_TRY(formats_folder_carry(run->model.files, run->temporary, NULL, NULL, error));
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        BASE_TRY(base_path_join(path, run->temporary, records[i], error));
        BASE_TRY(base_remove_tree(path, error));
    }
    return SIFR_OK;
}

static sifr_status give(void *user, size_t weight, int64_t first, int64_t count, const float **out,
                        sifr_error *error) {
    const export_run *run = user;
    (void)error;
    checkpoint_model_values(&run->model, weight, first, count, run->piece);
    *out = run->piece;
    return SIFR_OK;
}

/* Replaces an empty folder of that name; fails if the folder is no longer empty. */
static sifr_status place(export_run *run, sifr_error *error) {
    char parent[BASE_PATH_LENGTH];
    BASE_TRY(base_sync_directory(run->temporary, error));
    if (rename(run->temporary, run->destination) != 0)
        return base_fail_errno(error, errno, "%s: cannot rename to this name", run->destination);
    run->temporary[0] = '\0';
    memcpy(parent, run->destination, sizeof parent);
    char *slash = strrchr(parent, '/');
    if (!slash)
        memcpy(parent, ".", 2);
    else
        slash[slash == parent] = '\0';
    return base_sync_directory(parent, error);
}

static sifr_status write_model(export_run *run, train_exported *out, sifr_error *error) {
    const checkpoint_model *m = &run->model;
    BASE_TRY(count_bytes(run, &out->bytes, error));
    BASE_TRY(check_room(run, out->bytes, error));
    BASE_TRY(base_alloc((size_t)engine_piece_elements(), sizeof *run->piece, &run->piece, error));
    BASE_TRY(make_temporary(run, error));
    BASE_TRY(carry_files(run, error));
    BASE_TRY(engine_write_folder(m->folder.model, &m->stored, give, run, run->temporary, error));
    return place(run, error);
}

sifr_status train_export(const char *source, const char *destination, const sifr_log *log,
                         train_exported *out, sifr_error *error) {
    export_run *run;
    *out = (train_exported){.step = -1};
    BASE_TRY(base_alloc(1, sizeof *run, &run, error));
    sifr_status status = check_destination(run, destination, error);
    if (status == SIFR_OK) status = checkpoint_model_open(source, &run->model, log, error);
    if (status == SIFR_OK) {
        const checkpoint_model *m = &run->model;
        memcpy(out->from, m->path, sizeof out->from);
        out->step = m->step;
        out->parameters = sifr_model_parameters(m->folder.model);
        engine_folder_warn(&m->folder, log);
        if (!m->typed)
            base_log(log, SIFR_LOG_WARNING,
                     "%s: made by an older sifr, which did not record the types of the model's "
                     "tensors; they are written in fp32",
                     m->path);
        status = write_model(run, out, error);
    }
    if (run->temporary[0] && base_remove_tree(run->temporary, NULL) != SIFR_OK)
        base_log(log, SIFR_LOG_WARNING, "%s: could not be removed", run->temporary);
    checkpoint_model_close(&run->model);
    free(run->piece);
    free(run);
    return status;
}
