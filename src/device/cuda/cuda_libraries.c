#include "device/cuda/cuda_libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FILES = 2 };

/* Later versions first. `cuda` is the major version that a file's driver must serve. */
static const struct {
    const char *name, *remedy, *version_symbol;
    struct {
        const char *name;
        int cuda;
    } files[MOST_FILES];
} kinds[CUDA_LIBRARY_KINDS] = {
    [CUDA_LIBRARY_LT] = {"cuBLASLt",
                         "pip install nvidia-cublas",
                         "cublasLtGetVersion",
                         {{"libcublasLt.so.13", 13}, {"libcublasLt.so.12", 12}}},
    [CUDA_LIBRARY_NCCL] = {"NCCL",
                           "pip install nvidia-nccl-cu13",
                           "ncclGetVersion",
                           {{"libnccl.so.2", 0}}},
};

const char *cuda_library_name(cuda_library_kind kind) {
    return kinds[kind].name;
}

/* 13.0.2 is 130002 and 2.28.9 is 22809; NCCL up to 2.8 wrote 2.8.4 as 2804. */
static void read_version(cuda_library_kind kind, device_library *library) {
    int version = 0;
    void *function = dlsym(library->handle, kinds[kind].version_symbol);
    if (!function) return;
    if (kind == CUDA_LIBRARY_LT) {
        size_t (*get)(void);
        memcpy(&get, &function, sizeof get);
        version = (int)get();
    } else {
        int (*get)(int *);
        memcpy(&get, &function, sizeof get);
        if (get(&version) != 0) return;
    }
    int major = kind == CUDA_LIBRARY_NCCL && version < 10000 ? 1000 : 10000;
    library->major = version / major;
    library->minor = version % major / 100;
    library->patch = version % 100;
}

static bool load(cuda_library_kind kind, const char *path, const char *place, device_library *out) {
    struct link_map *map = NULL;
    out->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!out->handle) return false;
    if (dlinfo(out->handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0])
        path = map->l_name;
    snprintf(out->path, sizeof out->path, "%s", path);
    out->place = place;
    read_version(kind, out);
    return true;
}

static bool load_in(cuda_library_kind kind, const char *folder, int length, const char *file,
                    const char *place, device_library *out) {
    char path[PATH_MAX];
    int used = snprintf(path, sizeof path, "%.*s/%s", length, folder, file);
    return length > 0 && used < PATH_MAX && base_is_file(path) && load(kind, path, place, out);
}

static bool load_listed(cuda_library_kind kind, const char *file, device_library *out) {
    const char *list = getenv("SIFR_CUDA_LIBRARIES");
    for (const char *at = list ? list : ""; *at;) {
        int length = (int)strcspn(at, ":");
        if (load_in(kind, at, length, file, "SIFR_CUDA_LIBRARIES", out)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

static bool load_beside_program(cuda_library_kind kind, const char *file, device_library *out) {
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0) return false;
    folder[length] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(folder, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    const size_t used = strlen(folder);
    if (used + sizeof "/lib/sifr/cuda" > sizeof folder) return false;
    strcpy(folder + used, "/lib/sifr/cuda");
    return load_in(kind, folder, (int)strlen(folder), file, "sifr's own folder", out);
}

static bool load_matching(cuda_library_kind kind, const char *pattern, device_library *out) {
    glob_t found;
    bool loaded = false;
    if (glob(pattern, GLOB_BRACE, NULL, &found) != 0) return false;
    for (size_t i = 0; i < found.gl_pathc && !loaded; i++)
        loaded = load(kind, found.gl_pathv[i], "python3's packages", out);
    globfree(&found);
    return loaded;
}

/* Where NVIDIA's wheels lie below the python3 that PATH finds, without running it. */
static bool load_of_python(cuda_library_kind kind, const char *file, device_library *out) {
    static const char below[] = "python3*/{site,dist}-packages/nvidia/*/lib";
    char path[PATH_MAX];
    const char *list = getenv("PATH"), *home = getenv("HOME");
    for (const char *at = list ? list : ""; *at;) {
        int length = (int)strcspn(at, ":");
        int used = snprintf(path, sizeof path, "%.*s/python3", length, at);
        if (length > 0 && used < PATH_MAX && access(path, X_OK) == 0) {
            used = snprintf(path, sizeof path, "%.*s/../lib/%s/%s", length, at, below, file);
            if (used < PATH_MAX && load_matching(kind, path, out)) return true;
            break;
        }
        at += length + (at[length] == ':');
    }
    snprintf(path, sizeof path, "/usr/local/lib/%s/%s", below, file);
    if (load_matching(kind, path, out)) return true;
    return home &&
           snprintf(path, sizeof path, "%s/.local/lib/%s/%s", home, below, file) < PATH_MAX &&
           load_matching(kind, path, out);
}

sifr_status cuda_library_open(cuda_library_kind kind, int driver, device_library *out,
                              sifr_error *error) {
    static const char toolkit[] = "/usr/local/cuda/lib64";
    const char *wanted = NULL;
    for (int i = 0; i < MOST_FILES && kinds[kind].files[i].name; i++) {
        const char *file = kinds[kind].files[i].name;
        if (driver > 0 && kinds[kind].files[i].cuda > driver / 1000) continue;
        if (!wanted) wanted = file;
        *out = (device_library){0};
        if (load_listed(kind, file, out) || load(kind, file, "the loader's path", out) ||
            load_in(kind, toolkit, sizeof toolkit - 1, file, toolkit, out) ||
            load_beside_program(kind, file, out) || load_of_python(kind, file, out))
            return SIFR_OK;
    }
    *out = (device_library){0};
    return base_fail(error, SIFR_FAILED,
                     "%s (%s) was not found; install it (%s), or name its folder in "
                     "SIFR_CUDA_LIBRARIES",
                     kinds[kind].name, wanted ? wanted : "for an older driver", kinds[kind].remedy);
}
