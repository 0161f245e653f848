/* The engine's members, for the files of this room and for tests that look inside. */
#ifndef ENGINE_ENGINE_PRIVATE_H
#define ENGINE_ENGINE_PRIVATE_H

#include "engine/handle.h"

struct sifr_engine {
    const sifr_model *model;
    sifr_settings settings;
    device *dev;
    comm_group *group;
    comm_group *own_group;                /* the same if the engine closes it, otherwise NULL */
    plan_schedule *training, *evaluation; /* evaluation is made on first use */
    engine_executor *trainer, *evaluator;
    engine_swap *swap;    /* state on disk; NULL: none */
    engine_pinned pinned; /* for it */
    int32_t cleaned;      /* directories of killed runs that were removed */
    int64_t steps, updates;
    engine_loss_scaler scaler; /* SIFR_FP16 only; otherwise its scale stays 1 */
};

#endif
