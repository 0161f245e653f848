/* Arguments of the kernels of head_rows.cu, head_softmax.cu, head_pairs.cu and head_distil.cu. */
#ifndef CUDA_HEAD_ARGUMENTS_H
#define CUDA_HEAD_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HEAD_LIST_THREADS = 256,
    HEAD_LIST_ROWS = 1024, /* rows whose labels a block counts, and lists */
    HEAD_THREADS = 256,
    HEAD_COLUMNS = 4 * HEAD_THREADS, /* columns that a block reads at a time */
    HEAD_BIAS_THREADS = 128,
    HEAD_PAIR_THREADS = 128,
    /* In fp16, gradients of logits are multiplied by this: they are at most 1 in size, and 24 bits
     * below 1 fp16 ends. */
    HEAD_FP16_FACTOR = 4096,
    /* Where they may be larger than 1: those of pairs, and of distributions at a temperature. */
    HEAD_FP16_FACTOR_LARGE = 256
};

/* Lists the rows with a label, in order, with their number behind them. y is 0 in the others. */
typedef struct head_list_arguments {
    const int32_t *labels;
    int32_t *counts; /* of labels in each block of rows */
    int32_t *list, *total;
    float *y;
    int64_t rows, labels_stride, y_stride;
} head_list_arguments;

/* dx = 0 in rows without a label. */
typedef struct head_clear_arguments {
    const int32_t *labels;
    void *dx;
    int64_t labels_stride, dx_stride, width; /* of dx, in elements */
} head_clear_arguments;

/* Row r of `to` is row list[first + r] of `from`. */
typedef struct head_gather_arguments {
    const void *from;
    void *to;
    const int32_t *list, *total;
    int64_t first, from_stride, to_stride, width;
    bool wide; /* 16 bytes can be moved at once */
    uint8_t reserved[7];
} head_gather_arguments;

/* Logits become softcap tanh(scale l / softcap), or scale l with softcap 0, in place. */
typedef struct head_shape_arguments {
    void *logits;
    int64_t columns, stride;
    float scale, softcap;
} head_shape_arguments;

/* Of a chunk of labelled rows: list, logits and sums begin with row `first`. */
typedef struct head_softmax_arguments {
    const int32_t *labels, *list, *total;
    void *logits;    /* of the operands' type; gradients take their place */
    float *log_sums; /* of exp(logit), by row */
    float *y;
    float *parts;                /* sums of gradients over 128 rows, for the bias */
    const float *gradient_scale; /* device memory */
    const float *weights;        /* of each row's gradient; NULL: 1 */
    int64_t first, labels_stride, y_stride, words, stride; /* of logits */
    float scale, softcap;
} head_softmax_arguments;

/* What a chunk's rows learn of another head's distribution: k words, then the logarithms of their
 * probabilities. */
typedef struct head_distil_arguments {
    head_softmax_arguments head;
    const float *given;        /* of all rows */
    float *kept;               /* k products of each row of the chunk: those of the words above */
    float *numbers;            /* two of each: the logarithm of the sum of exponentials of logits /
                                  temperature, and what the probabilities of other words are times */
    int64_t given_stride, top; /* top: k */
    float temperature, weight;
} head_distil_arguments;

/* Pairs of answers of `length` rows each. */
typedef struct head_pairs_arguments {
    const int32_t *labels;
    const float *entropies; /* cross entropies of labelled rows */
    const float *numbers;   /* x2 of the call */
    float *losses, *log_probabilities, *weights;
    int64_t rows, length, labels_stride, numbers_stride;
    int32_t preference; /* sifr_preference */
    float beta;
} head_pairs_arguments;

#endif
