/* Whether what a step moves, sends and pins is what its plan says. A difference is an error, whose
 * message has both numbers. */
#ifndef STEP_CHECKS_H
#define STEP_CHECKS_H

#include "engine/engine_private.h"

/* So far: bytes between the device and the disk, and the device and host memory; all that went to
 * or from a separate device; what each group of ranks has sent. */
typedef struct step_counts {
    int64_t read[2], written[2];
    device_counts crossed;
    comm_ledger wire[ENGINE_GROUPS];
} step_counts;

/* The steps before. */
typedef struct step_past {
    bool ran;     /* there was one */
    bool updated; /* the last one changed something */
} step_past;

/* Waits for what is on its way to the disk. */
sifr_status step_checks_count(const sifr_engine *engine, step_counts *out, sifr_error *error);

/* After a step, with the counts in front of it. */
sifr_status step_checks_compare(const sifr_engine *engine, const step_counts *before,
                                const step_past *last, bool updated, sifr_error *error);

/* What is asked for is pinned, each transfer's memory, but where the system does not let it. */
sifr_status step_checks_pinned(const sifr_engine *engine, sifr_error *error);

#endif
