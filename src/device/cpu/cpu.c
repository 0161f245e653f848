#include "device/cpu/cpu.h"

#include <dnnl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/topology.h"
#include "device/cpu/product/product.h"

sifr_status device_open_cpu(int threads, const char *isa, device **out, sifr_error *error) {
    const cpu_set *set = cpu_set_find(isa);
    if (!set) {
        return base_fail(error, SIFR_USAGE,
                         "instruction set \"%s\": unknown, or this processor lacks it; "
                         "avx512_bf16, avx512, avx2 and plain are built",
                         isa ? isa : "");
    }
    if (threads < 0 || threads > 1024) {
        return base_fail(error, SIFR_USAGE, "threads: %d is not in 0 to 1024", threads);
    }
    device *dev;
    BASE_TRY(base_alloc(1, sizeof *dev, &dev, error));
    dev->set = set;
    if (threads == 0) threads = base_topology_threads(1);
    sifr_status status = cpu_team_create(threads, &dev->team, error);
    if (status == SIFR_OK) status = cpu_products_open(threads, set->matrix, &dev->products, error);
    if (status != SIFR_OK) {
        device_close(dev);
        return status;
    }
    *out = dev;
    return SIFR_OK;
}

sifr_status device_open_separate(int threads, const char *isa, device **out, sifr_error *error) {
    device *dev;
    BASE_TRY(device_open_cpu(threads, isa, &dev, error));
    sifr_status status = cpu_separate_open(&dev->separate, error);
    if (status != SIFR_OK) {
        device_close(dev);
        return status;
    }
    *out = dev;
    return SIFR_OK;
}

bool device_is_separate(const device *dev) {
    return dev->separate != NULL;
}

void device_close(device *dev) {
    if (!dev) return;
    cpu_separate_close(dev->separate);
    cpu_team_free(dev->team);
    cpu_products_close(dev->products);
    free(dev);
}

int device_threads(const device *dev) {
    return cpu_team_threads(dev->team);
}

void device_parallel(device *dev, int64_t tiles,
                     void (*run)(void *argument, int64_t tile, int thread), void *argument) {
    cpu_parallel(dev->team, tiles, run, argument);
}

const char *device_isa(const device *dev) {
    return dev->set->name;
}

sifr_status device_prepare(device *dev, device_call *call, sifr_error *error) {
    const cpu_row *row = cpu_row_of(call->kernel);
    if (!row->run) {
        return base_fail(error, SIFR_USAGE, "kernel %s: not supported on the CPU",
                         device_kernel_name(call->kernel));
    }
    call->scratch_bytes = 0;
    call->prepared = NULL;
    return row->prepare ? row->prepare(dev, call, error) : SIFR_OK;
}

sifr_status device_run(device *dev, const device_call *call, sifr_error *error) {
    if (dev->separate) BASE_TRY(cpu_separate_check(dev->separate, call, error));
    return cpu_row_of(call->kernel)->run(dev, call, error);
}

enum { TOUCH = 1 << 21 };

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

static void touch(void *block, int64_t tile, int thread) {
    (void)thread;
    *((volatile char *)block + tile * TOUCH) = 0;
}

/* Maps `size` bytes, a multiple of TOUCH, at a huge page's boundary. */
static char *find_room(size_t size) {
    char *block = mmap(NULL, size + TOUCH, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return NULL;
    size_t before = (TOUCH - (uintptr_t)block % TOUCH) % TOUCH;
    if (before) munmap(block, before);
    munmap(block + before + size, TOUCH - before);
    return block + before;
}

/* Counts a block that was taken; gives it back on failure. */
static sifr_status note_block(device *dev, void *block, int64_t bytes, bool host,
                              sifr_error *error) {
    if (!dev->separate) return SIFR_OK;
    sifr_status status = cpu_separate_add(dev->separate, block, bytes, host, error);
    if (status != SIFR_OK) device_give(dev, block, bytes);
    return status;
}

static sifr_status take(device *dev, int64_t bytes, bool host, void **out, sifr_error *error) {
    size_t size = ((size_t)bytes + TOUCH - 1) / TOUCH * TOUCH;
    char *block = find_room(size);
    if (!block) return base_fail_alloc(error, bytes);
    madvise(block, size, MADV_HUGEPAGE);
    cpu_parallel(dev->team, (int64_t)(size / TOUCH), touch, block);
    BASE_TRY(note_block(dev, block, bytes, host, error));
    *out = block;
    return SIFR_OK;
}

sifr_status device_take(device *dev, int64_t bytes, void **out, sifr_error *error) {
    return take(dev, bytes, false, out, error);
}

sifr_status device_take_host(device *dev, int64_t bytes, void **out, sifr_error *error) {
    return take(dev, bytes, true, out, error);
}

typedef struct shared_block {
    char *at;
    int file;
    _Atomic bool refused;
} shared_block;

/* Allocates one page first, since holes are not collapsed into huge pages. MADV_COLLAPSE gives huge
 * pages even if the system's default for shared memory (shmem_enabled) is "never", as it often
 * is. */
static void touch_shared(void *user, int64_t tile, int thread) {
    shared_block *block = user;
    off_t at = (off_t)(tile * TOUCH);
    (void)thread;
    if (fallocate(block->file, 0, at, 4096) == 0 &&
        madvise(block->at + at, TOUCH, MADV_COLLAPSE) == 0)
        return;
    if (fallocate(block->file, 0, at, TOUCH) != 0) block->refused = true;
}

sifr_status device_take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    size_t size = ((size_t)bytes + TOUCH - 1) / TOUCH * TOUCH;
    shared_block block = {.file = memfd_create("sifr", MFD_CLOEXEC)};
    if (block.file < 0) return base_fail_errno(error, errno, "cannot create shared memory");
    block.at = ftruncate(block.file, (off_t)size) == 0 ? find_room(size) : NULL;
    if (!block.at) goto refused;
    if (mmap(block.at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block.file, 0) ==
        MAP_FAILED)
        goto unmap;
    cpu_parallel(dev->team, (int64_t)(size / TOUCH), touch_shared, &block);
    if (block.refused) goto unmap;
    sifr_status status = note_block(dev, block.at, bytes, false, error);
    if (status != SIFR_OK) {
        close(block.file);
        return status;
    }
    *out = block.at;
    *file = block.file;
    return SIFR_OK;
unmap:
    munmap(block.at, size);
refused:
    close(block.file);
    return base_fail_alloc(error, bytes);
}

void device_give(device *dev, void *block, int64_t bytes) {
    if (dev->separate) cpu_separate_remove(dev->separate, block);
    munmap(block, ((size_t)bytes + TOUCH - 1) / TOUCH * TOUCH);
}

sifr_status device_copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    if (dev->separate) return cpu_separate_copy(dev->separate, to, from, bytes, error);
    memcpy(to, from, (size_t)bytes);
    return SIFR_OK;
}

device_counts device_count(const device *dev) {
    return dev->separate ? cpu_separate_count(dev->separate) : (device_counts){0};
}

void device_describe(const device *dev, char *out, size_t size) {
    const dnnl_version_t *dnnl = dnnl_version();
    snprintf(out, size, "%s, L1 %ld, L2 %ld, oneDNN %d.%d.%d of set %x", dev->set->name,
             sysconf(_SC_LEVEL1_DCACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE), dnnl->major,
             dnnl->minor, dnnl->patch, (unsigned)dnnl_get_effective_cpu_isa());
}
