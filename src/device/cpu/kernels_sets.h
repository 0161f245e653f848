/* For kernels_*.c: lanes, and names of this instruction set's kernels. */
#ifndef CPU_KERNELS_SETS_H
#define CPU_KERNELS_SETS_H

#include "device/cpu/kernels.h"
#include "device/cpu/lanes.h"

void KERNEL(norm)(const cpu_part *part);
void KERNEL(norm_backward)(const cpu_part *part);
void KERNEL(rope)(const cpu_part *part);
void KERNEL(split_qkv)(const cpu_part *part);
void KERNEL(join)(const cpu_part *part);
void KERNEL(unfold)(const cpu_part *part);
void KERNEL(short_conv)(const cpu_part *part);
void KERNEL(short_conv_cached)(const cpu_part *part);
void KERNEL(short_conv_state)(const cpu_part *part);
void KERNEL(short_conv_weights)(const cpu_part *part);
void KERNEL(xielu)(const cpu_part *part);
void KERNEL(blocks8)(const cpu_part *part);
void KERNEL(blocks4)(const cpu_part *part);
void KERNEL(power)(const cpu_part *part);
void KERNEL(rows)(const cpu_part *part);
void KERNEL(elementwise)(const cpu_part *part);
#define DEVICE_UPDATE(NAME, name, ...) void KERNEL(name)(const cpu_part *part);
#define DEVICE_UPDATE_WHOLE(...)
#include "device/kernels.def"
void KERNEL(adafactor_sums)(const cpu_part *part);
void KERNEL(adafactor_squares)(const cpu_part *part);
void KERNEL(exact_squares)(const device_matrix *x, int64_t first, int64_t count,
                           base_exact_sum *sum);
void KERNEL(embedding)(const cpu_part *part);
void KERNEL(embedding_backward)(const cpu_part *part);

#endif
