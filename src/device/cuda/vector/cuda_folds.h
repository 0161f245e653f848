/* The numbers of a step on a GPU: sums of losses and of squares, and the decision that follows. */
#ifndef CUDA_FOLDS_H
#define CUDA_FOLDS_H

#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/folds_arguments.h"

/* *sum = the losses of `rows` rows, added in double one after the other. */
sifr_status cuda_fold_loss(device *dev, const float *losses, int64_t rows, double *sum,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Parts that cuda_fold_squares needs memory for: one double each. */
int64_t cuda_fold_squares_parts(const int64_t *unit_blocks, int32_t units, int32_t ranks);

/* *sum = the sum of all squares: rank r's begin at squares + r own and hold unit_blocks[u] of each
 * unit u, unit after unit. The order of the sum follows the whole parameters, so it is the same for
 * any number of ranks if what a unit is padded with is zero. */
sifr_status cuda_fold_squares(device *dev, const double *squares, int64_t own, int32_t ranks,
                              const int64_t *unit_blocks, int32_t units, double *parts, double *sum,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Writes a step's update_scale and update, and its result. */
sifr_status cuda_decide(device *dev, const decide_arguments *arguments,
                        sifr_error *error) SIFR_MUST_CHECK;

#endif
