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

#include "base/assert.h"
#include "base/heap.h"
#include "base/topology.h"
#include "device/cpu/cpu_folds.h"
#include "device/cpu/limits.h"
#include "device/cpu/product/product.h"

static void close_cpu(device *dev) {
    host_team_free(dev->team);
    cpu_products_close(cpu_of(dev)->products);
    free(dev);
}

static const char *isa(const device *dev) {
    return cpu_of(dev)->set->name;
}

static void describe(const device *dev, char *out, size_t size) {
    const dnnl_version_t *dnnl = dnnl_version();
    snprintf(out, size, "%s, L1 %ld, L2 %ld, oneDNN %d.%d.%d of set %x", isa(dev),
             sysconf(_SC_LEVEL1_DCACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE), dnnl->major,
             dnnl->minor, dnnl->patch, (unsigned)dnnl_get_effective_cpu_isa());
}

static void only_plan(device *dev) {
    cpu_products_only_describe(cpu_of(dev)->products);
}

enum { TOUCH = 1 << 21 };

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

/* Whole pages, so that a block takes the planned bytes. Its end, shorter than a huge page, has
 * small pages. */
static size_t size_of(int64_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return ((size_t)bytes + page - 1) / page * page;
}

static int64_t tiles_of(size_t size) {
    return (int64_t)((size + TOUCH - 1) / TOUCH);
}

typedef struct own_block {
    char *at;
    size_t size;
} own_block;

static void touch(void *user, int64_t tile, int thread) {
    const own_block *block = user;
    size_t at = (size_t)tile * TOUCH, page = (size_t)sysconf(_SC_PAGESIZE);
    base_assert(at < block->size);
    (void)thread;
    *(volatile char *)(block->at + at) = 0;
    if (block->size - at >= TOUCH) return;
    for (; at < block->size; at += page) *(volatile char *)(block->at + at) = 0;
}

/* Maps `size` bytes, whole pages, at a huge page's boundary. */
static char *find_space(size_t size) {
    char *block = mmap(NULL, size + TOUCH, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return NULL;
    size_t before = (TOUCH - (uintptr_t)block % TOUCH) % TOUCH;
    if (before) munmap(block, before);
    munmap(block + before + size, TOUCH - before);
    return block + before;
}

static sifr_status take(device *dev, device_memory kind, int64_t bytes, void **out,
                        sifr_error *error) {
    (void)kind; /* one memory */
    own_block block = {.size = size_of(bytes)};
    block.at = find_space(block.size);
    if (!block.at) return base_fail_alloc(error, bytes);
    madvise(block.at, block.size, MADV_HUGEPAGE);
    host_parallel(dev->team, tiles_of(block.size), touch, &block);
    *out = block.at;
    return SIFR_OK;
}

typedef struct shared_block {
    char *at;
    size_t size;
    int file;
    _Atomic bool refused;
} shared_block;

/* Allocates one page first, since holes are not collapsed into huge pages. MADV_COLLAPSE gives huge
 * pages even if the system's default for shared memory (shmem_enabled) is "never", as it often
 * is. */
static void touch_shared(void *user, int64_t tile, int thread) {
    shared_block *block = user;
    size_t at = (size_t)tile * TOUCH, left = block->size - at;
    base_assert(at < block->size);
    (void)thread;
    if (left >= TOUCH && fallocate(block->file, 0, (off_t)at, 4096) == 0 &&
        madvise(block->at + at, TOUCH, MADV_COLLAPSE) == 0)
        return;
    if (fallocate(block->file, 0, (off_t)at, left < TOUCH ? (off_t)left : TOUCH) != 0)
        block->refused = true;
}

static sifr_status take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    size_t size = size_of(bytes);
    shared_block block = {.size = size, .file = memfd_create("sifr", MFD_CLOEXEC)};
    if (block.file < 0) return base_fail_errno(error, errno, "cannot create shared memory");
    block.at = ftruncate(block.file, (off_t)size) == 0 ? find_space(size) : NULL;
    if (!block.at) goto refused;
    if (mmap(block.at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block.file, 0) ==
        MAP_FAILED)
        goto unmap;
    host_parallel(dev->team, tiles_of(size), touch_shared, &block);
    if (block.refused) goto unmap;
    *out = block.at;
    *file = block.file;
    return SIFR_OK;
unmap:
    munmap(block.at, size);
refused:
    close(block.file);
    return base_fail_alloc(error, bytes);
}

static void give(device *dev, void *block, int64_t bytes) {
    (void)dev;
    munmap(block, size_of(bytes));
}

static sifr_status copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    (void)dev;
    (void)error;
    memcpy(to, from, (size_t)bytes);
    return SIFR_OK;
}

static sifr_status start_copy(device *dev, device_queue queue, void *to, const void *from,
                              int64_t bytes, sifr_error *error) {
    (void)queue;
    return copy(dev, to, from, bytes, error);
}

static const device_backend backend = {.close = close_cpu,
                                       .isa = isa,
                                       .describe = describe,
                                       .prepare = cpu_prepare,
                                       .only_plan = only_plan,
                                       .run = cpu_run,
                                       .measure = cpu_measure,
                                       .take = take,
                                       .take_shared = take_shared,
                                       .give = give,
                                       .copy = copy,
                                       .start_copy = start_copy,
                                       .fold_losses = cpu_fold_losses,
                                       .decide = cpu_decide,
                                       .start_sum = cpu_start_sum};

sifr_status device_open_cpu(int threads, const char *isa_name, device **out, sifr_error *error) {
    const cpu_set *set = cpu_set_find(isa_name);
    if (!set) {
        return base_fail(error, SIFR_USAGE,
                         "instruction set \"%s\": unknown, or this processor lacks it; "
                         "avx512_bf16, avx512, avx2 and plain are built",
                         isa_name ? isa_name : "");
    }
    if (threads < 0 || threads > DEVICE_MOST_THREADS)
        return base_fail(error, SIFR_USAGE, "threads: %d is not in 0 to %d", threads,
                         DEVICE_MOST_THREADS);
    cpu_device *cpu;
    BASE_TRY(base_alloc(1, sizeof *cpu, &cpu, error));
    cpu->base.backend = &backend;
    cpu->set = set;
    if (threads == 0) threads = base_topology_threads(1);
    sifr_status status = host_team_create(threads, &cpu->base.team, error);
    if (status == SIFR_OK) status = cpu_products_open(threads, set->matrix, &cpu->products, error);
    if (status != SIFR_OK) {
        device_close(&cpu->base);
        return status;
    }
    *out = &cpu->base;
    return SIFR_OK;
}

static sifr_status open_kind(const device_place *place, int threads, const char *isa_name,
                             device **out, sifr_error *error) {
    (void)place; /* ranks of a host share its cores by their threads */
    return device_open_cpu(threads, isa_name, out, error);
}

const device_kind device_kind_cpu = {.open = open_kind};
