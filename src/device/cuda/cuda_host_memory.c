#include "device/cuda/cuda_host_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"

enum { PAGE = 4096 };

void cuda_host_memory_open(cuda_host_memory *memory) {
    pthread_mutex_init(&memory->lock, NULL);
}

void cuda_host_memory_close(cuda_host_memory *memory) {
    pthread_mutex_destroy(&memory->lock);
    free(memory->plain);
}

static sifr_status note_plain(cuda_host_memory *memory, void *block, int64_t bytes,
                              sifr_error *error) {
    pthread_mutex_lock(&memory->lock);
    sifr_status status = base_grow(&memory->plain, &memory->capacity, memory->count + 1,
                                   sizeof *memory->plain, error);
    if (status == SIFR_OK) {
        memory->plain[memory->count++] = (struct cuda_plain_block){block, bytes};
        memory->plain_bytes += bytes;
        memory->most_plain = base_max_i64(memory->most_plain, memory->plain_bytes);
    }
    pthread_mutex_unlock(&memory->lock);
    return status;
}

static sifr_status take_plain(cuda_host_memory *memory, int64_t bytes, void **out,
                              sifr_error *error) {
    if (posix_memalign(out, PAGE, (size_t)bytes) != 0) return base_fail_alloc(error, bytes);
    sifr_status status = note_plain(memory, *out, bytes, error);
    if (status != SIFR_OK) free(*out);
    return status;
}

sifr_status cuda_host_memory_take(cuda_host_memory *memory, const cuda_driver *driver,
                                  int64_t bytes, void **out, sifr_error *error) {
    cuda_result result = driver->cuMemHostAlloc(out, (size_t)bytes, CUDA_HOST_PORTABLE);
    if (cuda_driver_is_lost(result))
        return cuda_driver_status(driver, result, error, "cuMemHostAlloc");
    if (result != CUDA_OK) BASE_TRY(take_plain(memory, bytes, out, error));
    memset(*out, 0, (size_t)bytes);
    return SIFR_OK;
}

/* Whether the block was a plain one, which is in the list no more. */
static bool forget_plain(cuda_host_memory *memory, const void *block) {
    bool found = false;
    pthread_mutex_lock(&memory->lock);
    for (size_t i = 0; i < memory->count && !found; i++) {
        if (memory->plain[i].at != block) continue;
        found = true;
        memory->plain_bytes -= memory->plain[i].bytes;
        memory->plain[i] = memory->plain[--memory->count];
    }
    pthread_mutex_unlock(&memory->lock);
    return found;
}

void cuda_host_memory_give(cuda_host_memory *memory, const cuda_driver *driver, void *block) {
    if (forget_plain(memory, block))
        free(block);
    else
        driver->cuMemFreeHost(block);
}

int64_t cuda_host_memory_plain(cuda_host_memory *memory) {
    pthread_mutex_lock(&memory->lock);
    int64_t bytes = memory->plain_bytes;
    pthread_mutex_unlock(&memory->lock);
    return bytes;
}

int64_t cuda_host_memory_most_plain(cuda_host_memory *memory) {
    pthread_mutex_lock(&memory->lock);
    int64_t bytes = memory->most_plain;
    pthread_mutex_unlock(&memory->lock);
    return bytes;
}
