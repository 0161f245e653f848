#include "device/cuda/cuda_queues.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

static const double brisk = 1e-3;    /* seconds of waiting after which the host sleeps in between */
static const double far = 16;        /* seconds from the origin, whose times come as floats */
static const double close_by = 1e-4; /* seconds */

static bool copies(int queue) {
    return queue == DEVICE_IN || queue == DEVICE_OUT;
}

/* The driver's own waiting cannot be left when another rank fails; this one sleeps, too. It also
 * ends when *seen, unless that is NULL, has come to `number`. */
static sifr_status wait_for(const cuda_driver *driver, cuda_event event,
                            const _Atomic int64_t *seen, int64_t number, sifr_error *error) {
    double begun = base_seconds();
    for (;;) {
        if (seen && atomic_load(seen) >= number) return SIFR_OK;
        cuda_result result = driver->cuEventQuery(event);
        if (result == CUDA_OK) return SIFR_OK;
        if (result != CUDA_NOT_READY)
            return cuda_driver_status(driver, result, error, "work on the GPU");
        if (base_seconds() - begun < brisk) {
            sched_yield();
        } else {
            struct timespec nap = {.tv_nsec = 50000};
            nanosleep(&nap, NULL);
        }
    }
}

/* A point of DEVICE_COMPUTE, and its time. The host may see it late, so it is taken again until
 * both sides of it are close together. */
static sifr_status set_origin(const cuda_driver *driver, cuda_queues *queues, sifr_error *error) {
    for (int tries = 0; tries < 16; tries++) {
        double before = base_seconds();
        CUDA_TRY(driver, error, cuEventRecord, queues->origin, queues->streams[DEVICE_COMPUTE]);
        BASE_TRY(wait_for(driver, queues->origin, NULL, 0, error));
        queues->origin_seconds = base_seconds();
        if (queues->origin_seconds - before < close_by) break;
    }
    return SIFR_OK;
}

sifr_status cuda_queues_open(const cuda_driver *driver, cuda_queues *queues, sifr_error *error) {
    for (int q = 0; q < DEVICE_QUEUES; q++) {
        CUDA_TRY(driver, error, cuStreamCreateWithPriority, &queues->streams[q],
                 CUDA_STREAM_NON_BLOCKING, 0);
        unsigned flags = copies(q) ? 0 : CUDA_EVENT_NO_TIMING;
        for (int i = 0; i < CUDA_MARKS; i++) {
            CUDA_TRY(driver, error, cuEventCreate, &queues->events[q][i], flags);
            if (copies(q)) CUDA_TRY(driver, error, cuEventCreate, &queues->begun[q][i], flags);
        }
    }
    CUDA_TRY(driver, error, cuEventCreate, &queues->origin, 0);
    return set_origin(driver, queues, error);
}

void cuda_queues_close(const cuda_driver *driver, cuda_queues *queues) {
    for (int q = 0; q < DEVICE_QUEUES; q++)
        if (queues->streams[q]) driver->cuStreamSynchronize(queues->streams[q]);
    for (int q = 0; q < DEVICE_QUEUES; q++) {
        for (int i = 0; i < CUDA_MARKS; i++) {
            if (queues->events[q][i]) driver->cuEventDestroy(queues->events[q][i]);
            if (queues->begun[q][i]) driver->cuEventDestroy(queues->begun[q][i]);
        }
        if (queues->streams[q]) driver->cuStreamDestroy(queues->streams[q]);
    }
    if (queues->origin) driver->cuEventDestroy(queues->origin);
    memset(queues, 0, sizeof *queues);
}

static cuda_event event_of(const cuda_queues *queues, device_mark mark) {
    return queues->events[mark.queue][mark.number % CUDA_MARKS];
}

/* Threads may see marks in any order. */
static void note_reached(cuda_queues *queues, device_mark mark) {
    _Atomic int64_t *reached = &queues->reached[mark.queue];
    int64_t before = atomic_load(reached);
    while (before < mark.number && !atomic_compare_exchange_weak(reached, &before, mark.number)) {
    }
}

/* Whichever mark the event stands for by then, this one is reached. */
static sifr_status reach(const cuda_driver *driver, cuda_queues *queues, device_mark mark,
                         sifr_error *error) {
    BASE_TRY(
        wait_for(driver, event_of(queues, mark), &queues->reached[mark.queue], mark.number, error));
    note_reached(queues, mark);
    return SIFR_OK;
}

sifr_status cuda_queues_mark(const cuda_driver *driver, cuda_queues *queues, device_queue queue,
                             device_mark *out, sifr_error *error) {
    device_mark mark = {.queue = queue, .number = queues->made[queue] + 1};
    device_mark old = {.queue = queue, .number = mark.number - CUDA_MARKS};
    if (old.number > 0) BASE_TRY(reach(driver, queues, old, error));
    CUDA_TRY(driver, error, cuEventRecord, event_of(queues, mark), queues->streams[queue]);
    queues->made[queue] = mark.number;
    *out = mark;
    return SIFR_OK;
}

sifr_status cuda_queues_wait(const cuda_driver *driver, const cuda_queues *queues,
                             device_queue queue, device_mark mark, sifr_error *error) {
    if (!cuda_queues_waits(queues, queue, mark)) return SIFR_OK;
    CUDA_TRY(driver, error, cuStreamWaitEvent, queues->streams[queue], event_of(queues, mark), 0);
    return SIFR_OK;
}

sifr_status cuda_queues_finish(const cuda_driver *driver, cuda_queues *queues, device_mark mark,
                               sifr_error *error) {
    return mark.number ? reach(driver, queues, mark, error) : SIFR_OK;
}

sifr_status cuda_queues_look(const cuda_driver *driver, const cuda_queues *queues, device_mark mark,
                             bool *reached, sifr_error *error) {
    bool seen = mark.number <= queues->reached[mark.queue];
    cuda_result result = seen ? CUDA_OK : driver->cuEventQuery(event_of(queues, mark));
    *reached = result == CUDA_OK;
    return *reached || result == CUDA_NOT_READY
               ? SIFR_OK
               : cuda_driver_status(driver, result, error, "work on the GPU");
}

sifr_status cuda_queues_begin(const cuda_driver *driver, const cuda_queues *queues,
                              device_queue queue, sifr_error *error) {
    cuda_event event = queues->begun[queue][(queues->made[queue] + 1) % CUDA_MARKS];
    if (event) CUDA_TRY(driver, error, cuEventRecord, event, queues->streams[queue]);
    return SIFR_OK;
}

void cuda_queues_times(const cuda_driver *driver, cuda_queues *queues, device_mark mark,
                       double *begun, double *ended) {
    int64_t place = mark.number % CUDA_MARKS;
    float to_end, taken;
    *begun = *ended = 0;
    if (mark.number == 0 || !copies(mark.queue)) return;
    if (queues->made[mark.queue] - mark.number >= CUDA_MARKS) return;
    cuda_event first = queues->begun[mark.queue][place], last = event_of(queues, mark);
    if (driver->cuEventElapsedTime(&to_end, queues->origin, last) != CUDA_OK ||
        driver->cuEventElapsedTime(&taken, first, last) != CUDA_OK)
        return;
    *ended = queues->origin_seconds + 1e-3 * (double)to_end;
    *begun = *ended - 1e-3 * (double)taken;
    if (base_seconds() - queues->origin_seconds > far) (void)!set_origin(driver, queues, NULL);
}
