/* Arguments of the optimizers' kernels (updates.h). */
#ifndef CUDA_OPTIMIZER_ARGUMENTS_H
#define CUDA_OPTIMIZER_ARGUMENTS_H

#include <stdint.h>

#include "device/device.h"

typedef struct update_operand {
    void *data; /* NULL: none */
    int32_t type;
    int32_t reserved;
} update_operand;

/* Packs of a thread. */
enum { UPDATE_PACKS = 4 };

typedef struct update_arguments {
    update_operand gradient, kinds[1 + DEVICE_SAVED], copy; /* kinds: weights, then states */
    float *average;                                         /* of the weights; NULL: none */
    int64_t count;
    uint64_t element; /* in the model, of the first one: bf16 states are rounded by its number */
    const device_step *step;
    float epsilon, weight_decay, lr_scale;
    bool decoupled, nesterov;
    uint8_t reserved[2];
} update_arguments;

#endif
