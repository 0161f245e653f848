/* The queues of a device over the CPU: a thread for each queue that is to run beside its callers.
 * Private to device/.
 *
 * Work that fails ends the set: what comes later is not run, and every device_finish reports the
 * first error. Functions may be called from any thread; a queue is given work by one at a time. */
#ifndef DEVICE_QUEUE_SET_H
#define DEVICE_QUEUE_SET_H

#include "device/backend.h"

typedef struct queue_set queue_set;

enum { QUEUE_PAYLOAD = 1280 }; /* bytes of what a piece of work is given */

typedef sifr_status queue_work(void *user, const void *payload, sifr_error *error);

/* Queues without a thread do their work at once. */
typedef struct queue_options {
    bool threads[DEVICE_QUEUES];
    uint32_t pause_us; /* threads rest up to so long before each piece of work, by `seed` */
    uint64_t seed;
} queue_options;

sifr_status queue_set_open(const queue_options *options, queue_set **out,
                           sifr_error *error) SIFR_MUST_CHECK;
void queue_set_close(queue_set *set); /* runs what is left; NULL is allowed */

/* Copies `payload`. Waits while the queue is full. */
sifr_status queue_set_give(queue_set *set, device_queue queue, queue_work *work, void *user,
                           const void *payload, size_t bytes, sifr_error *error) SIFR_MUST_CHECK;

/* As the functions of device.h. */
void queue_set_mark(queue_set *set, device_queue queue, device_mark *out);
sifr_status queue_set_wait(queue_set *set, device_queue queue, device_mark mark,
                           sifr_error *error) SIFR_MUST_CHECK;
sifr_status queue_set_finish(queue_set *set, device_mark mark, sifr_error *error) SIFR_MUST_CHECK;
void queue_set_times(queue_set *set, device_mark mark, double *begun, double *ended);

#endif
