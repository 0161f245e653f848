/* The table of a set's kernels. */
#include "device/cpu/kernels_sets.h"

const cpu_kernels KERNEL(cpu_kernels) = {.norm = KERNEL(norm),
                                         .norm_backward = KERNEL(norm_backward),
                                         .rope = KERNEL(rope),
                                         .split_qkv = KERNEL(split_qkv),
                                         .join = KERNEL(join),
                                         .unfold = KERNEL(unfold),
                                         .short_conv = KERNEL(short_conv),
                                         .short_conv_cached = KERNEL(short_conv_cached),
                                         .short_conv_state = KERNEL(short_conv_state),
                                         .short_conv_weights = KERNEL(short_conv_weights),
                                         .xielu = KERNEL(xielu),
                                         .blocks8 = KERNEL(blocks8),
                                         .blocks4 = KERNEL(blocks4),
                                         .power = KERNEL(power),
                                         .rows = KERNEL(rows),
                                         .elementwise = KERNEL(elementwise),
                                         .updates =
                                             {
#define DEVICE_UPDATE(NAME, name, ...) [DEVICE_UPDATE_##NAME] = KERNEL(name),
#define DEVICE_UPDATE_WHOLE(...)
#include "device/kernels.def"
                                             },
                                         .exact_squares = KERNEL(exact_squares),
                                         .adafactor_sums = KERNEL(adafactor_sums),
                                         .adafactor_squares = KERNEL(adafactor_squares),
                                         .embedding = KERNEL(embedding),
                                         .embedding_backward = KERNEL(embedding_backward)};
