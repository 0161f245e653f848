/* Which gradients PowerSGD compresses, and where what is sent of them lies. For pass_compress.c. */
#ifndef PLAN_POWER_LAYOUT_H
#define PLAN_POWER_LAYOUT_H

#include "plan/schedule.h"

/* A matrix that is compressed. Places are elements from the beginning of a buffer. */
typedef struct power_matrix {
    int32_t weight, segment;
    int64_t rows, columns, rank;
    int64_t first;              /* of the segment */
    int64_t error, left, right; /* left: rank x rows, right: rank x columns; right also in bases */
} power_matrix;

/* A weight that is not. */
typedef struct power_piece {
    int32_t segment;
    int64_t first, count, at; /* elements of the segment, from `at` on of the dense buffer */
} power_piece;

typedef struct power_layout {
    power_matrix *matrices;
    power_piece *pieces;
    size_t matrix_count, piece_count;
    int64_t errors, left, right, dense; /* elements */
} power_layout;

/* Of the trained segments for which `owned` says so, by segment. Free it also after a failure. */
sifr_status power_layout_make(const plan_schedule *schedule, const bool *owned, power_layout *out,
                              sifr_error *error) SIFR_MUST_CHECK;
/* As many, in equal parts of the data ranks. */
int64_t power_sent(const plan_schedule *schedule, int64_t elements);
void power_layout_free(power_layout *layout);

#endif
