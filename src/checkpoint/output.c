#include "checkpoint/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"

/* Whether the folder holds results of a run. */
static sifr_status check_results(const char *path, sifr_error *error) {
    int64_t *steps;
    size_t count;
    BASE_TRY(checkpoint_list(path, &steps, &count, error));
    int64_t newest = count ? steps[0] : 0;
    free(steps);
    if (count)
        return base_fail(error, SIFR_USAGE,
                         "%s: holds a run with a checkpoint of step %lld; give --resume to "
                         "continue it, or another --output to start a new run",
                         path, (long long)newest);
    if (base_has_file(path, "adapter_model.safetensors"))
        return base_fail(error, SIFR_USAGE,
                         "%s: holds a trained adapter; give another --output, or remove it", path);
    if (base_has_file(path, "model.safetensors") ||
        base_has_file(path, "model.safetensors.index.json"))
        return base_fail(error, SIFR_USAGE,
                         "%s: holds a trained model; give another --output, or remove it", path);
    return SIFR_OK;
}

static sifr_status check_folder(const char *path, const char *model, bool resume,
                                checkpoint_output *out, sifr_error *error) {
    struct stat info, other;
    char **names;
    size_t count;
    if (!path[0]) return base_fail(error, SIFR_USAGE, "--output is empty: name the run's folder");
    if (stat(path, &info) != 0) {
        if (errno == ENOENT) return SIFR_OK;
        return base_fail_errno(error, errno, "%s: cannot look into the output folder", path);
    }
    if (!S_ISDIR(info.st_mode))
        return base_fail(error, SIFR_USAGE, "%s: not a folder; give a new or empty --output", path);
    if (model && stat(model, &other) == 0 && other.st_dev == info.st_dev &&
        other.st_ino == info.st_ino)
        return base_fail(error, SIFR_USAGE, "%s: --output is the model folder itself; give another",
                         path);
    out->there = true;
    out->marked = base_has_file(path, CHECKPOINT_OUTPUT_MARK);
    if (out->marked) return resume ? SIFR_OK : check_results(path, error);
    BASE_TRY(base_list_directory(path, &names, &count, error));
    sifr_status status = SIFR_OK;
    size_t first = 0;
    /* A run that was killed while it claimed the folder left only the temporary file of the mark.
     */
    while (first < count && strncmp(names[first], CHECKPOINT_OUTPUT_MARK ".tmp-",
                                    sizeof CHECKPOINT_OUTPUT_MARK ".tmp-" - 1) == 0)
        first++;
    if (first < count)
        status = base_fail(
            error, SIFR_USAGE,
            "%s: holds '%.60s', which is not part of a run of sifr; give a new or empty folder",
            path, names[first]);
    base_free_names(names, count);
    return status;
}

static sifr_status check(const char *path, const char *model, bool resume, checkpoint_output *out,
                         sifr_error *error) {
    char stores[BASE_PATH_LENGTH];
    checkpoint_output checked = {.path = path, .lock = -1};
    *out = (checkpoint_output){0};
    BASE_TRY(base_path_join(stores, path, CHECKPOINT_OUTPUT_DATA, error));
    BASE_TRY(check_folder(path, model, resume, &checked, error));
    if (base_is_directory(stores))
        BASE_TRY(base_list_directory(stores, &checked.stores, &checked.store_count, error));
    *out = checked;
    return SIFR_OK;
}

/* *held is false if the folder does not exist or its file system has no locks. */
static sifr_status try_lock(checkpoint_output *output, bool *held, sifr_error *error) {
    *held = false;
    int directory = open(output->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 && errno == ENOENT) return SIFR_OK;
    if (directory < 0) return base_fail_errno(error, errno, "%s: cannot open", output->path);
    if (flock(directory, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(directory);
        *held = true;
        return SIFR_OK;
    }
    output->lock = directory;
    return SIFR_OK;
}

sifr_status checkpoint_output_lock(checkpoint_output *output, double patience, const sifr_log *log,
                                   bool *waited, sifr_error *error) {
    base_assert(patience >= 0);
    const struct timespec pause = {.tv_nsec = 100000000};
    bool held = false;
    if (waited) *waited = false;
    if (output->lock >= 0) return SIFR_OK;
    BASE_TRY(try_lock(output, &held, error));
    if (held && patience > 0)
        base_log(log, SIFR_LOG_INFO,
                 "%s: in use by another sifr train, perhaps ranks of a killed run that are about "
                 "to end; waiting up to %.0f s",
                 output->path, patience);
    for (double left = patience; held && left > 0; left -= 0.1) {
        if (waited) *waited = true;
        nanosleep(&pause, NULL);
        BASE_TRY(try_lock(output, &held, error));
    }
    if (!held) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: in use by another sifr train; wait for it to end, or give another folder",
                     output->path);
}

sifr_status checkpoint_output_open(const char *path, const char *model, bool resume,
                                   double patience, const sifr_log *log, checkpoint_output *out,
                                   sifr_error *error) {
    bool waited;
    BASE_TRY(check(path, model, resume, out, error));
    sifr_status status = checkpoint_output_lock(out, patience, log, &waited, error);
    if (status == SIFR_OK && waited) { /* the run that held the folder may have left results */
        checkpoint_output fresh;
        status = check(path, model, resume, &fresh, error);
        if (status == SIFR_OK) {
            fresh.lock = out->lock;
            out->lock = -1;
            checkpoint_output_close(out);
            *out = fresh;
        }
    }
    if (status != SIFR_OK) checkpoint_output_close(out);
    return status;
}

sifr_status checkpoint_output_claim(checkpoint_output *output, double patience, const sifr_log *log,
                                    sifr_error *error) {
    BASE_TRY(base_make_directories(output->path, error));
    if (output->lock >= 0) return SIFR_OK;
    output->others = true; /* until this run has the lock, and finds nobody's mark */
    BASE_TRY(checkpoint_output_lock(output, patience, log, NULL, error));
    if (base_has_file(output->path, CHECKPOINT_OUTPUT_MARK))
        return base_fail(error, SIFR_FAILED,
                         "%s: another sifr train began in it at the same time; give another folder",
                         output->path);
    output->others = false;
    return SIFR_OK;
}

void checkpoint_output_close(checkpoint_output *output) {
    if (!output->path) return;
    if (output->lock >= 0) close(output->lock);
    base_free_names(output->stores, output->store_count);
    *output = (checkpoint_output){0};
}

static bool was_there(const checkpoint_output *output, const char *name) {
    for (size_t i = 0; i < output->store_count; i++) {
        if (strcmp(output->stores[i], name) == 0) return true;
    }
    return false;
}

/* Removes token stores that were not there before. */
static void remove_stores(const checkpoint_output *output, const char *directory) {
    char path[BASE_PATH_LENGTH], **names;
    size_t count;
    if (!base_is_directory(directory) ||
        base_list_directory(directory, &names, &count, NULL) != SIFR_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!was_there(output, names[i]) &&
            base_path_join(path, directory, names[i], NULL) == SIFR_OK)
            unlink(path);
    }
    base_free_names(names, count);
    rmdir(directory); /* only if it is empty */
}

void checkpoint_output_undo(const checkpoint_output *output) {
    char path[BASE_PATH_LENGTH];
    if (!output->path || output->others) return;
    if (base_path_join(path, output->path, CHECKPOINT_OUTPUT_DATA, NULL) == SIFR_OK)
        remove_stores(output, path);
    if (output->marked) return;
    if (base_path_join(path, output->path, CHECKPOINT_OUTPUT_MARK, NULL) == SIFR_OK) unlink(path);
    if (!output->there) rmdir(output->path); /* likewise */
}
