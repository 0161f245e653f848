#include "device/blocks.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"

typedef struct held_block {
    char *at, *reach;
    int64_t bytes;
    device_memory kind;
} held_block;

struct device_blocks {
    pthread_mutex_t lock;
    held_block *blocks;
    size_t count, capacity;
    device_counts counts;
};

sifr_status device_blocks_create(device_blocks **out, sifr_error *error) {
    device_blocks *b;
    BASE_TRY(base_alloc(1, sizeof *b, &b, error));
    pthread_mutex_init(&b->lock, NULL);
    *out = b;
    return SIFR_OK;
}

void device_blocks_free(device_blocks *b) {
    if (!b) return;
    pthread_mutex_destroy(&b->lock);
    free(b->blocks);
    free(b);
}

static void count_block(device_blocks *b, const held_block *block, int64_t sign) {
    if (block->kind == DEVICE_FOREIGN) return;
    *(block->kind == DEVICE_HOST ? &b->counts.host_bytes : &b->counts.device_bytes) +=
        sign * block->bytes;
}

sifr_status device_blocks_add(device_blocks *b, void *block, int64_t bytes, device_memory kind,
                              void *reach, sifr_error *error) {
    base_assert(block && bytes > 0);
    held_block added = {.at = block, .reach = reach, .bytes = bytes, .kind = kind};
    pthread_mutex_lock(&b->lock);
    sifr_status status =
        base_grow(&b->blocks, &b->capacity, b->count + 1, sizeof *b->blocks, error);
    if (status == SIFR_OK) {
        b->blocks[b->count++] = added;
        count_block(b, &added, 1);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

device_memory device_blocks_remove(device_blocks *b, const void *block) {
    device_memory kind = DEVICE_MEMORY;
    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->count; i++) {
        if (b->blocks[i].at != block) continue;
        kind = b->blocks[i].kind;
        count_block(b, &b->blocks[i], -1);
        b->blocks[i] = b->blocks[--b->count];
        break;
    }
    base_assert(b->counts.device_bytes >= 0 && b->counts.host_bytes >= 0);
    pthread_mutex_unlock(&b->lock);
    return kind;
}

/* The block that holds the bytes; NULL: none. Called with the lock held. */
static const held_block *find(const device_blocks *b, const void *data, int64_t bytes) {
    base_assert(bytes >= 0);
    for (size_t i = 0; i < b->count; i++) {
        const held_block *block = &b->blocks[i];
        int64_t at = (const char *)data - block->at;
        if (at >= 0 && at + bytes <= block->bytes) return block;
    }
    return NULL;
}

static bool is_in(const device_blocks *b, const void *data, int64_t bytes, device_memory kind) {
    const held_block *block = find(b, data, bytes);
    if (block && block->kind == DEVICE_FOREIGN) return kind == DEVICE_MEMORY;
    return block && block->kind == kind;
}

static bool holds(device_blocks *b, const void *data, int64_t bytes, device_memory kind) {
    pthread_mutex_lock(&b->lock);
    bool held = is_in(b, data, bytes, kind);
    pthread_mutex_unlock(&b->lock);
    return held;
}

bool device_blocks_hold(device_blocks *b, const void *data, int64_t bytes) {
    return holds(b, data, bytes, DEVICE_MEMORY);
}

bool device_blocks_hold_host(device_blocks *b, const void *data, int64_t bytes) {
    return holds(b, data, bytes, DEVICE_HOST);
}

void *device_blocks_reach(device_blocks *b, const void *data, int64_t bytes) {
    pthread_mutex_lock(&b->lock);
    const held_block *block = find(b, data, bytes);
    char *at = block && block->reach ? block->reach + ((const char *)data - block->at) : NULL;
    pthread_mutex_unlock(&b->lock);
    return at;
}

sifr_status device_blocks_note_copy(device_blocks *b, const void *to, const void *from,
                                    int64_t bytes, bool *in, sifr_error *error) {
    pthread_mutex_lock(&b->lock);
    *in = is_in(b, to, bytes, DEVICE_MEMORY);
    bool out = is_in(b, from, bytes, DEVICE_MEMORY);
    if (*in != out) *(*in ? &b->counts.to_device : &b->counts.to_host) += bytes;
    pthread_mutex_unlock(&b->lock);
    if (*in != out) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "copy of %lld bytes: %s in the device's memory",
                     (long long)bytes, *in ? "both ends are" : "neither end is");
}

device_counts device_blocks_count(device_blocks *b) {
    pthread_mutex_lock(&b->lock);
    device_counts counts = b->counts;
    pthread_mutex_unlock(&b->lock);
    return counts;
}
