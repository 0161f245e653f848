/* The report of memory_breakdown: planned and measured memory of all ranks. */
#ifndef TRAIN_MEMORY_REPORT_H
#define TRAIN_MEMORY_REPORT_H

#include "engine/handle.h"
#include "train/report/callbacks.h"

typedef struct train_memory_now {
    uint64_t
        measured; /* of this rank, beyond the program's own memory before anything was loaded */
    int64_t profiling; /* memory for a trace and logs; not part of the plan */
} train_memory_now;

/* Prints a table through the host: each class of the plan at the step's peak, and the memory
 * measured now, with least, median and largest over the ranks. `when` ends the heading. All ranks
 * call it. */
sifr_status train_memory_say(const sifr_engine *engine, const train_memory_now *now,
                             const char *when, const train_host *host,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
