/* GPUs, their driver, and NVIDIA's libraries. A machine without any lacks nothing. */
#include "cli/doctor_gpu.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "device/kinds.h"

static const sifr_device kind = SIFR_DEVICE_CUDA;

static void put(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static void advise(json_t *report, const char *text) {
    json_array_append_new(json_object_get(report, "advice"), json_string(text));
}

/* What the kernel's half of the driver shows, also where the other half is missing. */
static int count_device_files(void) {
    int devices = 0;
    DIR *directory = opendir("/dev");
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        const char *name = entry->d_name;
        if (strncmp(name, "nvidia", 6) == 0 && name[6] >= '0' && name[6] <= '9') devices++;
    }
    if (directory) closedir(directory);
    return devices;
}

static json_t *version_text(int version) {
    return json_sprintf("%d.%d", version / 1000, version % 1000 / 10);
}

static json_t *describe_gpu(const device_gpu *gpu) {
    json_t *out = json_object();
    put(out, "name", json_string(gpu->name));
    put(out, "uuid", json_string(gpu->uuid));
    put(out, "bus", json_string(gpu->bus));
    put(out, "compute_capability",
        json_sprintf("%d.%d", gpu->capability_major, gpu->capability_minor));
    put(out, "multiprocessors", json_integer(gpu->multiprocessors));
    put(out, "memory_bytes", json_integer((json_int_t)gpu->memory));
    return out;
}

typedef struct gpu_lister {
    json_t *report, *list;
} gpu_lister;

static void list_gpu(void *argument, const device_gpu *gpu) {
    const gpu_lister *lister = argument;
    const int least = device_build_of(kind).least_capability;
    char text[256];
    json_array_append_new(lister->list, describe_gpu(gpu));
    if (gpu->capability_major >= least) return;
    snprintf(text, sizeof text,
             "%s has compute capability %d.%d, and sifr's kernels need %d.0; train on the CPU",
             gpu->name, gpu->capability_major, gpu->capability_minor, least);
    advise(lister->report, text);
}

/* Returns the version that the driver serves, 0 if it does not. */
static int examine_driver(json_t *report, json_t *gpu, int device_files) {
    device_driver driver;
    sifr_error error = {0};
    gpu_lister lister = {report, json_array()};
    put(gpu, "gpus", lister.list);
    sifr_status status = device_survey(kind, &driver, list_gpu, &lister, &error);
    if (driver.version > 0) {
        put(gpu, "driver", version_text(driver.version));
        put(gpu, "driver_library", json_string(driver.path));
    }
    if (status == SIFR_OK) return driver.version;
    put(gpu, "driver_error", json_string(error.message));
    if (device_files > 0) advise(report, error.message);
    return 0;
}

static void examine_library(json_t *list, const char *name, int driver) {
    device_library library;
    sifr_error error = {0};
    json_t *out = json_object();
    put(out, "name", json_string(name));
    if (device_library_open(kind, name, driver, &library, &error) == SIFR_OK) {
        put(out, "release",
            library.major ? json_sprintf("%d.%d.%d", library.major, library.minor, library.patch)
                          : json_null());
        put(out, "path", json_string(library.path));
        put(out, "found_in", json_string(library.place));
    } else {
        put(out, "error", json_string(error.message));
    }
    json_array_append_new(list, out);
}

void doctor_examine_gpus(json_t *report) {
    json_t *gpu = json_object(), *libraries = json_array();
    const int device_files = count_device_files();
    const device_build build = device_build_of(kind);
    const char *name;
    put(gpu, "devices", json_integer(device_files));
    put(gpu, "built_with_cuda", build.version ? version_text(build.version) : json_null());
    put(gpu, "built_for", json_string(build.targets));
    const int driver = examine_driver(report, gpu, device_files);
    for (int i = 0; (name = device_library_name(kind, i)); i++)
        examine_library(libraries, name, driver);
    put(gpu, "libraries", libraries);
    if (driver > 0 && build.version == 0)
        advise(report, "there is a GPU, and this program has no kernels for GPUs, so it trains on "
                       "the CPU; build it with `make CUDA=1`");
    put(report, "gpu", gpu);
}

static const char *text_of(const json_t *object, const char *key, const char *absent) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && text[0] ? text : absent;
}

void doctor_print_gpus(const json_t *gpu) {
    const json_t *list = json_object_get(gpu, "gpus"), *entry;
    char memory[32];
    size_t i;
    json_array_foreach(list, i, entry)
        printf("GPU            %s: compute capability %s, %s, %s\n",
               text_of(entry, "name", "unknown"), text_of(entry, "compute_capability", "unknown"),
               base_format_bytes(
                   (uint64_t)json_integer_value(json_object_get(entry, "memory_bytes")), memory),
               text_of(entry, "uuid", ""));
    const json_int_t devices = json_integer_value(json_object_get(gpu, "devices"));
    const char *use = devices > 0 ? "" : "needed only with a GPU: ";
    if (json_array_size(list) == 0) {
        if (devices > 0)
            printf("GPU            %lld in /dev, none usable\n", (long long)devices);
        else
            printf("GPU            none; not needed\n");
    }
    if (json_object_get(gpu, "driver_error"))
        printf("CUDA driver    %s%s\n", use, text_of(gpu, "driver_error", ""));
    else
        printf("CUDA driver    CUDA %s, %s\n", text_of(gpu, "driver", ""),
               text_of(gpu, "driver_library", ""));
    if (text_of(gpu, "built_with_cuda", NULL))
        printf("CUDA kernels   compiled by CUDA %s for %s\n", text_of(gpu, "built_with_cuda", ""),
               text_of(gpu, "built_for", ""));
    else
        printf("CUDA kernels   none%s%ssifr was built without CUDA; `make CUDA=1` builds it with\n",
               devices > 0 ? ": " : "; ", use);
    json_array_foreach(json_object_get(gpu, "libraries"), i, entry) {
        printf("%-14s ", text_of(entry, "name", ""));
        if (json_object_get(entry, "error"))
            printf("none\n");
        else
            printf("%s, %s (%s)\n", text_of(entry, "release", "version unknown"),
                   text_of(entry, "path", ""), text_of(entry, "found_in", ""));
    }
}
