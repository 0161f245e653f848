/* Attributes of heads. */
#ifndef DEVICE_HEAD_ATTRIBUTES_H
#define DEVICE_HEAD_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "device/kernels/words.h"
#include "sifr/objective.h"

typedef struct device_head_attributes {
    float scale;   /* 0: 1 */
    float softcap; /* 0: none */
    device_words words;
    /* DEVICE_HEAD_PREFERENCE */
    sifr_preference preference;
    float beta;
    int64_t length;
    /* DEVICE_HEAD_DISTIL */
    float temperature, weight;
    /* DEVICE_OWN_LOSS: the model's; its function may be NULL where calls are only planned */
    const sifr_own_loss_args *own;
} device_head_attributes;

#endif
