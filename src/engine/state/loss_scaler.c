#include "engine/state/loss_scaler.h"

#include <math.h>

#include "base/assert.h"

#define SCALE_FACTOR 2.0

engine_loss_scaler engine_loss_scaler_begin(const sifr_fp16 *o) {
    return (engine_loss_scaler){.scale = o->loss_scale > 0 ? o->loss_scale
                                                           : ldexp(1, o->initial_scale_power),
                                .last_overflow = -1,
                                .hysteresis = o->hysteresis};
}

/* False if the scale is already the least one. */
static bool lower(engine_loss_scaler *s, const sifr_fp16 *o) {
    if (o->hysteresis != 1 && s->hysteresis != 1) {
        s->hysteresis--;
        return true;
    }
    if (s->scale == o->min_loss_scale) return false;
    s->scale = fmax(s->scale / SCALE_FACTOR, o->min_loss_scale);
    return true;
}

bool engine_loss_scaler_update(engine_loss_scaler *s, const sifr_fp16 *o, bool overflow) {
    base_assert(s->last_overflow < s->iteration);
    if (o->loss_scale > 0) return true;
    if (overflow) {
        s->exhausted = !lower(s, o);
        if (s->exhausted) return false;
        s->last_overflow = s->iteration;
    } else {
        int64_t clean = s->iteration - s->last_overflow - 1;
        bool grows = clean > 0 && clean % o->loss_scale_window == 0;
        if (o->consecutive_hysteresis || grows) s->hysteresis = o->hysteresis;
        if (grows) s->scale *= SCALE_FACTOR;
    }
    s->iteration++;
    return true;
}
