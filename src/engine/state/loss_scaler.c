#include "engine/state/loss_scaler.h"

#include <math.h>

#include "base/errors.h"

#define SCALE_FACTOR 2.0

sifr_status engine_loss_scaler_check(const sifr_loss_scaling *o, sifr_error *error) {
    bool fixed = isfinite(o->fixed) && o->fixed > 0;
    bool dynamic = o->fixed == 0 && isfinite(o->initial) && o->initial > 0 && isfinite(o->least) &&
                   o->least > 0 && o->window > 0 && o->hysteresis > 0;
    if (fixed || dynamic) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "loss scaling: a fixed scale must be finite and above 0, or 0; then the "
                     "initial and the least scale, the window and the hysteresis must be above 0");
}

engine_loss_scaler engine_loss_scaler_begin(const sifr_loss_scaling *o) {
    return (engine_loss_scaler){.scale = o->fixed > 0 ? o->fixed : o->initial,
                                .last_overflow = -1,
                                .hysteresis = o->hysteresis};
}

/* False where the scale is the least one already. */
static bool lower(engine_loss_scaler *s, const sifr_loss_scaling *o) {
    if (o->hysteresis != 1 && s->hysteresis != 1) {
        s->hysteresis--;
        return true;
    }
    if (s->scale == o->least) return false;
    s->scale = fmax(s->scale / SCALE_FACTOR, o->least);
    return true;
}

bool engine_loss_scaler_update(engine_loss_scaler *s, const sifr_loss_scaling *o, bool overflow) {
    if (o->fixed > 0) return true;
    if (overflow) {
        s->exhausted = !lower(s, o);
        if (s->exhausted) return false;
        s->last_overflow = s->iteration;
    } else {
        int64_t clean = s->iteration - s->last_overflow - 1;
        bool grows = clean > 0 && clean % o->window == 0;
        if (o->consecutive_hysteresis || grows) s->hysteresis = o->hysteresis;
        if (grows) s->scale *= SCALE_FACTOR;
    }
    s->iteration++;
    return true;
}
