/* A call of all ranks that one of them cannot make. */
#include "base/inside.h"
#include "engine/engine_private.h"

sifr_status sifr_engine_fail(sifr_engine *engine, sifr_engine_call call, const char *message,
                             sifr_error *error) {
    BASE_ENTER(error, engine, message);
    sifr_error own, *said = error ? error : &own;
    base_set_error(said, SIFR_FAILED, "%s", message);
    bool alone = comm_size(engine->group) == 1;
    switch (call) {
    case SIFR_CALL_STEP:
        return alone ? SIFR_FAILED : engine_fail_step(engine, said);
    case SIFR_CALL_EVALUATE:
    case SIFR_CALL_EVALUATE_LOGITS:
        return alone ? SIFR_FAILED
                     : engine_fail_evaluation(engine, call == SIFR_CALL_EVALUATE_LOGITS, said);
    default:
        return base_fail(error, SIFR_USAGE, "sifr_engine_fail: call: %d is none of its values",
                         (int)call);
    }
}
