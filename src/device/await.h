/* Queues that wait for a word which a thread of the host writes: so the host need not wait for a
 * transfer before it gives what comes behind that transfer. */
#ifndef DEVICE_AWAIT_H
#define DEVICE_AWAIT_H

#include "device/device.h"

typedef struct device_word {
    uint32_t value; /* by the functions below alone */
} device_word;

/* What the thread wrote before is seen by whom the word lets go on. */
static inline void device_word_set(device_word *word, uint32_t value) {
    __atomic_store_n(&word->value, value, __ATOMIC_RELEASE);
}

/* Whether it has come to `value`, counted round. */
static inline bool device_word_is_at(const device_word *word, uint32_t value) {
    return (int32_t)(__atomic_load_n(&word->value, __ATOMIC_ACQUIRE) - value) >= 0;
}

/* What DEVICE_COMPUTE is given from now on starts when *word, in memory of device_take_host, has
 * come to `value`. A thread of the host sets it, after all that the queue is to see. It must do so
 * in the end, whatever fails: until then the queue stands still, and so does a host that gives it
 * much more. */
sifr_status device_await(device *dev, const device_word *word, uint32_t value,
                         sifr_error *error) SIFR_MUST_CHECK;

/* Whether the device can wait for a word there, which must be zero; this is tried. */
bool device_can_await(device *dev, const device_word *word);

#endif
