/* Attributes of heads. */
#ifndef DEVICE_HEAD_ATTRIBUTES_H
#define DEVICE_HEAD_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

/* The losses of DEVICE_HEAD_PREFERENCE. */
typedef enum device_preference {
    DEVICE_PREFER_NONE,
    DEVICE_PREFER_SIGMOID,
    DEVICE_PREFER_HINGE,
    DEVICE_PREFER_IPO,
    DEVICE_PREFER_ORPO
} device_preference;

typedef struct device_head_attributes {
    float scale;   /* 0: 1 */
    float softcap; /* 0: none */
    /* DEVICE_HEAD_PREFERENCE */
    device_preference preference;
    float beta;
    int64_t length;
    /* DEVICE_HEAD_DISTIL */
    float temperature, weight;
} device_head_attributes;

#endif
