/* Blocks of a device with separate memory (device_open_separate), by tier. */
#ifndef CPU_SEPARATE_H
#define CPU_SEPARATE_H

#include "device/device.h"

typedef struct cpu_separate cpu_separate;

sifr_status cpu_separate_open(cpu_separate **out, sifr_error *error) SIFR_MUST_CHECK;
void cpu_separate_close(cpu_separate *memory); /* NULL is allowed */

/* Adds a block from device_take (device) or device_take_host (host), or removes one. From any
 * thread. */
sifr_status cpu_separate_add(cpu_separate *memory, const void *block, int64_t bytes, bool host,
                             sifr_error *error) SIFR_MUST_CHECK;
void cpu_separate_remove(cpu_separate *memory, const void *block);

/* SIFR_FAILED names the kernel and the first operand that does not lie within one of the device's
 * blocks. */
sifr_status cpu_separate_check(cpu_separate *memory, const device_call *call,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Copies between device and host memory. SIFR_FAILED if both ends are on one side. */
sifr_status cpu_separate_copy(cpu_separate *memory, void *to, const void *from, int64_t bytes,
                              sifr_error *error) SIFR_MUST_CHECK;

device_counts cpu_separate_count(cpu_separate *memory);

#endif
