/* Space for a run's checkpoints and its model on their file system. */
#ifndef PLAN_CHECKPOINT_SIZE_H
#define PLAN_CHECKPOINT_SIZE_H

#include "model/description.h"
#include "plan/schedule.h"

/* The file system of the output; zeroed: not known, and any size fits. */
typedef struct plan_output {
    bool known;
    int64_t room_bytes;  /* free there */
    int32_t checkpoints; /* number that the run adds at a time */
    int64_t model_bytes; /* of the trained model, in addition */
    int32_t swaps;       /* ranks with swap files on the same file system */
} plan_output;

/* Bytes of the values in a checkpoint of all ranks: master weights and moments, in the types in
 * which they are kept, without frozen weights of a base. */
int64_t plan_checkpoint_bytes(const sifr_model *model, const plan_settings *settings);

/* Free bytes needed for `count` checkpoints of `bytes` each, with manifests, logs and the like. */
int64_t plan_checkpoint_space(int64_t bytes, int64_t count);

/* Free bytes of `output` needed by a run whose ranks each have `nvme_bytes` on disk. */
int64_t plan_output_bytes(const plan_output *output, const sifr_model *model,
                          const plan_settings *settings, int64_t nvme_bytes);

bool plan_fits_output(const plan_output *output, const sifr_model *model,
                      const plan_settings *settings, int64_t nvme_bytes);

#endif
