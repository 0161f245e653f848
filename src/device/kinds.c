/* The table of kinds, and the functions of kinds.h by its rows. */
#include "device/kinds.h"

#include <dlfcn.h>
#include <string.h>

#include "base/assert.h"
#include "device/backend.h"

/* "auto" is settled by callers (engine/check/device_choice.h), and the CPU here. */
static const struct {
    const char *name;
    const device_kind *row;
} kinds[] = {[SIFR_DEVICE_AUTO] = {"auto", &device_kind_cpu},
             [SIFR_DEVICE_CPU] = {"cpu", &device_kind_cpu},
             [SIFR_DEVICE_CUDA] = {"cuda", &device_kind_cuda}};

enum { KINDS = sizeof kinds / sizeof *kinds };

const char *device_kind_name(sifr_device kind) {
    base_assert((int)kind >= 0 && (int)kind < KINDS);
    return kinds[kind].name;
}

bool device_kind_find(const char *name, sifr_device *out) {
    for (int i = 0; i < KINDS; i++) {
        *out = (sifr_device)i;
        if (strcmp(name, kinds[i].name) == 0) return true;
    }
    return false;
}

sifr_status device_open(sifr_device kind, const device_place *place, int threads, const char *isa,
                        device **out, sifr_error *error) {
    base_assert((int)kind >= 0 && (int)kind < KINDS);
    return kinds[kind].row->open(place, threads, isa, out, error);
}

device_build device_build_of(sifr_device kind) {
    const device_kind *row = kinds[kind].row;
    return row->build ? row->build() : (device_build){.targets = ""};
}

static sifr_status fail_no_gpus(sifr_device kind, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "device %s is no kind of GPU (supported: %s)",
                     kinds[kind].name, kinds[SIFR_DEVICE_CUDA].name);
}

sifr_status device_choose(sifr_device kind, int32_t rank, device_found *out, sifr_error *error) {
    const device_kind *row = kinds[kind].row;
    return row->choose ? row->choose(rank, out, error) : fail_no_gpus(kind, error);
}

bool device_is_there(sifr_device kind) {
    const device_kind *row = kinds[kind].row;
    return !row->is_there || row->is_there();
}

sifr_status device_survey(sifr_device kind, device_driver *driver,
                          void (*each)(void *argument, const device_gpu *gpu), void *argument,
                          sifr_error *error) {
    const device_kind *row = kinds[kind].row;
    *driver = (device_driver){0};
    return row->survey ? row->survey(driver, each, argument, error) : fail_no_gpus(kind, error);
}

sifr_status device_open_described(sifr_device kind, int threads,
                                  const device_description *description, device **out,
                                  sifr_error *error) {
    base_assert(threads >= 1);
    const device_kind *row = kinds[kind].row;
    if (row->open_described) return row->open_described(threads, description, out, error);
    return base_fail(error, SIFR_USAGE,
                     "device %s: a described device of this kind is not supported yet (supported: "
                     "%s)",
                     kinds[kind].name, kinds[SIFR_DEVICE_CUDA].name);
}

const char *device_library_name(sifr_device kind, int number) {
    const device_kind *row = kinds[kind].row;
    return row->library_name ? row->library_name(number) : NULL;
}

sifr_status device_library_open(sifr_device kind, const char *name, int driver, device_library *out,
                                sifr_error *error) {
    const char *known;
    for (int i = 0; (known = device_library_name(kind, i)); i++)
        if (strcmp(name, known) == 0) return kinds[kind].row->open_library(i, driver, out, error);
    return base_fail(error, SIFR_FAILED, "device %s has no library %s", kinds[kind].name, name);
}

void *device_library_symbol(const device_library *library, const char *symbol) {
    return dlsym(library->handle, symbol);
}
