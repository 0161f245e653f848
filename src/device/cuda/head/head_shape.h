/* How heads turn products into logits. For .cu files. */
#ifndef CUDA_HEAD_SHAPE_H
#define CUDA_HEAD_SHAPE_H

#include "device/cuda/kernel.h"

DEVICE float head_shaped(float product, float scale, float softcap) {
    float logit = scale * product;
    return softcap > 0.0f ? softcap * tanhf(logit / softcap) : logit;
}

/* The derivative of a logit with respect to scale times the product. */
DEVICE float head_slope(float logit, float softcap) {
    if (!(softcap > 0.0f)) return 1.0f;
    float t = logit / softcap;
    return 1.0f - t * t;
}

#endif
