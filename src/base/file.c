#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/heap.h"

sifr_status base_path_join(char *out, const char *directory, const char *name, sifr_error *error) {
    size_t length = strlen(directory);
    const char *between = length && directory[length - 1] == '/' ? "" : "/";
    int used = snprintf(out, BASE_PATH_LENGTH, "%s%s%s", directory, between, name);
    if (used < 0 || used >= BASE_PATH_LENGTH) {
        return base_fail(error, SIFR_USAGE, "%.200s…: path longer than %d bytes", directory,
                         BASE_PATH_LENGTH - 1);
    }
    return SIFR_OK;
}

bool base_is_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool base_has_file(const char *directory, const char *name) {
    char path[BASE_PATH_LENGTH];
    return base_path_join(path, directory, name, NULL) == SIFR_OK && base_is_file(path);
}

bool base_is_directory(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

const char *base_home_hint(const char *path) {
    bool home = path[0] == '~' && (!path[1] || path[1] == '/');
    return home ? " (~ is your home folder in a shell alone: write the folder out)" : "";
}

sifr_status base_make_directories(const char *path, sifr_error *error) {
    char part[BASE_PATH_LENGTH];
    if (strlen(path) >= sizeof part) {
        return base_fail(error, SIFR_USAGE, "%.200s…: path longer than %d bytes", path,
                         BASE_PATH_LENGTH - 1);
    }
    strcpy(part, path);
    for (char *at = part + 1;; at++) {
        if (*at != '/' && *at != 0) continue;
        char end = *at;
        *at = 0;
        if (mkdir(part, 0777) != 0 && !(errno == EEXIST && base_is_directory(part))) {
            return base_fail_errno(error, errno, "%s: cannot create the directory", part);
        }
        *at = end;
        if (!end) return SIFR_OK;
    }
}

static sifr_status base_remove_at(int parent, const char *name, const char *path,
                                  sifr_error *error) {
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return SIFR_OK;
    if (errno != EISDIR && errno != EPERM) {
        return base_fail_errno(error, errno, "%s: cannot remove %s", path, name);
    }
    int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = directory < 0 ? NULL : fdopendir(directory);
    if (!stream) {
        int number = errno;
        if (directory >= 0) close(directory);
        return base_fail_errno(error, number, "%s: cannot remove %s", path, name);
    }
    sifr_status status = SIFR_OK;
    for (struct dirent *entry; status == SIFR_OK && (entry = readdir(stream));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        status = base_remove_at(directory, entry->d_name, path, error);
    }
    closedir(stream);
    if (status == SIFR_OK && unlinkat(parent, name, AT_REMOVEDIR) != 0) {
        return base_fail_errno(error, errno, "%s: cannot remove %s", path, name);
    }
    return status;
}

sifr_status base_remove_tree(const char *path, sifr_error *error) {
    return base_remove_at(AT_FDCWD, path, path, error);
}

static int base_compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

sifr_status base_list_directory(const char *path, char ***names, size_t *count, sifr_error *error) {
    char **list = NULL;
    size_t used = 0, capacity = 0;
    DIR *stream = opendir(path);
    if (!stream) return base_fail_errno(error, errno, "%s: cannot read the directory", path);
    sifr_status status = SIFR_OK;
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        BASE_TRY_GOTO(status, base_grow(&list, &capacity, used + 1, sizeof *list, error), fail);
        BASE_TRY_GOTO(
            status, base_copy_text(entry->d_name, strlen(entry->d_name), &list[used], error), fail);
        used++;
    }
    closedir(stream);
    if (used) qsort(list, used, sizeof *list, base_compare_names);
    *names = list;
    *count = used;
    return SIFR_OK;
fail:
    closedir(stream);
    base_free_names(list, used);
    return status;
}

void base_free_names(char **names, size_t count) {
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(names);
}

sifr_status base_open_read(const char *path, int *descriptor, uint64_t *size, sifr_error *error) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return base_fail_errno(error, errno, "%s: cannot open%s", path, base_home_hint(path));
    struct stat info;
    if (fstat(file, &info) != 0) {
        int number = errno;
        close(file);
        return base_fail_errno(error, number, "%s: cannot read", path);
    }
    if (!S_ISREG(info.st_mode)) {
        close(file);
        return base_fail(error, SIFR_FAILED, "%s: %s, not a regular file", path,
                         S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
    }
    *descriptor = file;
    *size = (uint64_t)info.st_size;
    return SIFR_OK;
}

sifr_status base_read_file(const char *path, size_t limit, char **data, size_t *size,
                           sifr_error *error) {
    int file;
    uint64_t bytes;
    BASE_TRY(base_open_read(path, &file, &bytes, error));
    char *block = NULL;
    sifr_status status;
    if (bytes > limit || bytes >= SIZE_MAX) {
        status = base_fail(error, SIFR_FAILED, "%s: %llu bytes, more than the limit of %zu", path,
                           (unsigned long long)bytes, limit);
        goto done;
    }
    BASE_TRY_GOTO(status, base_alloc((size_t)bytes + 1, 1, &block, error), done);
    size_t used = 0;
    while (used < bytes) {
        ssize_t got = read(file, block + used, (size_t)bytes - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = base_fail_errno(error, errno, "%s: cannot read", path);
            goto done;
        }
        if (got == 0) break; /* the file shrank meanwhile: return what is left */
        used += (size_t)got;
    }
    block[used] = 0;
    *data = block;
    *size = used;
    block = NULL;
done:
    free(block);
    close(file);
    return status;
}

sifr_status base_map_file(const char *path, base_map *map, sifr_error *error) {
    int file;
    uint64_t bytes;
    *map = (base_map){0};
    BASE_TRY(base_open_read(path, &file, &bytes, error));
    sifr_status status = SIFR_OK;
    if (bytes > SIZE_MAX / 2) {
        status = base_fail(error, SIFR_FAILED, "%s: too large to map", path);
    } else if (bytes) {
        void *data = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED) {
            status = base_fail_errno(error, errno, "%s: cannot map", path);
        } else {
            *map = (base_map){data, (size_t)bytes};
        }
    }
    close(file);
    return status;
}

void base_read_by_pieces(const base_map *map) {
    if (map->data) (void)madvise((void *)(uintptr_t)map->data, map->size, MADV_RANDOM);
}

void base_read_ahead(const void *data, size_t size) {
    uintptr_t at = (uintptr_t)data, page = (uintptr_t)sysconf(_SC_PAGESIZE),
              begin = at / page * page;
    (void)madvise((void *)begin, size + (at - begin), MADV_WILLNEED);
}

void base_unmap(base_map *map) {
    if (map->data) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (base_map){0};
}

sifr_status base_sync_directory(const char *path, sifr_error *error) {
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return base_fail_errno(error, errno, "%s: cannot open", path);
    int number = fsync(directory) == 0 ? 0 : errno;
    close(directory);
    /* Some file systems cannot sync a directory and return EINVAL: nothing more can be done. */
    if (number && number != EINVAL) return base_fail_errno(error, number, "%s: cannot sync", path);
    return SIFR_OK;
}

sifr_status base_free_space(const char *path, uint64_t *bytes, sifr_error *error) {
    struct statvfs info;
    if (statvfs(path, &info) != 0) {
        return base_fail_errno(error, errno, "%s: cannot read the free space", path);
    }
    *bytes = (uint64_t)info.f_bavail * info.f_frsize;
    return SIFR_OK;
}
