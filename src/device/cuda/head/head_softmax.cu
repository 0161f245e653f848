/* Softmax and cross entropy of a chunk of rows. Logits have the operands' type, so in 16 bits
 * they are rounded once, as in PyTorch; all that follows is in fp32. Gradients are written over
 * them, for the products that come next.
 *
 * A gradient here lacks the factor gradient_scale x scale, which those products apply to their
 * results: most gradients are small, and in fp16 they would lose digits, or vanish, with it. For
 * fp16 they are multiplied by a power of two besides (HEAD_FP16_FACTOR). */
#include "device/cuda/head/head_pieces.h"
#include "device/cuda/product/column_sums_arguments.h"

/* Log of the sum of exponentials and loss of a row. A label that is not a word makes NaN. */
template <typename T> DEVICE void head_statistics(const head_softmax_arguments &a, float *shared) {
    typedef head_piece<T> piece;
    int64_t place = blockIdx.x;
    if (a.first + place >= *a.total) return;
    const typename T::stored *row = (const typename T::stored *)a.logits + place * a.stride;
    float largest = -INFINITY, sum = 0.0f;
    for (int64_t at = piece::SIZE * (int64_t)threadIdx.x; at < a.words; at += piece::COLUMNS) {
        float values[piece::SIZE], most = largest;
        load_piece<T>(values, row + at);
#pragma unroll
        for (int i = 0; i < piece::SIZE; i++) {
            values[i] = at + i < a.words ? head_shaped(values[i], a.scale, a.softcap) : -INFINITY;
            most = fmaxf(most, values[i]);
        }
        if (most > largest) {
            sum *= expf(largest - most);
            largest = most;
        }
#pragma unroll
        for (int i = 0; i < piece::SIZE; i++)
            if (at + i < a.words) sum += expf(values[i] - largest);
    }
    float most = of_block<true>(largest, shared);
    float total = of_block<false>(largest > -INFINITY ? sum * expf(largest - most) : sum, shared);
    if (threadIdx.x != 0) return;
    int32_t to = a.list[a.first + place], label = a.labels[to * a.labels_stride];
    float log_of_sum = label < a.words ? logf(total) : NAN;
    float logit = label < a.words ? head_shaped(T::load(row[label]), a.scale, a.softcap) : NAN;
    a.log_sums[place] = most + log_of_sum;
    a.y[to * a.y_stride] = (most - logit) + log_of_sum;
}

#define STATISTICS(type)                                                                           \
    KERNEL(head_statistics_##type, head_softmax_arguments, HEAD_THREADS) {                         \
        SHARED(float, shared, HEAD_THREADS);                                                       \
        head_statistics<type>(a, shared);                                                          \
    }

STATISTICS(fp32)
STATISTICS(bf16)
STATISTICS(fp16)

DEVICE float gradient_of(const head_softmax_arguments &a, float product, float log_sum,
                         bool label) {
    float logit = head_shaped(product, a.scale, a.softcap);
    float probability = expf(logit - log_sum);
    return (label ? probability - 1.0f : probability) * head_slope(logit, a.softcap);
}

/* What the gradients of a row of the chunk are times. */
DEVICE float weight_of(const head_softmax_arguments &a, int64_t place) {
    return a.weights ? a.weights[a.list[a.first + place]] : 1.0f;
}

/* The bias's gradient, not rounded to 16 bits: block (x, y) sums 128 rows. */
template <typename T> DEVICE void head_bias_parts(const head_softmax_arguments &a) {
    int64_t column = (int64_t)blockIdx.x * HEAD_BIAS_THREADS + threadIdx.x;
    int64_t first = (int64_t)blockIdx.y * COLUMN_SUMS_ROWS, last = first + COLUMN_SUMS_ROWS;
    if (last > *a.total - a.first) last = *a.total - a.first;
    if (column >= a.words || first >= last) return;
    const typename T::stored *logits = (const typename T::stored *)a.logits + column;
    float sum = 0.0f;
    for (int64_t place = first; place < last; place++)
        sum += gradient_of(a, T::load(logits[place * a.stride]), a.log_sums[place],
                           label_of(a, place) == column) *
               weight_of(a, place);
    a.parts[blockIdx.y * a.words + column] = sum * (*a.gradient_scale * a.scale);
}

KERNEL(head_bias_parts_fp32, head_softmax_arguments, HEAD_BIAS_THREADS) {
    head_bias_parts<fp32>(a);
}

KERNEL(head_bias_parts_bf16, head_softmax_arguments, HEAD_BIAS_THREADS) {
    head_bias_parts<bf16>(a);
}

KERNEL(head_bias_parts_fp16, head_softmax_arguments, HEAD_BIAS_THREADS) {
    head_bias_parts<fp16>(a);
}

/* A thread writes what it has read. */
template <typename T> DEVICE void head_gradients(const head_softmax_arguments &a) {
    typedef head_piece<T> piece;
    int64_t place = blockIdx.x;
    if (a.first + place >= *a.total) return;
    typename T::stored *row = (typename T::stored *)a.logits + place * a.stride;
    float log_sum = a.log_sums[place];
    float factor = gradient_factor(T(), a.weights != nullptr) * weight_of(a, place);
    int32_t label = label_of(a, place);
    for (int64_t at = piece::SIZE * (int64_t)threadIdx.x; at < a.words; at += piece::COLUMNS) {
        float values[piece::SIZE];
        load_piece<T>(values, row + at);
        typename piece::wide out;
#pragma unroll
        for (int i = 0; i < piece::SIZE; i++)
            out.at[i] = T::store(factor * gradient_of(a, values[i], log_sum, label == at + i));
        *(typename piece::wide *)(void *)(row + at) = out;
    }
}

KERNEL(head_gradients_fp32, head_softmax_arguments, HEAD_THREADS) {
    head_gradients<fp32>(a);
}

KERNEL(head_gradients_bf16, head_softmax_arguments, HEAD_THREADS) {
    head_gradients<bf16>(a);
}

KERNEL(head_gradients_fp16, head_softmax_arguments, HEAD_THREADS) {
    head_gradients<fp16>(a);
}
