/* Queues that wait for a word, which a thread of the host writes. So the host need not wait for a
 * transfer before it gives a queue the work behind that transfer. */
#ifndef DEVICE_AWAIT_H
#define DEVICE_AWAIT_H

#include "device/device.h"

typedef struct device_word {
    uint32_t value; /* by the functions below alone */
} device_word;

/* Whoever sees the new value sees all that the thread wrote before. */
static inline void device_word_set(device_word *word, uint32_t value) {
    __atomic_store_n(&word->value, value, __ATOMIC_RELEASE);
}

/* Whether it has come to `value`; values wrap around. */
static inline bool device_word_is_at(const device_word *word, uint32_t value) {
    return (int32_t)(__atomic_load_n(&word->value, __ATOMIC_ACQUIRE) - value) >= 0;
}

/* Work that DEVICE_COMPUTE is given from now on starts when *word, in memory of device_take_host,
 * has come to `value`. A thread of the host sets the word, after it wrote all that the work reads.
 * It must do so in the end, whatever fails: until then the queue stands still, and so does a host
 * that gives it much more work. */
sifr_status device_await(device *dev, const device_word *word, uint32_t value,
                         sifr_error *error) SIFR_MUST_CHECK;

/* Tries whether the device can wait for words: waits for *word, which must be 0, to be 0. */
bool device_can_await(device *dev, const device_word *word);

/* For device_ran_of: the host waits for a transfer behind which DEVICE_COMPUTE has work. `why`, a
 * few words, does not count where the last trial failed, which is reason enough. */
void device_note_host_wait(device *dev, const char *why);

#endif
