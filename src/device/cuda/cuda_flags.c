#include "device/cuda/cuda_flags.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

static const double brisk = 1e-3; /* seconds of waiting after which the host sleeps in between */

static bool is_written(const struct cuda_flag_wait *a) {
    return !a->flag || device_flag_is_at(a->flag, a->value);
}

/* Takes those off the front that are written; returns the first that is not, or NULL. */
static const struct cuda_flag_wait *first_open(cuda_flags *flags) {
    for (; flags->first != flags->next; flags->first++) {
        const struct cuda_flag_wait *a = &flags->line[flags->first % CUDA_FLAGS];
        if (!is_written(a)) return a;
    }
    return NULL;
}

static void wait_for(const struct cuda_flag_wait *a) {
    const struct timespec nap = {.tv_nsec = 20000};
    double begun = base_seconds();
    while (!is_written(a)) {
        if (base_seconds() - begun < brisk)
            sched_yield();
        else
            nanosleep(&nap, NULL);
    }
}

sifr_status cuda_flags_add(cuda_flags *flags, const cuda_driver *driver, cuda_stream stream,
                           const device_flag *flag, uint32_t value, sifr_error *error) {
    cuda_address address;
    CUDA_TRY(driver, error, cuMemHostGetDevicePointer, &address, (void *)(uintptr_t)flag, 0);
    cuda_flags_give(flags, 1);
    const struct cuda_flag_wait *open = first_open(flags);
    if (open && flags->next - flags->first == CUDA_FLAGS) {
        wait_for(open);
        flags->first++;
    }
    CUDA_TRY(driver, error, cuStreamWaitValue32, stream, address, value, CUDA_WAIT_AT_LEAST);
    flags->line[flags->next++ % CUDA_FLAGS] =
        (struct cuda_flag_wait){flag, value, flags->given - 1};
    return SIFR_OK;
}

void cuda_flags_give(cuda_flags *flags, int64_t count) {
    const struct cuda_flag_wait *open = first_open(flags);
    while (open && flags->given + count - open->given > CUDA_AHEAD) {
        wait_for(open);
        open = first_open(flags);
    }
    flags->given += count;
}

void cuda_flags_forget(cuda_flags *flags, const void *block, int64_t bytes) {
    for (uint32_t i = flags->first; i != flags->next; i++) {
        struct cuda_flag_wait *a = &flags->line[i % CUDA_FLAGS];
        uintptr_t at = (uintptr_t)a->flag - (uintptr_t)block;
        if (at < (uintptr_t)bytes) a->flag = NULL;
    }
}
