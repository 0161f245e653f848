/* Chooses the next token: greedy, or by temperature with top-k (Fan et al. 2018), top-p (Holtzman
 * et al. 2020) and min-p (Nguyen et al. 2024); the repetition penalty is Keskar et al.'s (2019).
 */
#include <math.h>
#include <stdlib.h>

#include "infer/inference.h"

/* The first of the largest. Separate lanes let the compiler vectorize the loop. */
static int32_t most_likely(const float *logits, int64_t words) {
    enum { LANES = 16 };
    float best[LANES];
    for (int j = 0; j < LANES; j++) best[j] = logits[0];
    int64_t i = 0;
    for (; i + LANES <= words; i += LANES) {
        for (int j = 0; j < LANES; j++) best[j] = logits[i + j] > best[j] ? logits[i + j] : best[j];
    }
    for (; i < words; i++) best[0] = logits[i] > best[0] ? logits[i] : best[0];
    for (int j = 1; j < LANES; j++) best[0] = best[j] > best[0] ? best[j] : best[0];
    for (i = 0; i < words; i++) {
        if (logits[i] == best[0]) return (int32_t)i;
    }
    return 0;
}

/* Order: more likely first; with equal logits the lower id first. */
static bool before(const float *logits, int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void sift_down(const float *logits, int32_t *heap, int64_t at, int64_t count) {
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && before(logits, heap[child + 1], heap[child])) child++;
        if (!before(logits, heap[child], heap[at])) return;
        int32_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

void infer_penalize(float *logits, int64_t words, const int32_t *ids, size_t count, double penalty,
                    int32_t *marks) {
    if (penalty == 1) return;
    float by = (float)penalty;
    for (int64_t i = 0; i < words; i++) marks[i] = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t id = ids[i];
        if (id < 0 || id >= words || marks[id]) continue;
        marks[id] = 1;
        logits[id] = logits[id] < 0 ? logits[id] * by : logits[id] / by;
    }
}

/* Weights, of which the largest is 1, in place of logits, and a heap of the ids in `order`; returns
 * the sum of the weights. */
static double weigh(float *logits, int64_t words, int32_t *order, double temperature) {
    double top = logits[most_likely(logits, words)], total = 0;
    for (int64_t i = 0; i < words; i++) {
        logits[i] = (float)exp(((double)logits[i] - top) / temperature);
        order[i] = (int32_t)i;
        total += (double)logits[i];
    }
    for (int64_t i = words / 2; i-- > 0;) sift_down(logits, order, i, words);
    return total;
}

/* Takes ids out of the heap by falling weight, since usually only a few are needed: those that the
 * filters keep, and no more than have together `enough` of all weight. */
static int64_t take(float *logits, int64_t words, int32_t *order, const infer_sampling *s,
                    double enough, double *sum) {
    double all = weigh(logits, words, order, s->temperature), kept = 0, last = 0;
    bool some = s->top_k > 0 && s->top_k < words; /* then top_p is of what top_k leaves */
    int64_t count = 0, limit = some ? s->top_k : words;
    for (int64_t heap = words; heap > 0; count++) {
        int32_t id = order[0];
        double weight = (double)logits[id];
        if (count >= limit && weight < last) break; /* equals of the last one stay */
        bool enough_mass = s->top_p < 1 && kept >= s->top_p * all;
        if (!some && (enough_mass || kept > enough * all || weight < s->min_p)) break;
        order[0] = order[--heap];
        sift_down(logits, order, 0, heap);
        order[heap] = id; /* the ids taken are at the end, the first one last */
        kept += last = weight;
    }
    *sum = kept;
    if (!some) return count;
    int64_t left = 0;
    for (*sum = 0; left < count && (s->top_p >= 1 || *sum < s->top_p * kept); left++) {
        double weight = (double)logits[order[words - 1 - left]];
        if (weight < s->min_p) break;
        *sum += weight;
    }
    return left;
}

int64_t infer_candidates(float *logits, int64_t words, int32_t *order, const infer_sampling *s,
                         double *sum) {
    return take(logits, words, order, s, 2, sum);
}

int32_t infer_sample(float *logits, int64_t words, int32_t *order, const infer_sampling *s,
                     double random) {
    if (s->temperature <= 0) return most_likely(logits, words);
    bool whole = (s->top_k <= 0 || s->top_k >= words) && s->top_p >= 1 && s->min_p <= 0;
    double sum;
    int64_t count = take(logits, words, order, s, whole ? random : 2, &sum);
    if (whole) return order[words - count]; /* the one that exceeds its share */
    double target = random * sum;
    for (int64_t i = 0; i < count; i++) {
        int32_t id = order[words - 1 - i];
        target -= (double)logits[id];
        if (target < 0) return id;
    }
    return order[words - count];
}
