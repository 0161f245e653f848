/* What did the work of the GPUs that a test program has opened: a line on standard output, as
 *     ran: products cuBLASLt 13.0.2 12, own 3 (WHY); waits words 40, host 2 (WHY); memory pinned
 * for devices that differ in words a line each, with their sums. The scripts of make gpu-check take
 * them. */
#ifndef FAKE_RAN_H
#define FAKE_RAN_H

#include "device/device.h"

void fake_ran_note(const device *dev); /* of a device that is about to close */
void fake_ran_print(void);             /* of those noted since the last call */

#endif
