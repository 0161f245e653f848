#include "engine/store/swap_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "sifr-swap-";
static const char lock_name[] = "lock", state_name[] = "state";

enum { MARK_LENGTH = 320, ATTEMPTS = 4 };

/* The contents of a lock file of this host. */
static size_t mark_of(char mark[MARK_LENGTH]) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return (size_t)snprintf(mark, MARK_LENGTH, "sifr swap on %s\n", host);
}

/* Locked before the mark is written; without a mark, clean-up leaves it alone. */
static sifr_status make_lock(engine_swap_directory *d, sifr_error *error) {
    char path[BASE_PATH_LENGTH], mark[MARK_LENGTH];
    size_t length = mark_of(mark);
    BASE_TRY(base_path_join(path, d->path, lock_name, error));
    d->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (d->lock < 0) return base_fail_errno(error, errno, "%s: cannot make the directory", path);
    if (flock(d->lock, LOCK_EX) != 0) return base_fail_errno(error, errno, "%s: cannot lock", path);
    return base_write_all(d->lock, mark, length, path, error);
}

static sifr_status make_once(const char *parent, int32_t rank, engine_swap_directory *d,
                             sifr_error *error) {
    char name[64];
    *d = (engine_swap_directory){.lock = -1};
    snprintf(name, sizeof name, "%srank%d-XXXXXX", prefix, (int)rank);
    BASE_TRY(base_path_join(d->path, parent, name, error));
    if (!mkdtemp(d->path)) {
        sifr_status status =
            base_fail_errno(error, errno, "%s: cannot make a directory in it", parent);
        d->path[0] = '\0';
        return status;
    }
    BASE_TRY(base_path_join(d->state, d->path, state_name, error));
    return make_lock(d, error);
}

sifr_status engine_swap_directory_check(const char *parent, sifr_error *error) {
    if (base_is_directory(parent)) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "%s: there is no such directory; make it on the disk that is to hold the state", parent);
}

sifr_status engine_swap_directory_make(const char *parent, int32_t rank, engine_swap_directory *out,
                                       sifr_error *error) {
    sifr_error last = {0};
    *out = (engine_swap_directory){.lock = -1};
    BASE_TRY(engine_swap_directory_check(parent, error));
    for (int i = 0; i < ATTEMPTS;
         i++) { /* another run may remove the directory while it is empty */
        if (make_once(parent, rank, out, &last) == SIFR_OK) return SIFR_OK;
        engine_swap_directory_remove(out);
    }
    if (error) *error = last;
    return last.status;
}

static void remove_in(const char *directory, const char *name) {
    char path[BASE_PATH_LENGTH];
    if (base_path_join(path, directory, name, NULL) == SIFR_OK) unlink(path);
}

void engine_swap_directory_remove(engine_swap_directory *d) {
    if (!d->path[0]) return;
    remove_in(d->path, state_name);
    remove_in(d->path, lock_name);
    rmdir(d->path);
    if (d->lock >= 0) close(d->lock);
    *d = (engine_swap_directory){.lock = -1};
}

static bool is_own_directory(const char *path) {
    struct stat about;
    return lstat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid();
}

/* Takes the lock of a run that has ended; -1 if that is not certain. */
static int take_over(const char *directory) {
    char path[BASE_PATH_LENGTH], mark[MARK_LENGTH], found[MARK_LENGTH];
    size_t length = mark_of(mark);
    struct stat about;
    if (base_path_join(path, directory, lock_name, NULL) != SIFR_OK) return -1;
    int lock = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (lock < 0) return -1;
    bool dead =
        fstat(lock, &about) == 0 && S_ISREG(about.st_mode) && flock(lock, LOCK_EX | LOCK_NB) == 0 &&
        read(lock, found, sizeof found) == (ssize_t)length && memcmp(found, mark, length) == 0;
    if (dead) return lock;
    close(lock);
    return -1;
}

int32_t engine_swap_directory_clean(const char *parent) {
    char **names = NULL;
    size_t count = 0;
    int32_t removed = 0;
    if (base_list_directory(parent, &names, &count, NULL) != SIFR_OK) return 0;
    for (size_t i = 0; i < count; i++) {
        engine_swap_directory d = {.lock = -1};
        if (strncmp(names[i], prefix, sizeof prefix - 1) != 0) continue;
        if (base_path_join(d.path, parent, names[i], NULL) != SIFR_OK) continue;
        if (!is_own_directory(d.path)) continue;
        d.lock = take_over(d.path);
        if (d.lock < 0) {
            removed += rmdir(d.path) ==
                       0; /* a run that died before it made its lock leaves an empty directory */
            continue;
        }
        engine_swap_directory_remove(&d);
        removed++;
    }
    base_free_names(names, count);
    return removed;
}
