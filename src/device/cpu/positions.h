/* Positions of new tokens, for kernels that keep a state of each sequence. */
#ifndef CPU_POSITIONS_H
#define CPU_POSITIONS_H

#include "base/errors.h"
#include "device/call.h"

/* SIFR_FAILED unless the positions (INT32 rows x 1) are at least 0 and, if all rows are of one
 * sequence, follow each other. */
static inline sifr_status cpu_check_positions(const device_call *call,
                                              const device_matrix *positions, bool together,
                                              sifr_error *error) {
    const int32_t *at = positions->data;
    int64_t first = at[0];
    for (int64_t r = 0; r < positions->rows; r++) {
        int64_t here = at[r * positions->stride];
        if (here >= 0 && (!together || here == first + r)) continue;
        return base_fail(error, SIFR_FAILED,
                         "%s: position %lld of row %lld: %lld rows from %lld on do not follow each "
                         "other",
                         device_kernel_name(call->kernel), (long long)here, (long long)r,
                         (long long)positions->rows, (long long)first);
    }
    return SIFR_OK;
}

#endif
