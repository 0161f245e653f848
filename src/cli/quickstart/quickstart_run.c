#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/quickstart/quickstart.h"

/* "q.json" and "-run": "q-run". */
const char *quickstart_beside(quickstart_answers *a, const char *ending, sifr_error *error) {
    size_t length = strlen(a->output);
    if (length > 5 && strcmp(a->output + length - 5, ".json") == 0) length -= 5;
    return quickstart_keep(a, a->output, length, ending, error);
}

static bool is_same(const struct stat *a, const char *path) {
    struct stat b;
    return stat(path, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

static sifr_status check_there(const char *path, const struct stat *there, const char *model,
                               sifr_error *error) {
    char **names;
    size_t count;
    if (!S_ISDIR(there->st_mode))
        return base_fail(error, SIFR_USAGE, "--run %s: not a folder; give a new or empty one",
                         path);
    if (model && is_same(there, model))
        return base_fail(error, SIFR_USAGE, "--run %s: the model folder itself; give another",
                         path);
    BASE_TRY(base_list_directory(path, &names, &count, error));
    base_free_names(names, count);
    if (count)
        return base_fail(error, SIFR_USAGE,
                         "--run %s: holds files, perhaps a run; give a new or empty folder", path);
    if (access(path, W_OK | X_OK) == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--run %s: cannot be written; give another folder", path);
}

/* The nearest folder above that is there has to take a new one. */
static sifr_status check_above(const char *path, sifr_error *error) {
    char above[BASE_PATH_LENGTH], lower[BASE_PATH_LENGTH];
    struct stat about;
    for (const char *below = path;; below = memcpy(lower, above, sizeof lower)) {
        BASE_TRY(quickstart_parent(below, "run", above, error));
        if (lstat(above, &about) == 0 || errno != ENOENT) break;
    }
    if (access(above, W_OK | X_OK) == 0 && base_is_directory(above)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "--run %s: cannot be made in %s; give a path in a folder that can be written",
                     path, above);
}

static sifr_status check(const quickstart_answers *a, sifr_error *error) {
    const char *path = a->run;
    struct stat about;
    if (!path[0]) return base_fail(error, SIFR_USAGE, "--run is empty: name the run's folder");
    if (!quickstart_is_utf8(path))
        return base_fail(error, SIFR_USAGE,
                         "--run %s: not UTF-8, which a config has to be; give another folder",
                         path);
    if (a->output &&
        (quickstart_is_within(path, a->output) || quickstart_is_within(a->output, path)))
        return base_fail(error, SIFR_USAGE,
                         "--run %s: in the way of the config, %s; give another folder", path,
                         a->output);
    if (stat(path, &about) == 0) return check_there(path, &about, a->model, error);
    if (errno != ENOENT)
        return base_fail_errno(error, errno, "--run %s: cannot look into it", path);
    if (lstat(path, &about) == 0)
        return base_fail(error, SIFR_USAGE,
                         "--run %s: a link to what is not there; give a new or empty folder", path);
    return check_above(path, error);
}

sifr_status quickstart_check_run(const quickstart_answers *a, sifr_error *error) {
    return a->run ? check(a, error) : SIFR_OK;
}

sifr_status quickstart_choose_run(quickstart_answers *a, sifr_error *error) {
    enum { MOST = 100 };
    sifr_status status = SIFR_OK;
    if (a->run) return check(a, error);
    for (int i = 1; i <= MOST; i++) {
        char ending[32];
        snprintf(ending, sizeof ending, i > 1 ? "-run-%d" : "-run", i);
        a->run = quickstart_beside(a, ending, error);
        if (!a->run) return SIFR_NO_MEMORY;
        status = check(a, error);
        if (status == SIFR_OK) return status;
    }
    return status;
}
