/* A device with separate memory, over the CPU: for tests of the passes, and for plans of such a
 * device. It knows its blocks, by kind, and refuses what the host or a kernel may not reach. */
#include <stdlib.h>
#include <unistd.h>

#include "base/heap.h"
#include "device/blocks.h"

typedef struct separate_device {
    device base;
    device *cpu; /* which does the work */
    device_blocks *blocks;
} separate_device;

static separate_device *separate_of(const device *dev) {
    return (separate_device *)(uintptr_t)dev;
}

static void close_separate(device *dev) {
    device_close(separate_of(dev)->cpu);
    device_blocks_free(separate_of(dev)->blocks);
    free(dev);
}

static const char *isa(const device *dev) {
    return device_isa(separate_of(dev)->cpu);
}

static void describe(const device *dev, char *out, size_t size) {
    device_describe(separate_of(dev)->cpu, out, size);
}

static sifr_status prepare(device *dev, device_call *call, sifr_error *error) {
    device *cpu = separate_of(dev)->cpu;
    return cpu->backend->prepare(cpu, call, error); /* the operands are checked already */
}

static sifr_status measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                           sifr_error *error) {
    return device_measure(separate_of(dev)->cpu, memory, bytes, out, error);
}

static int64_t extent(const device_matrix *matrix) {
    if (matrix->rows == 0 || matrix->columns == 0) return 0;
    int64_t elements = (matrix->rows - 1) * matrix->stride + matrix->columns;
    return elements * base_dtype_bytes(matrix->dtype);
}

/* The name of the first operand outside the device's memory, as in device_call; NULL: none. */
static const char *find_stranger(const separate_device *m, const device_call *call, int *index) {
    const struct {
        const char *name;
        const device_matrix *matrices;
        int count;
    } groups[] = {{"x", call->x, DEVICE_INPUTS},
                  {"w", call->w, DEVICE_WEIGHTS},
                  {"y", &call->y, 1},
                  {"saved", call->saved, DEVICE_SAVED},
                  {"dy", &call->dy, 1},
                  {"dx", call->dx, DEVICE_INPUTS},
                  {"dw", call->dw, DEVICE_WEIGHTS}};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (*index = 0; *index < groups[g].count; ++*index) {
            const device_matrix *matrix = &groups[g].matrices[*index];
            if (matrix->dtype == BASE_NONE) continue;
            if (!device_blocks_hold(m->blocks, matrix->data, extent(matrix))) return groups[g].name;
        }
    }
    *index = 0;
    return device_blocks_hold(m->blocks, call->scratch, call->scratch_bytes) || !call->scratch_bytes
               ? NULL
               : "scratch";
}

static sifr_status run(device *dev, const device_call *call, sifr_error *error) {
    separate_device *m = separate_of(dev);
    int index;
    const char *name = find_stranger(m, call, &index);
    if (!name) return device_run(m->cpu, call, error);
    return base_fail(error, SIFR_FAILED, "kernel %s: operand %s[%d] is not in the device's memory",
                     device_kernel_name(call->kernel), name, index);
}

static sifr_status take(device *dev, device_memory kind, int64_t bytes, void **out,
                        sifr_error *error) {
    separate_device *m = separate_of(dev);
    void *block;
    BASE_TRY(device_take(m->cpu, bytes, &block, error));
    sifr_status status = device_blocks_add(m->blocks, block, bytes, kind, error);
    if (status != SIFR_OK) {
        device_give(m->cpu, block, bytes);
        return status;
    }
    *out = block;
    return SIFR_OK;
}

static sifr_status take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    separate_device *m = separate_of(dev);
    void *block;
    BASE_TRY(device_take_shared(m->cpu, bytes, &block, file, error));
    sifr_status status = device_blocks_add(m->blocks, block, bytes, DEVICE_MEMORY, error);
    if (status != SIFR_OK) {
        device_give(m->cpu, block, bytes);
        close(*file);
        return status;
    }
    *out = block;
    return SIFR_OK;
}

static void give(device *dev, void *block, int64_t bytes) {
    device_blocks_remove(separate_of(dev)->blocks, block);
    device_give(separate_of(dev)->cpu, block, bytes);
}

/* Between the two memories alone. */
static sifr_status copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    separate_device *m = separate_of(dev);
    bool in;
    BASE_TRY(device_blocks_note_copy(m->blocks, to, from, bytes, &in, error));
    return device_copy(m->cpu, to, from, bytes, error);
}

static device_counts count(const device *dev) {
    return device_blocks_count(separate_of(dev)->blocks);
}

static const device_backend backend = {.close = close_separate,
                                       .isa = isa,
                                       .describe = describe,
                                       .prepare = prepare,
                                       .run = run,
                                       .measure = measure,
                                       .take = take,
                                       .take_shared = take_shared,
                                       .give = give,
                                       .copy = copy,
                                       .count = count};

sifr_status device_open_separate(int threads, const char *isa_name, device **out,
                                 sifr_error *error) {
    separate_device *m;
    BASE_TRY(base_alloc(1, sizeof *m, &m, error));
    sifr_status status = device_open_cpu(threads, isa_name, &m->cpu, error);
    if (status == SIFR_OK) status = device_blocks_create(&m->blocks, error);
    if (status != SIFR_OK) {
        device_close(m->cpu);
        free(m);
        return status;
    }
    m->base = (device){.backend = &backend, .team = m->cpu->team};
    *out = &m->base;
    return SIFR_OK;
}
