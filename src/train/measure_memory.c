/* After the last step: the memory of a run, as the system counts it. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "train/run.h"

typedef struct rank_memory {
    int64_t own, shared; /* anonymous memory beyond the baseline; memory of windows */
    int64_t block;       /* resident bytes of the block that this rank shares; 0: it shares none */
} rank_memory;

/* The kernel divides a shared page among the processes that have read it so far, which varies by
 * rank and time; only the sum over the ranks is meaningful. So a block counts where it is whole,
 * which is with its owner, as blocks of pipeline stages differ; what else is shared is divided
 * evenly. */
static int64_t even_share(const rank_memory *all, int32_t ranks) {
    int64_t beside = 0;
    for (int32_t r = 0; r < ranks; r++) beside += all[r].shared - all[r].block;
    return base_max_i64(beside, 0) / ranks;
}

/* The largest memory of a rank beyond the baseline. */
static int64_t most_of_a_rank(const rank_memory *all, int32_t ranks) {
    int64_t most = 0, share = even_share(all, ranks);
    for (int32_t r = 0; r < ranks; r++)
        most = base_max_i64(most, all[r].own + all[r].block + share);
    return most;
}

/* Of the first rank's process. */
static int64_t of_process(const rank_memory *all, int32_t ranks, int64_t baseline) {
    return baseline + all[0].own + all[0].block + even_share(all, ranks);
}

static void note_classes(const engine_resident *resident, int64_t process, train_resident *out) {
    int64_t classes = 0;
    for (int c = 0; c < PLAN_CLASSES; c++) classes += out->classes[c] = resident->classes[c];
    out->gaps = resident->block - classes;
    out->rest = base_max_i64(process - resident->block, 0); /* pages may have been elsewhere */
    out->process = resident->block + out->rest;
    out->known = true;
}

sifr_status train_measure_memory(train_state *t, train_outcome *outcome, sifr_error *error) {
    const train_monitor *m = &t->monitor;
    int32_t ranks = comm_size(t->group);
    rank_memory mine = {(int64_t)m->largest_own - (int64_t)t->baseline, (int64_t)m->shared, 0};
    rank_memory *all;
    engine_resident resident;
    sifr_error why = {0};
    sifr_status counted = engine_count_resident(engine_trainer(t->engine), &resident, &why);
    if (counted == SIFR_OK && resident.shared) mine.block = resident.block;
    sifr_status status = base_alloc((size_t)ranks, sizeof *all, &all, error);
    BASE_TRY(train_agree(t, status, error));
    status = comm_all_gather_control(t->group, &mine, sizeof mine, all, error);
    if (status == SIFR_OK) {
        outcome->measured_bytes = most_of_a_rank(all, ranks);
        if (counted == SIFR_OK)
            note_classes(&resident, of_process(all, ranks, (int64_t)t->baseline),
                         &outcome->resident);
        else
            memcpy(outcome->resident.why, why.message, sizeof outcome->resident.why);
    }
    free(all);
    return status;
}
