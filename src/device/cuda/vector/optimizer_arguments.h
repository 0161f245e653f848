/* Arguments of the optimizers' kernels (updates.h). */
#ifndef CUDA_OPTIMIZER_ARGUMENTS_H
#define CUDA_OPTIMIZER_ARGUMENTS_H

#include <stdint.h>

#include "device/call.h"

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
    int64_t *sums;                                          /* of LAMB's first kernel */
    const float *trust;                                     /* of its last one */
    int64_t count;
    uint64_t element; /* in the model, of the first one: bf16 states are rounded by its number */
    const device_step *step;
    float epsilon, weight_decay, lr_scale;
    bool decoupled, nesterov;
    uint8_t reserved[2];
} update_arguments;

enum { LAMB_TRUST_THREADS = 64 };

/* The trust ratio of a weight, from `parts` pairs of sums that lie `stride` words apart. */
typedef struct lamb_trust_arguments {
    const int64_t *sums;
    float *trust;
    int64_t parts, stride;
    float least, most;
} lamb_trust_arguments;

#endif
