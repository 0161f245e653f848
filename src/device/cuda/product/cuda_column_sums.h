/* Sums of the columns of a matrix on a CUDA device: gradients of biases. */
#ifndef CUDA_COLUMN_SUMS_H
#define CUDA_COLUMN_SUMS_H

#include "device/cuda/product/column_sums_arguments.h"
#include "device/device.h"

int64_t cuda_column_sums_bytes(int64_t rows, int64_t columns); /* of `parts` */

/* to = the sums of from's columns, or to += ... `to` has as many elements in FP32. First parts of
 * 128 rows are summed, then the parts of a chunk of `chunk` rows (a multiple of 128), then chunks,
 * each in order. */
sifr_status cuda_column_sums(device *dev, const device_matrix *from, int64_t chunk, float *parts,
                             float *to, bool accumulate, sifr_error *error) SIFR_MUST_CHECK;

/* The second half, if the parts are there. */
sifr_status cuda_column_totals(device *dev, const column_totals_arguments *arguments,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
