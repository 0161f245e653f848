/* Attributes of the kernels of rows.def. */
#ifndef DEVICE_ROW_ATTRIBUTES_H
#define DEVICE_ROW_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "device/kernels/words.h"

/* The most rows that DEVICE_UNFOLD joins. */
#define DEVICE_MOST_NEIGHBOURS 31

/* On CPUs a norm's backward adds up its weights' gradients over runs of so many rows, then over
 * these runs, both in order. */
#define DEVICE_NORM_ROWS 128

typedef struct device_embedding_attributes {
    bool padded;
    int32_t padding; /* if padded: this row of dw0 gets nothing */
    int32_t first;
    device_words words; /* rows of the whole table, as first and padding are */
} device_embedding_attributes;

typedef struct device_norm_attributes {
    float epsilon;
    int32_t groups; /* 0 is 1 */
    bool plus_one;
} device_norm_attributes;

typedef struct device_rope_attributes {
    int32_t heads, head_dim;
    int32_t rotary_dim; /* 0: head_dim */
    bool interleaved;
} device_rope_attributes;

typedef struct device_split_qkv_attributes {
    int32_t groups, parts;
} device_split_qkv_attributes;

/* The most values that DEVICE_JOIN joins. */
#define DEVICE_MOST_JOINED 6

typedef struct device_join_attributes {
    int64_t end[DEVICE_MOST_JOINED]; /* where each one's columns end; 0: there are no more */
} device_join_attributes;

typedef struct device_unfold_attributes {
    int64_t length; /* rows of a sequence */
    int32_t size;
} device_unfold_attributes;

/* The most tokens that DEVICE_SHORT_CONV looks at. */
#define DEVICE_MOST_TAPS 8

typedef struct device_short_conv_attributes {
    int64_t length; /* rows of a sequence; cached: the longest one */
    int64_t sequences;
} device_short_conv_attributes;

#endif
