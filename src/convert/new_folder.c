#include "convert/new_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/text.h"

sifr_status convert_new_folder_check(convert_new_folder *folder, const char *destination,
                                     sifr_error *error) {
    char **names;
    size_t length = strlen(destination), count;
    while (length > 1 && destination[length - 1] == '/') length--;
    if (length == 0 || length + 32 > sizeof folder->destination)
        return base_fail(error, SIFR_USAGE, "'%.60s': not a path for a model folder", destination);
    memcpy(folder->destination, destination, length);
    if (access(folder->destination, F_OK) != 0) return SIFR_OK;
    if (!base_is_directory(folder->destination))
        return base_fail(error, SIFR_USAGE, "%s: not a folder; name a new folder",
                         folder->destination);
    BASE_TRY(base_list_directory(folder->destination, &names, &count, error));
    base_free_names(names, count);
    if (count == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: not empty, and nothing is overwritten; name a new folder, or empty this "
                     "one",
                     folder->destination);
}

sifr_status convert_new_folder_space(const convert_new_folder *folder, uint64_t bytes,
                                     sifr_error *error) {
    char need[32], have[32];
    base_disk disk;
    uint64_t wanted = bytes + bytes / 64 + (1 << 20);
    BASE_TRY(base_disk_find(folder->destination, &disk, error));
    if (disk.free_bytes >= wanted) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the model needs %s of disk space, and %s are free; free some, or name a "
                     "folder on a larger disk",
                     folder->destination, base_format_bytes(wanted, need),
                     base_format_bytes(disk.free_bytes, have));
}

sifr_status convert_new_folder_make(convert_new_folder *folder, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    int used = snprintf(path, sizeof path, "%s.tmp-%ld", folder->destination, (long)getpid());
    if (used < 0 || (size_t)used >= sizeof path)
        return base_fail(error, SIFR_USAGE, "%s: the path is too long", folder->destination);
    BASE_TRY(base_remove_tree(path, error)); /* left by a killed run with the same process id */
    BASE_TRY(base_make_directories(path, error));
    memcpy(folder->temporary, path, sizeof path);
    return SIFR_OK;
}

sifr_status convert_new_folder_place(convert_new_folder *folder, sifr_error *error) {
    char parent[BASE_PATH_LENGTH];
    BASE_TRY(base_sync_directory(folder->temporary, error));
    if (rename(folder->temporary, folder->destination) != 0)
        return base_fail_errno(error, errno, "%s: cannot rename to this name", folder->destination);
    folder->temporary[0] = '\0';
    memcpy(parent, folder->destination, sizeof parent);
    char *slash = strrchr(parent, '/');
    if (!slash)
        memcpy(parent, ".", 2);
    else
        slash[slash == parent] = '\0';
    return base_sync_directory(parent, error);
}

void convert_new_folder_drop(convert_new_folder *folder, const sifr_log *log) {
    if (folder->temporary[0] && base_remove_tree(folder->temporary, NULL) != SIFR_OK)
        base_log(log, SIFR_LOG_WARNING, "%s: could not be removed", folder->temporary);
    folder->temporary[0] = '\0';
}
