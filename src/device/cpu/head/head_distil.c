#include "device/cpu/head/head_distil.h"

#include <math.h>

/* Far below any logit, and finite when it is scaled. */
#define NOTHING (-1e30f)

static float *row_numbers(const head_run *run, int64_t place) {
    return (float *)(void *)(run->scratch + run->plan->at_rest) + 2 * place;
}

/* k words, then k logarithms. */
static const float *distribution(const head_run *run, int64_t place) {
    const device_matrix *x = &run->call->x[2];
    return (const float *)x->data + head_indices(run)[run->first + place] * x->stride;
}

static float logit_of(const head_run *run, int64_t place, int64_t word) {
    int64_t block = word / run->plan->block, words = head_block_words(run->plan, block);
    return head_block_logits(run, block)[place * words + word % run->plan->block];
}

/* A row of a block of logits / temperature. */
static void scale_row(const head_run *run, int64_t block, int64_t place, float *out) {
    int64_t words = head_block_words(run->plan, block);
    const float *logits = head_block_logits(run, block) + place * words;
    float factor = 1.0f / run->call->attributes.head.temperature;
    for (int64_t i = 0; i < words; i++) out[i] = logits[i] * factor;
}

/* The logarithm of the sum of exponentials of all words but the k; -INFINITY: there is no other. */
static double rest_of(const head_run *run, int64_t place) {
    const head_plan *plan = run->plan;
    const float *given = distribution(run, place);
    int64_t k = plan->columns / 2;
    double largest = -INFINITY, sum = 0;
    if (k == plan->words) return -INFINITY;
    for (int64_t block = 0; block < plan->blocks; block++) {
        float row[HEAD_MOST_WORDS], statistics[2];
        int64_t words = head_block_words(plan, block), from = block * plan->block, left = words;
        scale_row(run, block, place, row);
        for (int64_t i = 0; i < k; i++) {
            int64_t at = (int64_t)given[i] - from;
            if (at < 0 || at >= words) continue;
            row[at] = NOTHING;
            left--;
        }
        if (left <= 0) continue;
        run->kernels->statistics(row, words, statistics);
        double most = (double)statistics[0], more = fmax(largest, most);
        sum = sum * exp(largest - more) + (double)statistics[1] * exp(most - more);
        largest = more;
    }
    return largest + log(sum);
}

float cpu_distil_row(head_run *run, int64_t place, float cross_entropy) {
    double t = (double)run->call->attributes.head.temperature;
    double weight = (double)run->call->attributes.head.weight;
    const float *given = distribution(run, place);
    int64_t k = run->plan->columns / 2;
    double rest = rest_of(run, place), largest = rest, sum = 0, q = 0, loss = 0;
    for (int64_t i = 0; i < k; i++)
        largest = fmax(largest, (double)logit_of(run, place, (int64_t)given[i]) / t);
    for (int64_t i = 0; i < k; i++)
        sum += exp((double)logit_of(run, place, (int64_t)given[i]) / t - largest);
    double log_sum = largest + log(sum + exp(rest - largest));
    for (int64_t i = 0; i < k; i++) {
        double log_q = (double)given[k + i];
        double log_p = (double)logit_of(run, place, (int64_t)given[i]) / t - log_sum;
        loss += exp(log_q) * (log_q - log_p);
        q += exp(log_q);
    }
    double other = fmax(1 - q, 0), factor = 1; /* without a rest nothing is multiplied by it */
    if (rest > -INFINITY) {
        if (other > 0) loss += other * (log(other) - (rest - log_sum));
        factor = 1 - other * exp(log_sum - rest);
    }
    float *numbers = row_numbers(run, place);
    numbers[0] = (float)log_sum;
    numbers[1] = (float)factor;
    return (float)((1 - weight) * (double)cross_entropy + weight * t * t * loss);
}

/* For words among the k: p - q; for the others p times the row's factor. */
static void add_distribution(const head_run *run, int64_t block, int64_t place, float *out) {
    const head_plan *plan = run->plan;
    const float *given = distribution(run, place), *numbers = row_numbers(run, place);
    float t = run->call->attributes.head.temperature, row[HEAD_MOST_WORDS];
    float scale = head_scale(run, place) * run->call->attributes.head.weight * t;
    int64_t k = plan->columns / 2, words = head_block_words(plan, block);
    int64_t from = block * plan->block;
    row[0] = 0; /* for gcc, which does not see that a block has words */
    scale_row(run, block, place, row);
    run->kernels->gradient_fp32(row, words, numbers[0], -1, scale * numbers[1], row);
    for (int64_t i = 0; i < k; i++) {
        int64_t at = (int64_t)given[i] - from;
        if (at < 0 || at >= words) continue;
        double log_p = (double)logit_of(run, place, (int64_t)given[i]) / (double)t;
        row[at] = scale * (float)(exp(log_p - (double)numbers[0]) - exp((double)given[k + i]));
    }
    for (int64_t i = 0; i < words; i++) out[i] += row[i];
}

void cpu_distil_gradient(const head_run *run, int64_t block, int64_t place, int64_t label,
                         float *out) {
    const head_plan *plan = run->plan;
    const float *sums = (const float *)(const void *)(run->scratch + plan->at_sums);
    int64_t words = head_block_words(plan, block);
    const float *logits = head_block_logits(run, block) + place * words;
    float cap = plan->shape.softcap, scale = head_scale(run, place);
    run->kernels->gradient_fp32(logits, words, sums[place], label,
                                scale * (1.0f - run->call->attributes.head.weight), out);
    add_distribution(run, block, place, out);
    for (int64_t i = 0; plan->shaped && i < words; i++) {
        float t = cap > 0 ? logits[i] / cap : 0.0f;
        out[i] *= plan->shape.scale * (1.0f - t * t);
    }
}
