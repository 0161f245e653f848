/* The queues of a GPU: a stream each, and rings of events for marks. Calls need the context. */
#ifndef CUDA_QUEUES_H
#define CUDA_QUEUES_H

#include "device/cuda/cuda_driver.h"
#include "device/device.h"

/* Marks of a queue use its events in turn. An event that is recorded again stands for a later point
 * of the same queue, so following an old mark waits for more than it must, never for less. */
enum { CUDA_MARKS = 256 };

typedef struct cuda_queues {
    cuda_stream streams[DEVICE_QUEUES];
    cuda_event events[DEVICE_QUEUES][CUDA_MARKS];
    int64_t turns[DEVICE_QUEUES]; /* marks made */
} cuda_queues;

/* `queues` is zeroed before; close what a failed call opened. */
sifr_status cuda_queues_open(const cuda_driver *driver, cuda_queues *queues,
                             sifr_error *error) SIFR_MUST_CHECK;
/* Waits for all streams. */
void cuda_queues_close(const cuda_driver *driver, cuda_queues *queues);

/* As the functions of device.h. */
sifr_status cuda_queues_mark(const cuda_driver *driver, cuda_queues *queues, device_queue queue,
                             device_mark *out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_queues_follow(const cuda_driver *driver, const cuda_queues *queues,
                               device_queue queue, device_mark mark,
                               sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_queues_finish(const cuda_driver *driver, const cuda_queues *queues,
                               device_mark mark, sifr_error *error) SIFR_MUST_CHECK;

#endif
