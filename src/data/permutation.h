/* The order of the training windows: a permutation that is computed, not stored. */
#ifndef DATA_PERMUTATION_H
#define DATA_PERMUTATION_H

#include <stdint.h>

/* Maps 0 ≤ index < count by a bijection of 0 … count-1 that depends only on seed, epoch and count.
 * A Feistel network (Luby & Rackoff 1988) over the next power of four, with Philox as its round
 * function; values outside the range are mapped again (cycle walking, Black & Rogaway 2002). */
int64_t data_permute(uint64_t seed, int64_t epoch, int64_t count, int64_t index);

#endif
