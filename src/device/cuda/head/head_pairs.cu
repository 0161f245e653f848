/* What pairs of answers come to: a block sums the log-probabilities of a pair's rows, and writes
 * its loss and what the gradients of its rows' cross entropies are times, as
 * device/cpu/head/head_preference.c does. Sums and functions are in double. */
#include "device/cuda/kernel.h"

#include "device/call.h"
#include "device/cuda/head/head_arguments.h"

/* Of an answer: as in head_preference.c. */
struct pair_answer {
    double sum, own, all, labels;
};

/* A loss, its derivative by the log-probability of an answer's own rows, and, beside that, of all
 * rows of the chosen one. */
struct pair_result {
    double loss, by[2], prompt;
};

DEVICE bool has_label(const head_pairs_arguments &a, int64_t row) {
    return row < a.rows && a.labels[row * a.labels_stride] >= 0;
}

/* Numbers of rows without a label are not looked at. */
DEVICE bool is_own(const head_pairs_arguments &a, int64_t row) {
    return a.preference != SIFR_PREFERENCE_ORPO || a.numbers[row * a.numbers_stride] > 0.0f;
}

/* In one order; the same in all threads. */
DEVICE double pair_sum(double value, double *shared) {
    int thread = (int)threadIdx.x;
    shared[thread] = value;
    for (int half = HEAD_PAIR_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) shared[thread] += shared[thread + half];
    }
    __syncthreads();
    double out = shared[0];
    __syncthreads(); /* `shared` is used again */
    return out;
}

DEVICE pair_answer add_up(const head_pairs_arguments &a, int64_t first, double *shared) {
    pair_answer own = {};
    for (int64_t r = first + threadIdx.x; r < first + a.length; r += HEAD_PAIR_THREADS) {
        if (!has_label(a, r)) continue;
        double log_probability = -(double)a.entropies[r];
        double number = (double)a.numbers[r * a.numbers_stride];
        if (is_own(a, r)) {
            own.sum +=
                a.preference == SIFR_PREFERENCE_ORPO ? log_probability : log_probability - number;
            own.own += 1.0;
        }
        own.all += log_probability;
        own.labels += 1.0;
    }
    pair_answer out;
    out.sum = pair_sum(own.sum, shared);
    out.own = pair_sum(own.own, shared);
    out.all = pair_sum(own.all, shared);
    out.labels = pair_sum(own.labels, shared);
    return out;
}

/* log(1 + e^x) and its derivative */
DEVICE double softplus(double x) {
    return fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

DEVICE double sigmoid(double x) {
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

DEVICE pair_result orpo(const pair_answer *answers, double beta) {
    double m[2], odds = 0;
    pair_result out = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        m[i] = answers[i].sum / fmax(answers[i].own, 1.0);
        odds += (i ? -1 : 1) * (m[i] - log(-expm1(m[i])));
    }
    out.loss = beta * softplus(-odds);
#pragma unroll
    for (int i = 0; i < 2; i++)
        out.by[i] = (i ? 1 : -1) * beta * sigmoid(-odds) / -expm1(m[i]) / fmax(answers[i].own, 1.0);
    if (answers[0].labels > 0) {
        out.loss -= answers[0].all / answers[0].labels;
        out.prompt = -1 / answers[0].labels;
    }
    return out;
}

DEVICE pair_result compare_pair(const head_pairs_arguments &a, const pair_answer *answers) {
    double beta = (double)a.beta, d = answers[0].sum - answers[1].sum, by, length[2] = {1, 1};
    pair_result out = {};
    if (answers[0].labels + answers[1].labels < 1) return out; /* it fills up a batch */
    if (a.preference == SIFR_PREFERENCE_ORPO) return orpo(answers, beta);
    if (a.preference == SIFR_PREFERENCE_HINGE) {
        out.loss = fmax(1 - beta * d, 0.0);
        by = 1 - beta * d > 0 ? -beta : 0;
    } else if (a.preference == SIFR_PREFERENCE_IPO) {
        for (int i = 0; i < 2; i++) length[i] = fmax(answers[i].own, 1.0);
        d = answers[0].sum / length[0] - answers[1].sum / length[1] - 1 / (2 * beta);
        out.loss = d * d;
        by = 2 * d;
    } else {
        out.loss = softplus(-beta * d);
        by = -beta * sigmoid(-beta * d);
    }
    out.by[0] = by / length[0];
    out.by[1] = -by / length[1];
    return out;
}

/* A last sequence without a pair has no loss. */
KERNEL(head_pairs, head_pairs_arguments, HEAD_PAIR_THREADS) {
    SHARED(double, shared, HEAD_PAIR_THREADS);
    int64_t first = (int64_t)blockIdx.x * 2 * a.length;
    pair_answer answers[2];
    pair_result pair = {};
    bool whole = first + 2 * a.length <= a.rows;
#pragma unroll
    for (int i = 0; i < 2; i++) answers[i] = add_up(a, first + i * a.length, shared);
    if (whole) pair = compare_pair(a, answers);
    for (int64_t i = threadIdx.x; i < 2 * a.length; i += HEAD_PAIR_THREADS) {
        int64_t row = first + i;
        if (row >= a.rows) continue;
        bool labelled = has_label(a, row), rejected = i >= a.length;
        double by = 0;
        if (labelled && is_own(a, row)) by = rejected ? pair.by[1] : pair.by[0];
        if (labelled && !rejected) by += pair.prompt;
        a.losses[row] = i == 0 ? (float)pair.loss : 0.0f;
        a.weights[row] = (float)-by;
        a.log_probabilities[row] = labelled ? -a.entropies[row] : 0.0f;
    }
}
