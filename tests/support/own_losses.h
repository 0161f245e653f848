/* Losses of a program's own, for tests: cross entropy, label smoothing, focal loss (Lin et al.
 * 2017). Sums are in double, so that differences of them are exact enough. */
#ifndef SUPPORT_OWN_LOSSES_H
#define SUPPORT_OWN_LOSSES_H

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "sifr/objective.h"

typedef enum own_kind { OWN_CROSS_ENTROPY, OWN_SMOOTHED, OWN_FOCAL } own_kind;

typedef struct own_loss {
    own_kind kind;
    _Atomic int64_t calls, rows, most_rows, evaluations;
    int64_t fails_at; /* the call of this number fails, from 1; 0: none */
    sifr_status with;
} own_loss;

static inline double own_log_sum(const float *logits, int64_t words) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < words; i++) largest = fmax(largest, (double)logits[i]);
    for (int64_t i = 0; i < words; i++) sum += exp((double)logits[i] - largest);
    return largest + log(sum);
}

/* The loss of a row, and its derivatives. */
static inline double own_row(own_kind kind, const float *logits, int64_t words, int32_t label,
                             float *gradient) {
    enum { PARTS = 10 }; /* a tenth of the target is spread over all words */
    double log_sum = own_log_sum(logits, words), loss = 0;
    double log_p = (double)logits[label] - log_sum, p = exp(log_p);
    if (kind == OWN_FOCAL) { /* - (1 - p)^2 log p */
        double by = 2 * (1 - p) * p * log_p - (1 - p) * (1 - p);
        for (int64_t i = 0; gradient && i < words; i++)
            gradient[i] = (float)(by * ((i == label) - exp((double)logits[i] - log_sum)));
        return -(1 - p) * (1 - p) * log_p;
    }
    double spread = kind == OWN_SMOOTHED ? 1.0 / PARTS : 0;
    for (int64_t i = 0; i < words; i++) {
        double want = spread / (double)words + (i == label) * (1 - spread);
        double log_q = (double)logits[i] - log_sum;
        loss -= want * log_q;
        if (gradient) gradient[i] = (float)(exp(log_q) - want);
    }
    return loss;
}

static inline sifr_status own_compute(void *user, sifr_loss_chunk *chunk, sifr_error *error) {
    own_loss *own = user;
    int64_t call = ++own->calls;
    if (call == own->fails_at) {
        error->status = own->with;
        for (size_t i = 0; i < sizeof "too hot"; i++) error->message[i] = "too hot"[i];
        return own->with;
    }
    own->rows += chunk->rows;
    own->evaluations += chunk->gradient == NULL;
    if (chunk->rows > own->most_rows) own->most_rows = chunk->rows;
    chunk->loss = 0;
    for (int64_t r = 0; r < chunk->rows; r++) {
        if (r && chunk->tokens[r] <= chunk->tokens[r - 1]) return SIFR_USAGE;
        for (int64_t i = 0; chunk->gradient && i < chunk->words; i++)
            if (fpclassify(chunk->gradient[r * chunk->words + i]) != FP_ZERO) return SIFR_USAGE;
        chunk->loss +=
            own_row(own->kind, chunk->logits + r * chunk->words, chunk->words, chunk->labels[r],
                    chunk->gradient ? chunk->gradient + r * chunk->words : NULL);
    }
    return SIFR_OK;
}

#endif
