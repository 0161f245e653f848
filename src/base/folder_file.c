#include "base/folder_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Is `path` below `directory`? Both as realpath gives them. */
static bool lies_below(const char *path, const char *directory) {
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* A hub cache holds <model>/snapshots/<revision>/file -> ../../blobs/<hash>. */
static bool lies_in_blobs(const char *path, const char *directory) {
    char blobs[BASE_PATH_LENGTH + 8];
    strcpy(blobs, directory);
    char *revision = strrchr(blobs, '/');
    if (!revision || revision == blobs) return false;
    *revision = 0;
    char *snapshots = strrchr(blobs, '/');
    if (!snapshots || strcmp(snapshots, "/snapshots") != 0) return false;
    strcpy(snapshots, "/blobs");
    return lies_below(path, blobs);
}

sifr_status base_folder_file(const char *directory, const char *name, char path[BASE_PATH_LENGTH],
                             sifr_error *error) {
    char folder[BASE_PATH_LENGTH], target[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(path, directory, name, error));
    if (!realpath(directory, folder)) {
        return base_fail_errno(error, errno, "%s: cannot read", directory);
    }
    if (!realpath(path, target)) return base_fail_errno(error, errno, "%s: cannot open", path);
    if (lies_below(target, folder) || lies_in_blobs(target, folder)) return SIFR_OK;
    return base_fail(
        error, SIFR_FAILED,
        "%s: a link that leads out of its folder, to %.200s; replace it by the file itself", path,
        target);
}
