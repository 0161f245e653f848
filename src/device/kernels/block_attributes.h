/* Attributes of DEVICE_ENCODE_BLOCKS4. */
#ifndef DEVICE_BLOCK_ATTRIBUTES_H
#define DEVICE_BLOCK_ATTRIBUTES_H

#include <stdint.h>

/* x0 is `slices` runs of as many elements, in groups of `near`, which divides them. Those of the
 * first place of all groups come first in y, then those of the second place, and so on. 0 or 1
 * slices: all as it is. */
typedef struct device_block_attributes {
    int32_t slices, near;
} device_block_attributes;

#endif
