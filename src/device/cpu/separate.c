#include "device/cpu/separate.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

typedef struct separate_block {
    const char *at;
    int64_t bytes;
    bool host;
} separate_block;

struct cpu_separate {
    pthread_mutex_t lock;
    separate_block *blocks;
    size_t count, room;
    device_counts counts;
};

sifr_status cpu_separate_open(cpu_separate **out, sifr_error *error) {
    cpu_separate *m;
    BASE_TRY(base_alloc(1, sizeof *m, &m, error));
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return SIFR_OK;
}

void cpu_separate_close(cpu_separate *m) {
    if (!m) return;
    pthread_mutex_destroy(&m->lock);
    free(m->blocks);
    free(m);
}

static void count_block(cpu_separate *m, const separate_block *block, int64_t sign) {
    *(block->host ? &m->counts.host_bytes : &m->counts.device_bytes) += sign * block->bytes;
}

sifr_status cpu_separate_add(cpu_separate *m, const void *block, int64_t bytes, bool host,
                             sifr_error *error) {
    separate_block added = {.at = block, .bytes = bytes, .host = host};
    pthread_mutex_lock(&m->lock);
    sifr_status status = base_grow(&m->blocks, &m->room, m->count + 1, sizeof *m->blocks, error);
    if (status == SIFR_OK) {
        m->blocks[m->count++] = added;
        count_block(m, &added, 1);
    }
    pthread_mutex_unlock(&m->lock);
    return status;
}

void cpu_separate_remove(cpu_separate *m, const void *block) {
    pthread_mutex_lock(&m->lock);
    for (size_t b = 0; b < m->count; b++) {
        if (m->blocks[b].at != block) continue;
        count_block(m, &m->blocks[b], -1);
        m->blocks[b] = m->blocks[--m->count];
        break;
    }
    pthread_mutex_unlock(&m->lock);
}

/* Called with the lock held. */
static bool is_of_device(const cpu_separate *m, const void *data, int64_t bytes) {
    for (size_t b = 0; b < m->count; b++) {
        const separate_block *block = &m->blocks[b];
        int64_t at = (const char *)data - block->at;
        if (!block->host && at >= 0 && at + bytes <= block->bytes) return true;
    }
    return false;
}

static int64_t extent(const device_matrix *matrix) {
    if (matrix->rows == 0 || matrix->columns == 0) return 0;
    int64_t elements = (matrix->rows - 1) * matrix->stride + matrix->columns;
    return elements * base_dtype_bytes(matrix->dtype);
}

/* The name of the first operand outside the device's memory, as in device_call; NULL: none. */
static const char *find_stranger(const cpu_separate *m, const device_call *call, int *index) {
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
            if (!is_of_device(m, matrix->data, extent(matrix))) return groups[g].name;
        }
    }
    *index = 0;
    return is_of_device(m, call->scratch, call->scratch_bytes) || !call->scratch_bytes ? NULL
                                                                                       : "scratch";
}

sifr_status cpu_separate_check(cpu_separate *m, const device_call *call, sifr_error *error) {
    int index;
    pthread_mutex_lock(&m->lock);
    const char *name = find_stranger(m, call, &index);
    pthread_mutex_unlock(&m->lock);
    if (!name) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "kernel %s: operand %s[%d] is not in the device's memory",
                     device_kernel_name(call->kernel), name, index);
}

sifr_status cpu_separate_copy(cpu_separate *m, void *to, const void *from, int64_t bytes,
                              sifr_error *error) {
    pthread_mutex_lock(&m->lock);
    bool in = is_of_device(m, to, bytes), out = is_of_device(m, from, bytes);
    if (in != out) *(in ? &m->counts.to_device : &m->counts.to_host) += bytes;
    pthread_mutex_unlock(&m->lock);
    if (in == out)
        return base_fail(error, SIFR_FAILED, "copy of %lld bytes: %s in the device's memory",
                         (long long)bytes, in ? "both ends are" : "neither end is");
    memcpy(to, from, (size_t)bytes);
    return SIFR_OK;
}

device_counts cpu_separate_count(cpu_separate *m) {
    pthread_mutex_lock(&m->lock);
    device_counts counts = m->counts;
    pthread_mutex_unlock(&m->lock);
    return counts;
}
