/* Attributes of the gated delta rule. */
#ifndef DEVICE_DELTA_ATTRIBUTES_H
#define DEVICE_DELTA_ATTRIBUTES_H

#include <stdint.h>

typedef struct device_delta_attributes {
    int32_t key_heads, value_heads;
    int64_t sequences, length; /* rows = sequences x length; cached: the longest sequence */
} device_delta_attributes;

#endif
