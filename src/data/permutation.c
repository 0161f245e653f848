#include "data/permutation.h"

#include "base/assert.h"
#include "base/random.h"

enum { ROUNDS = 8 };

/* Distinguishes these random numbers from others with the same seed. */
static const uint64_t purpose = UINT64_C(0x6f72646572); /* "order" */

static uint64_t permute_once(uint64_t key, int half, uint64_t x) {
    base_assert(half >= 1 && half <= 32 && x >> half >> half == 0);
    uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        base_random4 r = base_philox(key, right, round);
        uint64_t next = (left ^ ((uint64_t)r.v[0] | (uint64_t)r.v[1] << 32)) & mask;
        left = right;
        right = next;
    }
    return left << half | right;
}

int64_t data_permute(uint64_t seed, int64_t epoch, int64_t count, int64_t index) {
    base_assert(count <= 1 || (index >= 0 && index < count));
    if (count <= 1) return 0;
    int half = 1;
    while (half < 31 && INT64_C(1) << (2 * half) < count) half++;
    if (INT64_C(1) << (2 * half) < count) half = 32;
    uint64_t key = base_random_key(seed, (uint64_t)epoch, purpose), x = (uint64_t)index;
    do x = permute_once(key, half, x);
    while (x >= (uint64_t)count);
    return (int64_t)x;
}
