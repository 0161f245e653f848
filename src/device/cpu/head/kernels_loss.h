/* Softmax and cross entropy on rows of a block of logits; compiled for each instruction set. */
#ifndef CPU_KERNELS_LOSS_H
#define CPU_KERNELS_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "device/call.h"

/* logits = softcap tanh(l / softcap), or l if softcap is 0; l = scale (product + bias) */
typedef struct cpu_logits_shape {
    float scale, softcap;
} cpu_logits_shape;

static inline bool cpu_shapes_logits(const cpu_logits_shape *shape) {
    return shape->softcap > 0 || shape->scale < 1 || shape->scale > 1;
}

/* Rows with targets of a call of DEVICE_HEAD_REGRESSION or DEVICE_HEAD_MULTILABEL. */
typedef struct cpu_targets {
    const device_call *call;
    const int32_t *rows; /* `count` indices */
    float *gradients;    /* count x columns, of the logits */
    int64_t count;
    bool multilabel, backward, add; /* add: to dw */
} cpu_targets;

typedef struct cpu_loss_kernels {
    /* out[0] = the largest of the logits, out[1] = the sum of exp(logit - out[0]) */
    void (*statistics)(const float *logits, int64_t columns, float out[2]);
    /* (exp(logit - log_sum) - [column == label]) * scale, in fp32 or bf16; `to` may begin at
     * `logits`. label < 0: in another block. */
    void (*gradient_fp32)(const float *logits, int64_t columns, float log_sum, int64_t label,
                          float scale, float *to);
    void (*gradient_bf16)(const float *logits, int64_t columns, float log_sum, int64_t label,
                          float scale, uint16_t *to);
    /* Turns products into logits in place; bias may be NULL. */
    void (*shape)(float *logits, int64_t columns, const float *bias, const cpu_logits_shape *shape);
    /* The gradient of the products, FP32 or BF16 as in dtype; adds it, unrounded, to `sums`. */
    void (*shaped_gradient)(const float *logits, int64_t columns, float log_sum, int64_t label,
                            float scale, const cpu_logits_shape *shape, float *sums,
                            base_dtype dtype, void *to);
    /* The losses, gradients and dx of rows first ... */
    void (*targets_rows)(const cpu_targets *targets, int64_t first, int64_t count);
    /* Elements at ... at + n - 1 of a row of dw0; with at = 0 also the element of dw1. n <= 512 */
    void (*targets_weights)(const cpu_targets *targets, int64_t column, int64_t at, int64_t n);
} cpu_loss_kernels;

extern const cpu_loss_kernels cpu_loss_kernels_plain, cpu_loss_kernels_avx2,
    cpu_loss_kernels_avx512, cpu_loss_kernels_avx512_bf16;

#endif
