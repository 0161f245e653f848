/* What an engine is made of: for the files of this room, and for tests that look inside. */
#ifndef ENGINE_ENGINE_PRIVATE_H
#define ENGINE_ENGINE_PRIVATE_H

#include "engine/handle.h"

struct sifr_engine {
    const sifr_model *model;
    sifr_settings settings;
    device *dev;
    comm_group *group;
    comm_group *own_group;                /* the same where the engine closes it, else NULL */
    plan_schedule *training, *evaluation; /* evaluation is made when it is first asked for */
    engine_executor *trainer, *evaluator;
    engine_swap *swap;    /* what of the state is on disk; NULL: nothing */
    engine_pinned pinned; /* for it */
    int32_t cleaned;      /* directories of dead runs that were removed */
    int64_t steps, updates;
    engine_loss_scaler scaler; /* SIFR_FP16; the others keep its scale at 1 */
};

#endif
