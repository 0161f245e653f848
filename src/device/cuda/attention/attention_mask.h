/* Which keys a query sees, which tiles need not be looked at, and what dropout leaves of a
 * probability. For the kernels of attention. */
#ifndef CUDA_ATTENTION_MASK_H
#define CUDA_ATTENTION_MASK_H

#include "device/cuda/attention/attention_arguments.h"
#include "device/cuda/kernel.h"

/* The initial largest score. A hidden key's score is so far below it that its probability is 0 even
 * if no other key is seen. */
#define ATTENTION_NOTHING (-1e30f)
#define ATTENTION_HIDDEN (-1e31f)
#define ATTENTION_LOG2_E 1.44269504f

/* 2^x by exp2f, which with -ftz is the GPU's own instruction, right to 2 units in the last place. A
 * polynomial would take eight times the instructions of what limits short heads most, and could
 * not make the bits those of a CPU: the sums inside mma.sync are the GPU's own, too. */
DEVICE float attention_exp2(float x) {
    return exp2f(x);
}

/* Eigen's rational approximation, as on the CPU: within 3 units in the last place. */
DEVICE float attention_tanh(float x) {
    const float bound = 7.90531110763549805f;
    x = x < -bound ? -bound : x; /* a NaN stays a NaN */
    x = x > bound ? bound : x;
    float square = x * x;
    float above = -2.76076847742355e-16f;
    above = fmaf(above, square, 2.00018790482477e-13f);
    above = fmaf(above, square, -8.60467152213735e-11f);
    above = fmaf(above, square, 5.12229709037114e-08f);
    above = fmaf(above, square, 1.48572235717979e-05f);
    above = fmaf(above, square, 6.37261928875436e-04f);
    above = fmaf(above, square, 4.89352455891786e-03f);
    float below = 1.19825839466702e-06f;
    below = fmaf(below, square, 1.18534705686654e-04f);
    below = fmaf(below, square, 2.26843463243900e-03f);
    below = fmaf(below, square, 4.89352518554385e-03f);
    return x * above / below;
}

/* Of a product of a query with a key; what remains to be multiplied by attention_scale(). */
DEVICE float attention_cap(const attention_arguments &a, float product) {
    return a.softcap > 0 ? a.softcap * attention_tanh(product * (a.scale / a.softcap)) : product;
}

DEVICE float attention_scale(const attention_arguments &a) {
    return a.softcap > 0 ? 1.0f : a.scale;
}

/* Derivative of the capped score by the product times scale. A hidden score is below -c. */
DEVICE float attention_slope(const attention_arguments &a, float score) {
    float u = fmaxf(score * (1.0f / a.softcap), -1.0f);
    return 1.0f - u * u;
}

DEVICE bool attention_near(const attention_arguments &a, int32_t query, int32_t key) {
    return query - key < a.window && key - query < a.ahead;
}

/* Rows [first, last] of a sequence. */
typedef struct attention_part {
    int32_t first, last;
} attention_part;

DEVICE attention_part attention_part_at(const attention_arguments &a, int32_t first, int32_t rows) {
    int32_t end = first + rows < a.length ? first + rows : a.length;
    return {first, end - 1};
}

/* The keys that queries see but for segments, and the queries that see keys. */
DEVICE attention_part attention_keys_of(const attention_arguments &a, attention_part queries) {
    int32_t first = queries.first - a.window + 1, last = queries.last + a.ahead - 1;
    return {first > 0 ? first : 0, last < a.length ? last : a.length - 1};
}

DEVICE attention_part attention_queries_of(const attention_arguments &a, attention_part keys) {
    int32_t first = keys.first - a.ahead + 1, last = keys.last + a.window - 1;
    return {first > 0 ? first : 0, last < a.length ? last : a.length - 1};
}

/* Least and largest segment of a part, and of the rest of the spans at its ends. */
DEVICE attention_part attention_segments_of(const attention_arguments &a, int32_t sequence,
                                            attention_part part) {
    const int32_t *ranges = a.ranges + (int64_t)sequence * a.spans * 2;
    int32_t span = part.first / ATTENTION_SPAN;
    attention_part all = {ranges[2 * span], ranges[2 * span + 1]};
    for (span++; span <= part.last / ATTENTION_SPAN; span++) {
        all.first = ranges[2 * span] < all.first ? ranges[2 * span] : all.first;
        all.last = ranges[2 * span + 1] > all.last ? ranges[2 * span + 1] : all.last;
    }
    return all;
}

/* Whether all queries of a pair of tiles see all its keys, so that nothing is to be compared. */
DEVICE bool attention_sees_all(const attention_arguments &a, attention_part queries,
                               attention_part keys) {
    return queries.last - keys.first < a.window && keys.last - queries.first < a.ahead;
}

/* The factor of dropout for 16 bits of a random number. */
DEVICE float attention_dropped(const attention_arguments &a, uint32_t bits) {
    return (bits & 0xffffu) >= a.threshold ? a.keep : 0.0f;
}

/* 0: nothing is dropped, since there is no dropout or the step is no training. */
DEVICE bool attention_drops(const attention_arguments &a) {
    return a.threshold > 0 && a.step->training;
}

DEVICE uint64_t attention_random_key(const attention_arguments &a) {
    return base_random_key(a.step->seed, (uint64_t)a.step->step, a.random_place);
}

/* 128 bits for a query and the 8 keys from 8 `place` on: 16 for each, in order. */
DEVICE base_random4 attention_random(uint64_t key, uint32_t head, int32_t query, int32_t place) {
    return base_philox(key, (uint64_t)(uint32_t)query << 32 | (uint32_t)place, head);
}

#endif
