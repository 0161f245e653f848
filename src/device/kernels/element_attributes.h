/* Attributes of the kernels of elements.def. */
#ifndef DEVICE_ELEMENT_ATTRIBUTES_H
#define DEVICE_ELEMENT_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct device_gelu_attributes {
    bool exact;
} device_gelu_attributes;

typedef struct device_relu_attributes {
    bool squared;
} device_relu_attributes;

typedef struct device_swish_attributes {
    float slope;
} device_swish_attributes;

typedef struct device_clip_attributes {
    float limit;
} device_clip_attributes;

typedef struct device_xielu_attributes {
    float beta, epsilon;
} device_xielu_attributes;

typedef struct device_scale_attributes {
    float factor;
    bool round_factor;
} device_scale_attributes;

/* Numbers are drawn by elements of the whole value, of which the call may have some columns. */
typedef struct device_dropout_attributes {
    float probability;
    int64_t whole, first; /* columns of the whole value, and the first here; 0: it is whole */
} device_dropout_attributes;

#endif
