/* The memory of a device of its own (device_open_separate): what was taken, and of which tier. */
#ifndef CPU_SEPARATE_H
#define CPU_SEPARATE_H

#include "device/device.h"

typedef struct cpu_separate cpu_separate;

sifr_status cpu_separate_open(cpu_separate **out, sifr_error *error) SIFR_MUST_CHECK;
void cpu_separate_close(cpu_separate *memory); /* NULL is harmless */

/* A block that device_take (of the device) or device_take_host gave out, and that is given back.
 * From any thread. */
sifr_status cpu_separate_add(cpu_separate *memory, const void *block, int64_t bytes, bool host,
                             sifr_error *error) SIFR_MUST_CHECK;
void cpu_separate_remove(cpu_separate *memory, const void *block);

/* SIFR_FAILED names the kernel and the operand that is not wholly in one of the device's blocks. */
sifr_status cpu_separate_check(cpu_separate *memory, const device_call *call,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Copies between the device's memory and the host's; SIFR_FAILED where both ends are on one side.
 */
sifr_status cpu_separate_copy(cpu_separate *memory, void *to, const void *from, int64_t bytes,
                              sifr_error *error) SIFR_MUST_CHECK;

device_counts cpu_separate_count(cpu_separate *memory);

#endif
