#include "device/cpu/head/head_own.h"

#include <math.h>
#include <string.h>

#include "base/inside.h"
#include "device/cpu/cpu.h"

enum {
    WHOLE = 64, /* rows of a chunk are a multiple of this, or of FEW, where memory has them */
    FEW = 8,
    SCALE_ROWS = 16 /* rows of the gradient in one task */
};

int64_t cpu_own_rows(const device_call *call, int64_t rows) {
    int64_t row = 2 * call->w[0].rows * (int64_t)sizeof(float);
    int64_t most = call->attributes.head.own->memory / row;
    if (most >= rows) return rows;
    int64_t tile = most >= WHOLE ? WHOLE : most >= FEW ? FEW : 1;
    return most / tile * tile;
}

static float *matrix_at(const head_run *run, int64_t at) {
    return (float *)(void *)(run->scratch + at);
}

/* The losses of the chunk's rows add up to `sum`, in double, to twice the digits of FP32. */
static void put_loss(const head_run *run, double sum) {
    const device_matrix *y = &run->call->y;
    const int32_t *rows = head_indices(run) + run->first;
    float head = (float)sum, rest = (float)(sum - (double)head);
    for (int64_t r = 0; r < run->labelled; r++)
        ((float *)y->data)[rows[r] * y->stride] = r == 0 ? head : r == 1 ? rest : 0.0f;
}

/* The message of a function that has none would be empty; a rank that is lost is nothing that a
 * function can tell. */
static void note_failure(device *dev, sifr_status status, const sifr_error *error) {
    bool known = status > SIFR_OK && status < SIFR_LOST_RANK;
    base_set_error(&dev->failure, known ? status : SIFR_FAILED, "own_loss: %s",
                   error->message[0] ? error->message : "the function failed, and gave no reason");
}

/* The sum that the function gives; NaN where it fails, or has failed before in this step. */
static double call_loss(device *dev, head_run *run, float *gradient) {
    const head_plan *plan = run->plan;
    const sifr_own_loss_args *own = run->call->attributes.head.own;
    const device_matrix *labels = &run->call->x[1];
    const int32_t *tokens = head_indices(run) + run->first;
    int32_t *own_labels = (int32_t *)(void *)(run->scratch + plan->at_labels);
    for (int64_t r = 0; r < run->labelled; r++)
        own_labels[r] = ((const int32_t *)labels->data)[tokens[r] * labels->stride];
    sifr_loss_chunk chunk = {.size = sizeof chunk,
                             .rows = run->labelled,
                             .words = plan->words,
                             .logits = matrix_at(run, plan->at_logits),
                             .labels = own_labels,
                             .tokens = tokens,
                             .gradient = gradient,
                             .loss = NAN};
    sifr_error error = {.status = SIFR_OK};
    if (dev->failure.status != SIFR_OK) return NAN;
    sifr_status status = BASE_OUT(own->loss(own->user, &chunk, &error));
    if (status == SIFR_OK) return chunk.loss;
    note_failure(dev, status, &error);
    return NAN;
}

/* From the gradient of the sum of losses by the logits to that of the loss by the products. */
static void scale_task(void *context, int64_t task, int thread) {
    (void)thread;
    const head_run *run = context;
    const head_plan *plan = run->plan;
    float cap = plan->shape.softcap, factor = plan->shape.scale;
    int64_t last = base_min_i64(run->labelled, (task + 1) * SCALE_ROWS);
    for (int64_t r = task * SCALE_ROWS; r < last; r++) {
        float *g = matrix_at(run, plan->at_gradient) + r * plan->words, scale = head_scale(run, r);
        const float *logits = matrix_at(run, plan->at_logits) + r * plan->words;
        for (int64_t i = 0; i < plan->words; i++) g[i] *= scale;
        if (!cpu_shapes_logits(&plan->shape)) continue;
        for (int64_t i = 0; i < plan->words; i++) {
            float t = cap > 0 ? logits[i] / cap : 0.0f;
            g[i] *= factor * (1.0f - t * t);
        }
    }
}

void cpu_own_loss(device *dev, head_run *run) {
    const head_plan *plan = run->plan;
    float *gradient = plan->backward ? matrix_at(run, plan->at_gradient) : NULL;
    if (gradient) memset(gradient, 0, (size_t)(run->labelled * plan->words) * sizeof *gradient);
    put_loss(run, call_loss(dev, run, gradient));
    if (gradient)
        host_parallel(dev->team, (run->labelled + SCALE_ROWS - 1) / SCALE_ROWS, scale_task, run);
}
