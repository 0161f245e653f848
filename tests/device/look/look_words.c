/* A stream that waits for a word in pinned memory, as sifr's computing waits for transfers. */
#include "device/look/look.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "device/flag.h"

enum { TURNS = 21 };

/* Pinned: the word, and the byte that the work behind the wait brings from the device. */
typedef struct place {
    device_flag word;
    volatile unsigned char seen;
} place;

/* The work of a turn: another byte on the device, then on the host. */
static sifr_status enqueue(look *l, cuda_address block, place *p, unsigned char byte,
                           sifr_error *error) {
    CUDA_TRY(l->driver, error, cuMemsetD8Async, block, byte, 1, l->streams[0]);
    CUDA_TRY(l->driver, error, cuMemcpyDtoHAsync, (void *)(uintptr_t)&p->seen, block, 1,
             l->streams[0]);
    return SIFR_OK;
}

static sifr_status fail_early(sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "work behind the wait ran before the word was written");
}

/* After the word was written: until the work has ended. */
static sifr_status poll_event(look *l, cuda_event event, sifr_error *error) {
    cuda_result result;
    while ((result = l->driver->cuEventQuery(event)) == CUDA_NOT_READY) sched_yield();
    return cuda_driver_status(l->driver, result, error, "cuEventQuery");
}

static sifr_status turn(look *l, cuda_address block, place *p, cuda_event event, uint32_t number,
                        double *seconds, sifr_error *error) {
    const struct timespec nap = {.tv_nsec = number == 1 ? 20000000 : 500000};
    unsigned char before = p->seen, byte = (unsigned char)number;
    cuda_address word;
    CUDA_TRY(l->driver, error, cuMemHostGetDevicePointer, &word, &p->word, 0);
    CUDA_TRY(l->driver, error, cuStreamWaitValue32, l->streams[0], word, number,
             CUDA_WAIT_AT_LEAST);
    BASE_TRY(enqueue(l, block, p, byte, error));
    CUDA_TRY(l->driver, error, cuEventRecord, event, l->streams[0]);
    nanosleep(&nap, NULL);
    cuda_result result = l->driver->cuEventQuery(event);
    if (result == CUDA_OK || p->seen != before) return fail_early(error);
    if (result != CUDA_NOT_READY)
        return cuda_driver_status(l->driver, result, error, "cuEventQuery");
    double begun = base_seconds();
    device_flag_set(&p->word, number);
    BASE_TRY(poll_event(l, event, error));
    *seconds = base_seconds() - begun;
    if (p->seen == byte) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "the work behind the wait left %u on the host, not %u",
                     p->seen, byte);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The kinds of work run once before: a driver may wait for the whole GPU to load their code. */
sifr_status look_row_words(look *l, char *figure, sifr_error *error) {
    double seconds[TURNS];
    cuda_address block;
    cuda_event event;
    void *pinned;
    BASE_TRY(look_streams(l, error));
    CUDA_TRY(l->driver, error, cuMemHostAlloc, &pinned, sizeof(place), CUDA_HOST_PORTABLE);
    place *p = pinned;
    *p = (place){0};
    CUDA_TRY(l->driver, error, cuMemAlloc, &block, 256);
    CUDA_TRY(l->driver, error, cuEventCreate, &event, CUDA_EVENT_NO_TIMING);
    BASE_TRY(enqueue(l, block, p, 255, error));
    CUDA_TRY(l->driver, error, cuStreamSynchronize, l->streams[0]);
    for (int i = 0; i < TURNS; i++)
        BASE_TRY(turn(l, block, p, event, (uint32_t)i + 1, &seconds[i], error));
    qsort(seconds, TURNS, sizeof *seconds, compare);
    snprintf(figure, LOOK_TEXT,
             "%.0f us from the word to work seen done (median of %d, longest %.0f us); nothing ran "
             "before",
             1e6 * seconds[TURNS / 2], TURNS, 1e6 * seconds[TURNS - 1]);
    return SIFR_OK;
}
