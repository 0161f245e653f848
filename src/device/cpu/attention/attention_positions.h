/* The relative positions of DEVICE_ATTENTION on the CPU: which rows of the tables distances have,
 * and the gradients of the tables, which many sequences add to. */
#ifndef CPU_ATTENTION_POSITIONS_H
#define CPU_ATTENTION_POSITIONS_H

#include "device/cpu/attention/kernels_attention.h"
#include "device/cpu/cpu.h"
#include "device/cpu/product/kernels_matrix.h"

/* Rows of the tables x4 and x5 of a call; 0: it has none. */
int64_t cpu_position_places(const device_call *call);

/* Floats of scratch for the rows of all distances, which cpu_position_rows writes. */
int64_t cpu_position_floats(const device_call *call);
void cpu_position_rows(const device_call *call, int32_t *rows);

/* Sums of the tables' gradients: the sequences of a call are cut into groups, by their shape alone.
 * Each group of a head has sums of its own, to which its sequences are added in order; then the
 * groups' are added in order. */
int64_t cpu_position_groups(const device_call *call);
int64_t cpu_position_width(const device_call *call); /* of a row of sums */
/* Floats of the sums of all groups and heads; none but in a backward call. */
int64_t cpu_position_sums(const device_call *call);
void cpu_position_clear(const device_call *call, int64_t head, int64_t group, float *sums);
/* Points `a` at the tables of a head, and, if there are sums, at those of a group. */
void cpu_position_tile(const device_call *call, int64_t head, int64_t group, float *sums,
                       cpu_attention *a);
/* Writes the gradients of the tables from all sums. */
void cpu_position_finish(device *dev, const device_call *call, float *sums);

#endif
