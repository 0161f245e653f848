/* Chooses the next token: greedy, or by temperature with top-k (Fan et al. 2018) and top-p
 * (Holtzman et al. 2020).
 */
#include <math.h>
#include <stdlib.h>

#include "engine/inference.h"

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

int32_t engine_sample(float *logits, int64_t words, int32_t *order, double temperature,
                      int64_t top_k, double top_p, double random) {
    int32_t best = most_likely(logits, words);
    if (temperature <= 0) return best;
    if (top_k <= 0 || top_k > words) top_k = words;
    double top = logits[best], total = 0;
    for (int64_t i = 0; i < words; i++) {
        logits[i] = (float)exp(((double)logits[i] - top) / temperature);
        order[i] = (int32_t)i;
    }
    /* A heap returns ids by falling probability, since usually only a few are needed. */
    for (int64_t i = words / 2; i-- > 0;) sift_down(logits, order, i, words);
    int64_t chosen = 0;
    double kept = 0;
    for (int64_t i = 0; i < words; i++) total += (double)logits[i];
    double limit = total, drawn = random * total;
    bool whole = top_k == words && top_p >= 1;
    if (top_k < words) { /* top_p applies to the probabilities that top_k leaves */
        limit = 0;
    }
    int64_t heap = words;
    while (chosen < top_k && heap > 0) {
        int32_t id = order[0];
        order[0] = order[--heap];
        sift_down(logits, order, 0, heap);
        order[heap] = id; /* the ids taken are at the end, the first one last */
        kept += (double)logits[id];
        chosen++;
        if (whole && kept > drawn) return id;
        if (top_k == words && kept >= top_p * limit) break;
    }
    if (top_k < words && top_p < 1) {
        double sum = 0, all = kept;
        int64_t some = 0;
        while (some < chosen && sum < top_p * all) sum += (double)logits[order[words - 1 - some++]];
        chosen = some;
        kept = sum;
    }
    double target = random * kept;
    for (int64_t i = 0; i < chosen; i++) {
        int32_t id = order[words - 1 - i];
        target -= (double)logits[id];
        if (target < 0) return id;
    }
    return order[words - chosen];
}
