/* What a run says of where its time and memory go, as far as its config asks: the breakdowns of
 * time and memory, the log of collectives, the trace. The first rank says it, of all ranks. */
#ifndef TRAIN_PROFILE_H
#define TRAIN_PROFILE_H

#include "engine/handle.h"
#include "plan/price/price.h"
#include "train/profile/breakdown.h"
#include "train/profile/comms_log.h"
#include "train/profile/trace.h"
#include "train/profile/unit_times.h"

typedef struct train_profile {
    const sifr_config *config;
    const train_host *host;
    sifr_engine *engine;
    float *planned;    /* by instruction: see train_breakdown_add; NULL where it is not asked for */
    uint64_t baseline; /* memory before anything was loaded */
    int64_t first_step; /* where the run began */
    double pause;       /* seconds that the last train_profile_step took for itself */
    train_breakdown breakdown;
    train_unit_times units; /* where activation_checkpointing.profile asks for it */
    train_comms_log *comms;
    train_trace *trace;
} train_profile;

/* Takes what it needs for the run's steps. All is borrowed. Not a collective: a rank may fail
 * alone. `total_steps` are those of the run; without a machine nothing is planned. */
sifr_status train_profile_open(train_profile *profile, const sifr_config *config,
                               const train_host *host, sifr_engine *engine,
                               const plan_machine *machine, uint64_t baseline, int64_t total_steps,
                               sifr_error *error) SIFR_MUST_CHECK;
void train_profile_close(train_profile *profile); /* harmless on a zeroed one */

/* The rest is for all ranks alike. Before the first step: */
sifr_status train_profile_start(train_profile *profile, sifr_error *error) SIFR_MUST_CHECK;

/* Around the engine's step, which took `seconds`. The third may exchange and write, and is no part
 * of the step. */
void train_profile_begin_step(train_profile *profile);
void train_profile_end_step(train_profile *profile);
sifr_status train_profile_step(train_profile *profile, double seconds,
                               sifr_error *error) SIFR_MUST_CHECK;

/* After the last step of a run that ends well, or was asked to stop. */
sifr_status train_profile_end(train_profile *profile, sifr_error *error) SIFR_MUST_CHECK;

#endif
