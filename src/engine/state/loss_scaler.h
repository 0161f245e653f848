/* The loss scale of fp16, like DeepSpeed's DynamicLossScaler: a pure function of its state and of
 * whether a step overflowed. tests/golden/make_loss_scales.py compares it with the original.
 */
#ifndef ENGINE_LOSS_SCALER_H
#define ENGINE_LOSS_SCALER_H

#include "sifr/engine.h"

/* The state that a resumed run needs besides its options. */
typedef struct engine_loss_scaler {
    double scale;          /* of the step to come */
    int64_t iteration;     /* steps seen */
    int64_t last_overflow; /* iteration of the last overflow; -1: none yet */
    int64_t hysteresis;    /* 1: the next overflow lowers the scale */
    bool exhausted;        /* a step overflowed at the least scale */
} engine_loss_scaler;

engine_loss_scaler engine_loss_scaler_begin(const sifr_fp16 *options);

/* Updates the scale after a step. False: the step overflowed at the least scale, so a further step
 * could not do better; never with a fixed scale. */
bool engine_loss_scaler_update(engine_loss_scaler *scaler, const sifr_fp16 *options, bool overflow);

#endif
