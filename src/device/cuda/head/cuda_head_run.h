/* What the files of the head over words share on a CUDA device: the plan of a call, and the run of
 * it. Private to them. */
#ifndef CUDA_HEAD_RUN_H
#define CUDA_HEAD_RUN_H

#include "device/cuda/cuda_launch.h"
#include "device/cuda/head/head_arguments.h"

typedef struct cuda_head_plan {
    int64_t rows, width, words, chunk;
    int64_t x_stride, logits_stride; /* for 16-byte loads */
    int64_t lists;                   /* blocks that list rows */
    int64_t top;                     /* words of another head's distribution; else 0 */
    int64_t at_total, at_counts, at_list, at_x, at_logits, at_log_sums, at_parts;
    int64_t at_entropies, at_weights; /* of a preference, by row */
    int64_t at_kept, at_numbers;      /* of a distribution: head_distil_arguments */
    int64_t scratch_bytes;
    bool backward;
    bool weighted; /* rows have weights: a preference */
} cuda_head_plan;

cuda_head_plan cuda_head_plan_of(const device *dev, const device_call *call);

static inline void *cuda_head_at(const device_call *call, int64_t offset) {
    return (char *)call->scratch + offset;
}

/* The losses of all rows: of a preference their cross entropies, in scratch. */
sifr_status cuda_head_losses(device *dev, const device_call *call, const cuda_head_plan *plan,
                             sifr_error *error) SIFR_MUST_CHECK;
/* Then, once the weights of a preference are there, the gradients. */
sifr_status cuda_head_gradients(device *dev, const device_call *call, const cuda_head_plan *plan,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
