/* Reports of a run's time and memory, as its config asks: breakdowns of time and memory, the log of
 * collectives, the trace. The first rank reports for all ranks.
 */
#ifndef TRAIN_PROFILE_H
#define TRAIN_PROFILE_H

#include "engine/handle.h"
#include "plan/price/price.h"
#include "train/profile/breakdown.h"
#include "train/profile/comms_log.h"
#include "train/profile/flops.h"
#include "train/profile/trace.h"
#include "train/profile/unit_times.h"

typedef struct train_profile train_profile;

/* What the watcher of a group of the mesh is told. */
typedef struct train_ear {
    train_profile *profile;
    plan_span span;
} train_ear;

struct train_profile {
    const sifr_config *config;
    const train_host *host;
    sifr_engine *engine;
    float *planned;     /* by instruction: see train_breakdown_add; NULL if not asked for */
    uint64_t baseline;  /* memory before the block was taken */
    int64_t first_step; /* where the run began */
    double pause;       /* time that the last train_profile_step itself took */
    train_breakdown breakdown;
    train_unit_times units; /* for activation_checkpointing.profile */
    train_flops flops;      /* on the first rank */
    train_comms_log *comms;
    train_trace *trace;
    train_ear ears[ENGINE_GROUPS];
};

/* Takes all memory that the run's steps need. All arguments are borrowed. Not a collective: a rank
 * may fail alone. `total_steps` is the number of steps of the run; without a machine there are no
 * planned times. */
sifr_status train_profile_open(train_profile *profile, const sifr_config *config,
                               const train_host *host, sifr_engine *engine,
                               const plan_machine *machine, uint64_t baseline, int64_t total_steps,
                               sifr_error *error) SIFR_MUST_CHECK;
void train_profile_close(train_profile *profile); /* harmless on a zeroed one */

/* All ranks call the functions below. Before the first step: */
sifr_status train_profile_start(train_profile *profile, sifr_error *error) SIFR_MUST_CHECK;

/* Called around the engine's step, which took `seconds`. The third function may communicate and
 * write; it is not part of the step. */
void train_profile_begin_step(train_profile *profile);
void train_profile_end_step(train_profile *profile);
sifr_status train_profile_step(train_profile *profile, double seconds,
                               sifr_error *error) SIFR_MUST_CHECK;

/* After the last step of a run that succeeded or was asked to stop. */
sifr_status train_profile_end(train_profile *profile, sifr_error *error) SIFR_MUST_CHECK;

#endif
