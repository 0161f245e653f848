/* The slopes of a bias by distance (ALiBi, Press, Smith and Lewis 2022, section 3): of n heads, a
 * power of two, head h has 2^(-8 (h + 1) / n). With another number of heads the largest power of
 * two n below it has these, and the rest every second one of 2 n heads. */
#ifndef DEVICE_ALIBI_H
#define DEVICE_ALIBI_H

#include <math.h>
#include <stdint.h>

static inline double device_alibi_slope(int64_t heads, int64_t head) {
    int64_t n = 1;
    while (2 * n <= heads) n *= 2;
    double power = head < n ? 8.0 * (double)(head + 1) : 4.0 * (double)(2 * (head - n) + 1);
    return exp2(-power / (double)n);
}

#endif
