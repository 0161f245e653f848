/* Attributes of updates, and of DEVICE_ORTHOGONALISE, which is part of one. */
#ifndef DEVICE_UPDATE_ATTRIBUTES_H
#define DEVICE_UPDATE_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

/* Elements that share a scale where values are kept as codes of 8 bits. */
#define DEVICE_CODED 256

typedef struct device_update_attributes {
    float epsilon, weight_decay; /* what changes from step to step is in the step */
    float lr_scale;              /* of the weights' group: times the step's rate */
    float min_coeff, max_coeff;  /* LAMB */
    float momentum;              /* Muon */
    int32_t matrices;            /* DEVICE_ORTHOGONALISE */
    bool gram;
    float clip, least_scale; /* Adafactor */
    int64_t first;           /* Adafactor: x0's first element in the matrix */
    /* Set by the device for its kernels: t of LAMB, 1 / max(1, RMS(u) / clip) and l of
     * Adafactor. */
    float trust, own_rate;
    bool scaled; /* Adafactor */
    bool decoupled, nesterov;
    bool averages; /* there is an average of the weights */
    bool keeps;    /* w1 is written even if step->update is false: of hidden memory */
} device_update_attributes;

#endif
