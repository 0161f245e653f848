#include "cli/launch/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

enum { ATTEMPTS = 100, NAME_LENGTH = 32 };

/* "run-HOST-": another machine may share the folder, but not each other's locks (Lustre). */
static void prefix_of(char out[NAME_LENGTH]) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    snprintf(out, NAME_LENGTH, "run-%08x-", (unsigned)base_hash(host, strlen(host)));
}

/* BASE/sifr-UID; false: too long. */
static bool parent_of(const char *base, char out[CLI_SESSION_LENGTH]) {
    int length = snprintf(out, CLI_SESSION_LENGTH, "%s/sifr-%u", base, (unsigned)geteuid());
    return length < CLI_SESSION_LENGTH;
}

static bool is_own(const struct stat *about) {
    return S_ISDIR(about->st_mode) && about->st_uid == geteuid() && !(about->st_mode & 022);
}

/* Others may have made a folder of this name before: what lies in it would be theirs to change. */
static bool is_own_folder(const char *path) {
    struct stat about;
    return lstat(path, &about) == 0 && is_own(&about);
}

/* The folder's descriptor with its lock; -1 where another has the lock, or has removed it. */
static int lock_folder(const char *path) {
    struct stat locked, there;
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0) return -1;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &locked) == 0 && is_own(&locked) &&
        lstat(path, &there) == 0 && there.st_dev == locked.st_dev && there.st_ino == locked.st_ino)
        return lock;
    int number = errno;
    close(lock);
    errno = number;
    return -1;
}

static sifr_status make_once(const char *parent, cli_session *out, sifr_error *error) {
    char prefix[NAME_LENGTH];
    prefix_of(prefix);
    if (mkdir(parent, 0700) != 0 && errno != EEXIST)
        return base_fail_errno(error, errno, "%s: cannot be made", parent);
    if (!is_own_folder(parent))
        return base_fail(error, SIFR_FAILED,
                         "%s: not a folder that only this user may write; remove it", parent);
    int length = snprintf(out->path, sizeof out->path, "%s/%sXXXXXX", parent, prefix);
    if (length >= (int)sizeof out->path)
        return base_fail(error, SIFR_USAGE, "%s: too long for sockets", parent);
    if (!mkdtemp(out->path))
        return base_fail_errno(error, errno, "%s: no folder can be made in it", parent);
    out->lock = lock_folder(out->path);
    if (out->lock >= 0) return SIFR_OK;
    sifr_status status = base_fail_errno(error, errno, "%s: cannot be locked", out->path);
    rmdir(out->path);
    return status;
}

sifr_status cli_session_make(const char *base, cli_session *out, sifr_error *error) {
    char parent[CLI_SESSION_LENGTH], prefix[NAME_LENGTH];
    sifr_status status = SIFR_OK;
    prefix_of(prefix);
    *out = (cli_session){.lock = -1};
    if (*base != '/' || !parent_of(base, parent) ||
        strlen(parent) + strlen(prefix) + sizeof "/XXXXXX" > sizeof out->path)
        return base_fail(error, SIFR_USAGE, "%s: not an absolute path, or too long for sockets",
                         base);
    for (int i = 0; i < ATTEMPTS; i++) { /* others may clean up what is not locked yet */
        status = make_once(parent, out, error);
        if (status == SIFR_OK) return SIFR_OK;
    }
    *out = (cli_session){.lock = -1};
    return status;
}

/* With its parent where that was the last one. */
static void remove_locked(const char *path, int lock) {
    char parent[CLI_SESSION_LENGTH];
    (void)!base_remove_tree(path, NULL); /* what is left, the next run removes */
    close(lock);
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    rmdir(parent);
}

void cli_session_remove(cli_session *session) {
    if (session->path[0]) remove_locked(session->path, session->lock);
    *session = (cli_session){.lock = -1};
}

int32_t cli_session_clean(const char *base) {
    char parent[CLI_SESSION_LENGTH], path[BASE_PATH_LENGTH], prefix[NAME_LENGTH], **names;
    size_t count;
    int32_t removed = 0;
    if (!parent_of(base, parent) || !is_own_folder(parent)) return 0;
    if (base_list_directory(parent, &names, &count, NULL) != SIFR_OK) return 0;
    prefix_of(prefix);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], prefix, strlen(prefix)) != 0) continue;
        if (base_path_join(path, parent, names[i], NULL) != SIFR_OK) continue;
        int lock = lock_folder(path);
        if (lock < 0) continue;
        remove_locked(path, lock);
        removed++;
    }
    base_free_names(names, count);
    return removed;
}
