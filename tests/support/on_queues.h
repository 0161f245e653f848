/* Tests of the engine run once more with SIFR_TEST_QUEUED in the environment (test_on_queues.sh):
 * then what trains on the CPU trains on a device over it that has only begun its work and hides its
 * memory. */
#ifndef SUPPORT_ON_QUEUES_H
#define SUPPORT_ON_QUEUES_H

#include "device/device.h"

bool on_queues(void);

/* Opens such a device, of one thread; each rests at other times. */
sifr_status on_queues_open(device **out, sifr_error *error) SIFR_MUST_CHECK;

#endif
