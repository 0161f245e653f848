#include "checkpoint/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"

/* The step in "checkpoint-<step>", or -1. */
static int64_t step_of(const char *name) {
    static const char prefix[] = "checkpoint-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    const char *digits = name + sizeof prefix - 1;
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > 18 || digits[length] || (digits[0] == '0' && length > 1)) return -1;
    return strtoll(digits, NULL, 10);
}

static int newest_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

sifr_status checkpoint_list(const char *output, int64_t **steps, size_t *count, sifr_error *error) {
    char **names;
    size_t name_count;
    *steps = NULL;
    *count = 0;
    if (!base_is_directory(output)) return SIFR_OK;
    BASE_TRY(base_list_directory(output, &names, &name_count, error));
    sifr_status status = base_alloc(name_count + 1, sizeof **steps, steps, error);
    for (size_t i = 0; status == SIFR_OK && i < name_count; i++) {
        int64_t step = step_of(names[i]);
        if (step >= 0) (*steps)[(*count)++] = step;
    }
    if (*count) qsort(*steps, *count, sizeof **steps, newest_first);
    base_free_names(names, name_count);
    return status;
}

sifr_status checkpoint_clean(const char *output, sifr_error *error) {
    char **names, path[BASE_PATH_LENGTH];
    size_t count;
    if (!base_is_directory(output)) return SIFR_OK;
    BASE_TRY(base_list_directory(output, &names, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        if (!strstr(names[i], ".tmp-")) continue;
        status = base_path_join(path, output, names[i], error);
        if (status == SIFR_OK) status = base_remove_tree(path, error);
    }
    base_free_names(names, count);
    return status;
}

void checkpoint_name(int64_t step, checkpoint_names *out) {
    base_assert(step >= 0);
    *out = (checkpoint_names){0};
    snprintf(out->final, sizeof out->final, "checkpoint-%lld", (long long)step);
    snprintf(out->temporary, sizeof out->temporary, "checkpoint-%lld.tmp-%ld", (long long)step,
             (long)getpid());
}

static sifr_status check_space(const char *output, uint64_t bytes, int64_t beside,
                               sifr_error *error) {
    uint64_t capacity;
    char need[32], have[32], model[32], kept[96] = "";
    BASE_TRY(base_free_space(output, &capacity, error));
    /* Half of the reserve that a start checks for, since logs and copied files have taken their
     * part by now. */
    uint64_t wanted = bytes + (bytes / 64 + (1 << 20)) / 2;
    if (capacity >= wanted && capacity - wanted >= (uint64_t)beside) return SIFR_OK;
    if (beside)
        snprintf(kept, sizeof kept, ", and %s are kept for the trained model",
                 base_format_bytes((uint64_t)beside, model));
    return base_fail(error, SIFR_FAILED,
                     "%s: a checkpoint needs %s of free disk%s: %s are free; free some space, or "
                     "keep fewer checkpoints with save_total_limit",
                     output, base_format_bytes(wanted, need), kept,
                     base_format_bytes(capacity, have));
}

sifr_status checkpoint_directory_make(const char *output, const checkpoint_names *names,
                                      uint64_t bytes, int64_t beside, sifr_error *error) {
    base_assert(beside >= 0);
    char path[BASE_PATH_LENGTH];
    BASE_TRY(base_make_directories(output, error));
    BASE_TRY(base_path_join(path, output, names->temporary, error));
    BASE_TRY(check_space(output, bytes, beside, error));
    BASE_TRY(base_remove_tree(path, error));
    return base_make_directories(path, error);
}

sifr_status checkpoint_directory_wait(const char *output, const char *name, sifr_error *error) {
    enum { LOOKS = 60 };
    const struct timespec between = {.tv_nsec = 50000000}; /* 3 s in all */
    char path[BASE_PATH_LENGTH], host[256] = "";
    BASE_TRY(base_path_join(path, output, name, error));
    for (int i = 0; i < LOOKS; i++) {
        if (base_is_directory(path)) return SIFR_OK;
        nanosleep(&between, NULL);
    }
    gethostname(host, sizeof host - 1);
    return base_fail(error, SIFR_FAILED,
                     "%s: rank 0 made this folder, but host %s does not see it; the output must be "
                     "on a file system that all hosts share",
                     path, host);
}

static sifr_status exchange(const char *temporary, const char *final, const char *output,
                            sifr_error *error) {
    bool there = base_is_directory(final);
    int failed = there ? renameat2(AT_FDCWD, temporary, AT_FDCWD, final, RENAME_EXCHANGE)
                       : rename(temporary, final);
    if (failed && there && errno == EINVAL) { /* the file system cannot exchange two names */
        BASE_TRY(base_remove_tree(final, error));
        there = false;
        failed = rename(temporary, final);
    }
    if (failed) return base_fail_errno(error, errno, "%s: cannot rename to this name", final);
    BASE_TRY(base_sync_directory(output, error));
    return there ? base_remove_tree(temporary, error) : SIFR_OK;
}

sifr_status checkpoint_directory_place(const char *output, const checkpoint_names *names,
                                       sifr_error *error) {
    char final[BASE_PATH_LENGTH], temporary[BASE_PATH_LENGTH], latest[BASE_PATH_LENGTH];
    char line[sizeof names->final + 1];
    BASE_TRY(base_path_join(final, output, names->final, error));
    BASE_TRY(base_path_join(temporary, output, names->temporary, error));
    BASE_TRY(base_path_join(latest, output, "latest", error));
    BASE_TRY(exchange(temporary, final, output, error));
    snprintf(line, sizeof line, "%s\n", names->final);
    return base_write_file(latest, line, strlen(line), error);
}

/* A folder is renamed before it is removed, so that a partly removed checkpoint is never seen. */
static sifr_status remove_checkpoint(const char *output, int64_t step, sifr_error *error) {
    char path[BASE_PATH_LENGTH], temporary[BASE_PATH_LENGTH];
    checkpoint_names names;
    checkpoint_name(step, &names);
    BASE_TRY(base_path_join(path, output, names.final, error));
    BASE_TRY(base_path_join(temporary, output, names.temporary, error));
    if (rename(path, temporary) != 0)
        return base_fail_errno(error, errno, "%s: cannot remove the old checkpoint", path);
    return base_remove_tree(temporary, error);
}

sifr_status checkpoint_prune(const char *output, int64_t newest, int64_t keep, sifr_error *error) {
    int64_t *steps, kept = 0;
    size_t count;
    if (keep <= 0) return SIFR_OK;
    BASE_TRY(checkpoint_list(output, &steps, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        if (steps[i] > newest || ++kept <= keep) continue;
        status = remove_checkpoint(output, steps[i], error);
    }
    free(steps);
    return status;
}
