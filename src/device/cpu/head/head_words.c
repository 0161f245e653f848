#include "device/cpu/head/head_words.h"

#include <math.h>
#include <string.h>

#include "device/cpu/head/head_distil.h"

const device_matrix *cpu_head_split_statistics(const device_call *call) {
    if (call->kernel == DEVICE_HEAD_STATISTICS) return &call->y;
    return call->x[3].dtype != BASE_NONE ? &call->x[3] : NULL;
}

/* The logit of the label, whose block is here. */
static float label_logit(const head_run *run, int64_t place, int64_t label) {
    int64_t block = label / run->plan->block, words = head_block_words(run->plan, block);
    return head_block_logits(run, block)[place * words + label % run->plan->block];
}

static void finish_row(head_run *run, int64_t r, float logit) {
    const head_plan *plan = run->plan;
    int64_t blocks = device_word_blocks(head_all_words(plan));
    float largest = head_statistics(run, 0, r)[0], sum = 0.0f;
    for (int64_t b = 1; b < blocks; b++) largest = fmaxf(largest, head_statistics(run, b, r)[0]);
    for (int64_t b = 0; b < blocks; b++) {
        const float *s = head_statistics(run, b, r);
        sum += s[1] * expf(s[0] - largest);
    }
    float log_of_sum = logf(sum);
    ((float *)(run->scratch + plan->at_sums))[r] = largest + log_of_sum;
    const device_matrix *y = &run->call->y;
    float loss = (largest - logit) + log_of_sum;
    if (plan->columns) loss = cpu_distil_row(run, r, loss);
    ((float *)y->data)[head_indices(run)[run->first + r] * y->stride] = loss;
}

void cpu_head_finish(void *context, int64_t task, int thread) {
    (void)thread;
    head_run *run = context;
    const head_plan *plan = run->plan;
    int64_t last = base_min_i64(run->labelled, (task + 1) * HEAD_ROW_TILE);
    int64_t blocks = device_word_blocks(head_all_words(plan));
    bool made = run->call->kernel == DEVICE_HEAD_STATISTICS;
    for (int64_t r = task * HEAD_ROW_TILE; r < last; r++) {
        int64_t label = head_label_in(run, r, 0, plan->words);
        if (made && label >= 0) head_statistics(run, blocks, r)[0] = label_logit(run, r, label);
        if (made) continue;
        bool given = head_has_statistics(run);
        finish_row(run, r, given ? head_statistics(run, blocks, r)[0] : label_logit(run, r, label));
    }
}

static void clear(const device_matrix *m, int64_t row, int64_t column) {
    if (m->dtype == BASE_NONE) return;
    for (int64_t r = row; r < m->rows; r++)
        memset((float *)m->data + r * m->stride + column, 0,
               (size_t)(m->columns - column) * sizeof(float));
}

void cpu_head_clear_unused(const head_run *run) {
    const device_call *call = run->call;
    if (call->kernel == DEVICE_HEAD_STATISTICS) clear(&call->y, 0, 0);
    if (!run->plan->backward || run->plan->split.all == 0 || call->accumulate_dw) return;
    clear(&call->dw[0], run->plan->words, 0);
    clear(&call->dw[1], 0, run->plan->words);
}

void cpu_head_clear_dx(const head_run *run) {
    const device_matrix *dx = &run->call->dx[0];
    int64_t element = base_dtype_bytes(dx->dtype);
    if (dx->dtype == BASE_NONE || run->call->accumulate[0]) return;
    for (int64_t r = 0; r < run->labelled; r++) {
        int64_t row = head_indices(run)[run->first + r];
        memset((char *)dx->data + row * dx->stride * element, 0, (size_t)(dx->columns * element));
    }
}
