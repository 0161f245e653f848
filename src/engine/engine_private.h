/* The engine's members, for the files of this room and for tests that look inside. */
#ifndef ENGINE_ENGINE_PRIVATE_H
#define ENGINE_ENGINE_PRIVATE_H

#include "engine/handle.h"

/* Evaluation; made on first use. */
typedef struct engine_evaluator {
    plan_schedule *schedule;
    engine_executor *executor;
} engine_evaluator;

struct sifr_engine {
    const sifr_model *model;
    sifr_settings settings;
    device *dev;
    comm_group *group;
    engine_groups groups;  /* of the mesh; opened by engine_take */
    comm_group *own_group; /* the same if the engine closes it, otherwise NULL */
    plan_schedule *training;
    engine_executor *trainer;
    engine_evaluator evaluator, logits_evaluator;
    engine_swap *swap;     /* state on disk; NULL: none */
    engine_pinned pinned;  /* for it */
    engine_pieces *pieces; /* of a device that hides its memory; otherwise NULL */
    int32_t cleaned;       /* directories of killed runs that were removed */
    int64_t steps, updates;
    engine_loss_scaler scaler; /* SIFR_FP16 only; otherwise its scale stays 1 */
    optim_memory memory;
    uint64_t *written;  /* of each weight a hash of what the caller wrote; NULL: one rank */
    bool running;       /* a step or an evaluation: what an own loss is called from */
    bool shows_average; /* parameters are the average, of an optimizer that averages */
};

/* SIFR_USAGE within a step or an evaluation, that is, from the loss of the caller's. */
sifr_status engine_check_idle(const sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* After a run of a schedule: SIFR_OK unless a function of the caller's failed on any rank; harmless
 * where there is none. All ranks call it. */
sifr_status engine_heed_calls(const sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* What all ranks give a call alike, each with its name in messages. The first one is the call. */
enum { ENGINE_FACTS = 5 };
typedef struct engine_fact {
    const char *label;
    uint64_t value;
} engine_fact;
typedef struct engine_given {
    engine_fact facts[ENGINE_FACTS];
    int count;
} engine_given;
engine_given engine_given_step(const sifr_engine *engine, double rate);
engine_given engine_given_evaluation(bool logits);
engine_given engine_given_reading(const char *name, engine_part part, int64_t first, int64_t count);
uint64_t engine_given_hash(const engine_given *given);

/* Of several ranks: SIFR_OK if none has failed by itself, and all give the same. In one message,
 * but where that is not so. All ranks call it. */
sifr_status engine_agree(const sifr_engine *engine, const engine_given *given, sifr_status own,
                         sifr_error *error) SIFR_MUST_CHECK;
/* Where that is known: fails on all ranks, with what differs and where. */
sifr_status engine_tell_apart(const sifr_engine *engine, const engine_given *given,
                              sifr_error *error) SIFR_MUST_CHECK;

/* What was written in weights is compared by the next step. */
sifr_status engine_open_given(sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;
void engine_note_seed(sifr_engine *engine, uint64_t seed);
void engine_note_values(sifr_engine *engine, size_t index, int64_t first, size_t count,
                        const float *values);
void engine_note_restored(sifr_engine *engine); /* by a checkpoint: all is as it has it */

/* On one of several ranks that has no batch, since it failed with *error, which may become that of
 * another rank: ends the step on all ranks, and an evaluation where they make it together. */
sifr_status engine_fail_step(sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_fail_evaluation(sifr_engine *engine, bool logits,
                                   sifr_error *error) SIFR_MUST_CHECK;

#endif
