/* An engine within a step or an evaluation of its own. */
#include "engine/engine_private.h"

sifr_status engine_check_idle(const sifr_engine *engine, sifr_error *error) {
    if (!engine->running) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "engine: it is in use, by the step or the evaluation whose loss this call "
                     "comes from; call it when that has ended");
}
