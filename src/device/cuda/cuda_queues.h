/* The queues of a GPU: a stream each, and rings of events for marks. Calls need the context. */
#ifndef CUDA_QUEUES_H
#define CUDA_QUEUES_H

#include <stdatomic.h>

#include "device/cuda/cuda_driver.h"
#include "device/device.h"

/* Marks of a queue use its events in turn. An event that is recorded again stands for a later point
 * of the same queue, which may lie behind a word that is only written when the old mark is seen
 * (device_wait_flag). So the old mark is waited for first, and noted as reached. */
enum { CUDA_MARKS = 256 };

typedef struct cuda_queues {
    cuda_stream streams[DEVICE_QUEUES];
    cuda_event events[DEVICE_QUEUES][CUDA_MARKS];
    _Atomic int64_t made[DEVICE_QUEUES];    /* marks made */
    _Atomic int64_t reached[DEVICE_QUEUES]; /* the last of them that is known to be reached */
    /* Of the queues of copies, whose events have times: where the copy before a mark began. */
    cuda_event begun[DEVICE_QUEUES][CUDA_MARKS];
    cuda_event origin;     /* events tell times from here on ... */
    double origin_seconds; /* ... which is this time of the host's */
} cuda_queues;

/* `queues` is zeroed before; close what a failed call opened. */
sifr_status cuda_queues_open(const cuda_driver *driver, cuda_queues *queues,
                             sifr_error *error) SIFR_MUST_CHECK;
/* Waits for all streams. */
void cuda_queues_close(const cuda_driver *driver, cuda_queues *queues);

/* As the functions of device.h. */
sifr_status cuda_queues_mark(const cuda_driver *driver, cuda_queues *queues, device_queue queue,
                             device_mark *out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_queues_wait(const cuda_driver *driver, const cuda_queues *queues,
                             device_queue queue, device_mark mark,
                             sifr_error *error) SIFR_MUST_CHECK;
/* Whether cuda_queues_wait would give the queue anything: the mark is another queue's, and not
 * known to be reached. */
static inline bool cuda_queues_waits(const cuda_queues *queues, device_queue queue,
                                     device_mark mark) {
    return mark.number > queues->reached[mark.queue] && mark.queue != queue;
}

sifr_status cuda_queues_finish(const cuda_driver *driver, cuda_queues *queues, device_mark mark,
                               sifr_error *error) SIFR_MUST_CHECK;

/* cuda_queues_finish without the waiting. */
sifr_status cuda_queues_look(const cuda_driver *driver, const cuda_queues *queues, device_mark mark,
                             bool *reached, sifr_error *error) SIFR_MUST_CHECK;

/* To be called before each copy on DEVICE_IN and DEVICE_OUT. */
sifr_status cuda_queues_begin(const cuda_driver *driver, const cuda_queues *queues,
                              device_queue queue, sifr_error *error) SIFR_MUST_CHECK;
/* As device_times, of the queues of copies. By one thread at a time; now and then it waits for
 * DEVICE_COMPUTE. */
void cuda_queues_times(const cuda_driver *driver, cuda_queues *queues, device_mark mark,
                       double *begun, double *ended);

#endif
