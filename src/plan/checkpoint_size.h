/* What a run's checkpoints and its model take of the file system that they go to. */
#ifndef PLAN_CHECKPOINT_SIZE_H
#define PLAN_CHECKPOINT_SIZE_H

#include "model/description.h"
#include "plan/schedule.h"

/* That file system; zeroed: nothing is known of it, and all fits. */
typedef struct plan_output {
    bool known;
    int64_t room_bytes;  /* free there */
    int32_t checkpoints; /* that the run adds, at one time */
    int64_t model_bytes; /* of the trained model, beside them */
    int32_t swaps;       /* ranks whose swap files lie there, too */
} plan_output;

/* The values in a checkpoint of all ranks: master weights and moments, in the types in which they
 * are kept. */
int64_t plan_checkpoint_bytes(const sifr_model *model, const plan_settings *settings);

/* What must be free for `count` checkpoints of `bytes` each: with manifest, logs and the like. */
int64_t plan_checkpoint_room(int64_t bytes, int64_t count);

/* What must be free of `output` for a run whose ranks each have `nvme_bytes` on disk. */
int64_t plan_output_bytes(const plan_output *output, const sifr_model *model,
                          const plan_settings *settings, int64_t nvme_bytes);

bool plan_fits_output(const plan_output *output, const sifr_model *model,
                      const plan_settings *settings, int64_t nvme_bytes);

#endif
