/* Queues that wait for a flag, which a thread of the host writes. So the host need not wait for a
 * transfer before it gives a queue the work behind that transfer. */
#ifndef DEVICE_FLAG_H
#define DEVICE_FLAG_H

#include "device/device.h"

typedef struct device_flag {
    uint32_t value; /* by the functions below alone */
} device_flag;

/* Whoever sees the new value sees all that the thread wrote before. */
static inline void device_flag_set(device_flag *flag, uint32_t value) {
    __atomic_store_n(&flag->value, value, __ATOMIC_RELEASE);
}

/* Whether it has come to `value`; values wrap around. */
static inline bool device_flag_is_at(const device_flag *flag, uint32_t value) {
    return (int32_t)(__atomic_load_n(&flag->value, __ATOMIC_ACQUIRE) - value) >= 0;
}

/* Work that DEVICE_COMPUTE is given from now on starts when *flag, in memory of device_take_host,
 * has come to `value`. A thread of the host sets the flag, after it wrote all that the work reads.
 * It must do so in the end, whatever fails: until then the queue stands still, and so does a host
 * that gives it much more work. */
sifr_status device_wait_flag(device *dev, const device_flag *flag, uint32_t value,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Tries whether the device can wait for flags: waits for *flag, which must be 0, to be 0. */
bool device_can_wait_flags(device *dev, const device_flag *flag);

/* For device_ran_of: the host waits for a transfer behind which DEVICE_COMPUTE has work. `why`, a
 * few words, does not count where the last trial failed, which is reason enough. */
void device_note_host_wait(device *dev, const char *why);

#endif
