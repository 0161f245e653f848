#include "train/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "checkpoint/checkpoint.h"

static bool is_there(const char *directory, const char *name) {
    char path[BASE_PATH_LENGTH];
    return base_path_join(path, directory, name, NULL) == SIFR_OK && base_is_file(path);
}

/* Something that a run of long hours may have left here. */
static sifr_status check_results(const char *path, sifr_error *error) {
    int64_t *steps;
    size_t count;
    BASE_TRY(checkpoint_list(path, &steps, &count, error));
    int64_t newest = count ? steps[0] : 0;
    free(steps);
    if (count)
        return base_fail(
            error, SIFR_USAGE,
            "%s: holds a run with a checkpoint of step %lld; --resume goes on with it, "
            "another --output starts anew",
            path, (long long)newest);
    if (is_there(path, "model.safetensors") || is_there(path, "model.safetensors.index.json"))
        return base_fail(error, SIFR_USAGE,
                         "%s: holds a trained model; name another --output, or remove it", path);
    return SIFR_OK;
}

sifr_status train_output_check(const char *path, const char *model, bool resume, train_output *out,
                               sifr_error *error) {
    struct stat info, other;
    char **names;
    size_t count;
    *out = (train_output){.path = path};
    if (stat(path, &info) != 0) {
        if (errno == ENOENT) return SIFR_OK;
        return base_fail_errno(error, errno, "%s: cannot look into the output folder", path);
    }
    if (!S_ISDIR(info.st_mode))
        return base_fail(error, SIFR_USAGE, "%s: not a folder; --output names a new or empty one",
                         path);
    if (model && stat(model, &other) == 0 && other.st_dev == info.st_dev &&
        other.st_ino == info.st_ino)
        return base_fail(error, SIFR_USAGE, "%s: --output is the model folder itself; name another",
                         path);
    out->there = true;
    out->marked = is_there(path, TRAIN_OUTPUT_MARK);
    if (out->marked) return resume ? SIFR_OK : check_results(path, error);
    BASE_TRY(base_list_directory(path, &names, &count, error));
    sifr_status status = SIFR_OK;
    if (count)
        status = base_fail(error, SIFR_USAGE,
                           "%s: holds '%.60s', which is no part of a run of sifr; name a new or "
                           "empty folder",
                           path, names[0]);
    base_free_names(names, count);
    return status;
}

void train_output_undo(const train_output *output) {
    char **names, path[BASE_PATH_LENGTH];
    size_t count;
    if (!output->path || output->marked || !base_is_directory(output->path)) return;
    if (!output->there) {
        if (base_remove_tree(output->path, NULL) != SIFR_OK) return;
        return;
    }
    if (base_list_directory(output->path, &names, &count, NULL) != SIFR_OK) return;
    for (size_t i = 0; i < count; i++) {
        if (base_path_join(path, output->path, names[i], NULL) != SIFR_OK) continue;
        if (base_remove_tree(path, NULL) != SIFR_OK) break;
    }
    base_free_names(names, count);
}
