#include "base/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

/* Replaces a path by its parent: "a/b" by "a", "a" by the working directory. */
static void strip(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash)
        memcpy(path, ".", sizeof ".");
    else
        slash[slash == path] = '\0';
}

sifr_status base_disk_find(const char *path, base_disk *out, sifr_error *error) {
    char at[BASE_PATH_LENGTH];
    struct stat info;
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return base_fail(error, SIFR_USAGE, "%.60s…: too long for a path", path);
    while (stat(at, &info) != 0) {
        bool top = strcmp(at, "/") == 0 || strcmp(at, ".") == 0;
        if (errno != ENOENT || top)
            return base_fail_errno(error, errno, "%s: cannot find its file system", at);
        strip(at);
    }
    out->id = (uint64_t)info.st_dev;
    return base_free_space(at, &out->free_bytes, error);
}
