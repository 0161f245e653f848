/* The loss scale of fp16: what DeepSpeed's DynamicLossScaler does, as a pure function of its state
 * and of whether a step overflowed. tests/golden/make_loss_scales.py holds it against the
 * original. */
#ifndef ENGINE_LOSS_SCALER_H
#define ENGINE_LOSS_SCALER_H

#include "sifr/engine.h"

/* All that a resumed run needs beside its options. */
typedef struct engine_loss_scaler {
    double scale;          /* of the step to come */
    int64_t iteration;     /* steps seen */
    int64_t last_overflow; /* the iteration of it; -1: none yet */
    int64_t hysteresis;    /* 1: the next overflow lowers the scale */
    bool exhausted;        /* a step overflowed at the least scale */
} engine_loss_scaler;

/* SIFR_USAGE for options that are no loss scaling. */
sifr_status engine_loss_scaler_check(const sifr_fp16 *options, sifr_error *error) SIFR_MUST_CHECK;

engine_loss_scaler engine_loss_scaler_begin(const sifr_fp16 *options);

/* Takes note of a step. False: it overflowed at the least scale, so that no other can do better;
 * never with a fixed scale. */
bool engine_loss_scaler_update(engine_loss_scaler *scaler, const sifr_fp16 *options, bool overflow);

#endif
