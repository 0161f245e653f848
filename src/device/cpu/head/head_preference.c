#include "device/cpu/head/head_preference.h"

#include <math.h>

#include "device/cpu/head/head_loss.h"

/* The sums of an answer, rows in order. */
typedef struct answer {
    double sum;    /* of log-probability - x2; orpo: of log-probabilities where x2 is 1 */
    double own;    /* so many rows */
    double all;    /* orpo: of all log-probabilities */
    double labels; /* rows with a label */
} answer;

/* What a pair comes to: a loss, and its derivative by the log-probability of a row. */
typedef struct pair_result {
    double loss;
    double by[2];  /* of an answer's own rows */
    double prompt; /* orpo: of all rows of the chosen one, beside that */
} pair_result;

typedef struct pairs {
    const device_call *call;
    const float *entropies; /* of rows: - log-probability */
} pairs;

static bool has_label(const device_call *call, int64_t row) {
    const device_matrix *labels = &call->x[1];
    return ((const int32_t *)labels->data)[row * labels->stride] >= 0;
}

static double number_of(const device_call *call, int64_t row) {
    const device_matrix *x = &call->x[2];
    return (double)((const float *)x->data)[row * x->stride];
}

static bool is_orpo(const device_call *call) {
    return call->attributes.head.preference == SIFR_PREFERENCE_ORPO;
}

static answer add_up(const pairs *p, int64_t first) {
    answer a = {0};
    for (int64_t r = first; r < first + p->call->attributes.head.length; r++) {
        if (!has_label(p->call, r)) continue;
        double log_probability = -(double)p->entropies[r], number = number_of(p->call, r);
        bool own = !is_orpo(p->call) || number > 0;
        if (own) a.sum += is_orpo(p->call) ? log_probability : log_probability - number;
        a.own += own;
        a.all += log_probability;
        a.labels++;
    }
    return a;
}

/* log(1 + e^x) and its derivative */
static double softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double sigmoid(double x) {
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

static pair_result orpo(const answer a[2], double beta) {
    double m[2], odds = 0;
    pair_result out = {0};
    for (int i = 0; i < 2; i++) {
        m[i] = a[i].sum / fmax(a[i].own, 1);
        odds += (i ? -1 : 1) * (m[i] - log(-expm1(m[i])));
    }
    out.loss = beta * softplus(-odds);
    for (int i = 0; i < 2; i++)
        out.by[i] = (i ? 1 : -1) * beta * sigmoid(-odds) / -expm1(m[i]) / fmax(a[i].own, 1);
    if (a[0].labels > 0) {
        out.loss -= a[0].all / a[0].labels;
        out.prompt = -1 / a[0].labels;
    }
    return out;
}

static pair_result compare(const device_call *call, const answer a[2]) {
    double beta = (double)call->attributes.head.beta, d = a[0].sum - a[1].sum, by = 0;
    double length[2] = {1, 1};
    pair_result out = {0};
    switch (call->attributes.head.preference) {
    case SIFR_PREFERENCE_ORPO:
        return orpo(a, beta);
    case SIFR_PREFERENCE_HINGE:
        out.loss = fmax(1 - beta * d, 0);
        by = 1 - beta * d > 0 ? -beta : 0;
        break;
    case SIFR_PREFERENCE_IPO:
        for (int i = 0; i < 2; i++) length[i] = fmax(a[i].own, 1);
        d = a[0].sum / length[0] - a[1].sum / length[1] - 1 / (2 * beta);
        out.loss = d * d;
        by = 2 * d;
        break;
    case SIFR_PREFERENCE_SIGMOID:
    case SIFR_PREFERENCE_NONE:
        out.loss = softplus(-beta * d);
        by = -beta * sigmoid(-beta * d);
        break;
    }
    out.by[0] = by / length[0];
    out.by[1] = -by / length[1];
    return out;
}

/* The gradient of a row is that of its cross entropy times the weight. */
static void put_weights(const pairs *p, const pair_result *pair, int64_t first, float *weights) {
    int64_t length = p->call->attributes.head.length;
    for (int64_t r = 0; r < 2 * length; r++) {
        bool rejected = r >= length;
        if (!has_label(p->call, first + r)) continue;
        bool own = !is_orpo(p->call) || number_of(p->call, first + r) > 0;
        double by = (own ? pair->by[rejected] : 0) + (rejected ? 0 : pair->prompt);
        weights[first + r] = (float)-by;
    }
}

/* The losses of all pairs, and the weights of their rows. A pair without labels fills up a batch.
 */
static void compare_all(const pairs *p, float *losses, float *weights) {
    int64_t length = p->call->attributes.head.length, rows = p->call->x[0].rows;
    int64_t paired = rows / (2 * length) * 2 * length;
    for (int64_t r = paired; r < rows; r++) losses[r] = weights[r] = 0;
    for (int64_t first = 0; first < paired; first += 2 * length) {
        answer answers[2] = {add_up(p, first), add_up(p, first + length)};
        bool empty = answers[0].labels + answers[1].labels < 1;
        pair_result pair = empty ? (pair_result){0} : compare(p->call, answers);
        for (int64_t r = 0; r < 2 * length; r++) losses[first + r] = 0;
        losses[first] = (float)pair.loss;
        put_weights(p, &pair, first, weights);
    }
}

sifr_status cpu_run_head_preference(device *dev, const device_call *call, sifr_error *error) {
    int64_t rows = call->x[0].rows;
    float *losses = call->y.data, *entropies = losses + call->y.stride;
    device_call head = *call;
    head.y = (device_matrix){entropies, rows, 1, 1, BASE_FP32};
    BASE_TRY(cpu_run_head_part(dev, &head, CPU_HEAD_LOSSES, error));
    compare_all(&(pairs){call, entropies}, losses, cpu_head_weights(call));
    if (call->kernel == DEVICE_HEAD_PREFERENCE_BACKWARD)
        BASE_TRY(cpu_run_head_part(dev, &head, CPU_HEAD_WEIGHTED, error));
    for (int64_t r = 0; r < rows; r++) entropies[r] = has_label(call, r) ? -entropies[r] : 0;
    return SIFR_OK;
}
