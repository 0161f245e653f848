#include "device/cuda/cuda_queues.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

static const double brisk = 1e-3; /* seconds of waiting after which the host sleeps in between */

sifr_status cuda_queues_open(const cuda_driver *driver, cuda_queues *queues, sifr_error *error) {
    for (int q = 0; q < DEVICE_QUEUES; q++) {
        CUDA_TRY(driver, error, cuStreamCreateWithPriority, &queues->streams[q],
                 CUDA_STREAM_NON_BLOCKING, 0);
        for (int i = 0; i < CUDA_MARKS; i++)
            CUDA_TRY(driver, error, cuEventCreate, &queues->events[q][i], CUDA_EVENT_NO_TIMING);
    }
    return SIFR_OK;
}

void cuda_queues_close(const cuda_driver *driver, cuda_queues *queues) {
    for (int q = 0; q < DEVICE_QUEUES; q++)
        if (queues->streams[q]) driver->cuStreamSynchronize(queues->streams[q]);
    for (int q = 0; q < DEVICE_QUEUES; q++) {
        for (int i = 0; i < CUDA_MARKS; i++)
            if (queues->events[q][i]) driver->cuEventDestroy(queues->events[q][i]);
        if (queues->streams[q]) driver->cuStreamDestroy(queues->streams[q]);
    }
    *queues = (cuda_queues){0};
}

static cuda_event event_of(const cuda_queues *queues, device_mark mark) {
    return queues->events[mark.queue][mark.turn % CUDA_MARKS];
}

sifr_status cuda_queues_mark(const cuda_driver *driver, cuda_queues *queues, device_queue queue,
                             device_mark *out, sifr_error *error) {
    device_mark mark = {.queue = queue, .turn = queues->turns[queue] + 1};
    CUDA_TRY(driver, error, cuEventRecord, event_of(queues, mark), queues->streams[queue]);
    queues->turns[queue] = mark.turn;
    *out = mark;
    return SIFR_OK;
}

sifr_status cuda_queues_follow(const cuda_driver *driver, const cuda_queues *queues,
                               device_queue queue, device_mark mark, sifr_error *error) {
    if (mark.turn == 0 || mark.queue == queue) return SIFR_OK;
    CUDA_TRY(driver, error, cuStreamWaitEvent, queues->streams[queue], event_of(queues, mark), 0);
    return SIFR_OK;
}

/* The driver's own waiting cannot be left when another rank fails; this one sleeps, too. */
sifr_status cuda_queues_finish(const cuda_driver *driver, const cuda_queues *queues,
                               device_mark mark, sifr_error *error) {
    double begun = base_seconds();
    if (mark.turn == 0) return SIFR_OK;
    for (;;) {
        cuda_result result = driver->cuEventQuery(event_of(queues, mark));
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
