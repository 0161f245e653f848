#include "device/cuda/cuda_awaits.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

static const double brisk = 1e-3; /* seconds of waiting after which the host sleeps in between */

static bool is_written(const struct cuda_awaited *a) {
    return !a->word || device_word_is_at(a->word, a->value);
}

/* Takes those off the front that are written; returns the first that is not, or NULL. */
static const struct cuda_awaited *first_open(cuda_awaits *awaits) {
    for (; awaits->first != awaits->next; awaits->first++) {
        const struct cuda_awaited *a = &awaits->line[awaits->first % CUDA_AWAITS];
        if (!is_written(a)) return a;
    }
    return NULL;
}

static void wait_for(const struct cuda_awaited *a) {
    const struct timespec nap = {.tv_nsec = 20000};
    double begun = base_seconds();
    while (!is_written(a)) {
        if (base_seconds() - begun < brisk)
            sched_yield();
        else
            nanosleep(&nap, NULL);
    }
}

sifr_status cuda_awaits_add(cuda_awaits *awaits, const cuda_driver *driver, cuda_stream stream,
                            const device_word *word, uint32_t value, sifr_error *error) {
    cuda_address address;
    CUDA_TRY(driver, error, cuMemHostGetDevicePointer, &address, (void *)(uintptr_t)word, 0);
    cuda_awaits_give(awaits, 1);
    const struct cuda_awaited *open = first_open(awaits);
    if (open && awaits->next - awaits->first == CUDA_AWAITS) {
        wait_for(open);
        awaits->first++;
    }
    CUDA_TRY(driver, error, cuStreamWaitValue32, stream, address, value, CUDA_WAIT_AT_LEAST);
    awaits->line[awaits->next++ % CUDA_AWAITS] =
        (struct cuda_awaited){word, value, awaits->given - 1};
    return SIFR_OK;
}

void cuda_awaits_give(cuda_awaits *awaits, int64_t count) {
    const struct cuda_awaited *open = first_open(awaits);
    while (open && awaits->given + count - open->given > CUDA_AHEAD) {
        wait_for(open);
        open = first_open(awaits);
    }
    awaits->given += count;
}

void cuda_awaits_forget(cuda_awaits *awaits, const void *block, int64_t bytes) {
    for (uint32_t i = awaits->first; i != awaits->next; i++) {
        struct cuda_awaited *a = &awaits->line[i % CUDA_AWAITS];
        uintptr_t at = (uintptr_t)a->word - (uintptr_t)block;
        if (at < (uintptr_t)bytes) a->word = NULL;
    }
}
