/* Softmax and cross entropy of a chunk of rows. Logits are in fp32. Gradients are written over
 * them in the operands' type, for the products that come next.
 *
 * A gradient here lacks the factor gradient_scale x scale, which those products apply to their
 * results: most gradients are small, and in fp16 they would lose digits, or vanish, with it. For
 * fp16 they are multiplied by 4096 besides (HEAD_FP16_FACTOR). */
#include "device/cuda/kernel.h"

#include "device/cuda/head/head_arguments.h"
#include "device/cuda/head/head_shape.h"
#include "device/cuda/product/column_sums_arguments.h"
#include "device/cuda/wide.h"

/* Rows of logits are longer than the words by up to 63 elements, so four may be read at once. */
DEVICE void load_four(float to[4], const float *from) {
    wide_of<float, 4> four = *(const wide_of<float, 4> *)(const void *)from;
#pragma unroll
    for (int i = 0; i < 4; i++) to[i] = four.at[i];
}

DEVICE float gradient_factor(fp32) {
    return 1.0f;
}

DEVICE float gradient_factor(bf16) {
    return 1.0f;
}

DEVICE float gradient_factor(fp16) {
    return HEAD_FP16_FACTOR;
}

template <bool LARGEST> DEVICE float join(float left, float right) {
    return LARGEST ? fmaxf(left, right) : left + right;
}

/* The largest of, or the sum of, one value a thread, in one order; the same in all threads. */
template <bool LARGEST> DEVICE float of_block(float value, float *shared) {
    enum { GROUP = 16 };
    static_assert(HEAD_THREADS == GROUP * GROUP, "as many groups as threads in one");
    int thread = (int)threadIdx.x;
    shared[thread] = value;
    __syncthreads();
    if (thread < GROUP) {
        for (int i = 1; i < GROUP; i++) value = join<LARGEST>(value, shared[i * GROUP + thread]);
        shared[thread] = value;
    }
    __syncthreads();
    float out = shared[0];
    for (int i = 1; i < GROUP; i++) out = join<LARGEST>(out, shared[i]);
    __syncthreads(); /* `shared` is used again */
    return out;
}

/* Log of the sum of exponentials and loss of a row. A label that is not a word makes NaN. */
KERNEL(head_statistics, head_softmax_arguments, HEAD_THREADS) {
    SHARED(float, shared, HEAD_THREADS);
    int64_t place = blockIdx.x;
    if (a.first + place >= *a.total) return;
    const float *row = (const float *)a.logits + place * a.stride;
    float largest = -INFINITY, sum = 0.0f;
    for (int64_t at = 4 * (int64_t)threadIdx.x; at < a.words; at += HEAD_COLUMNS) {
        float values[4], most = largest;
        load_four(values, row + at);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            values[i] = at + i < a.words ? head_shaped(values[i], a.scale, a.softcap) : -INFINITY;
            most = fmaxf(most, values[i]);
        }
        if (most > largest) {
            sum *= expf(largest - most);
            largest = most;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (at + i < a.words) sum += expf(values[i] - largest);
    }
    float most = of_block<true>(largest, shared);
    float total = of_block<false>(largest > -INFINITY ? sum * expf(largest - most) : sum, shared);
    if (threadIdx.x != 0) return;
    int32_t to = a.list[a.first + place], label = a.labels[to * a.labels_stride];
    float log_of_sum = label < a.words ? logf(total) : NAN;
    float logit = label < a.words ? head_shaped(row[label], a.scale, a.softcap) : NAN;
    a.log_sums[place] = most + log_of_sum;
    a.y[to * a.y_stride] = (most - logit) + log_of_sum;
}

DEVICE float gradient_of(const head_softmax_arguments &a, float product, float log_sum,
                         bool label) {
    float logit = head_shaped(product, a.scale, a.softcap);
    float probability = expf(logit - log_sum);
    return (label ? probability - 1.0f : probability) * head_slope(logit, a.softcap);
}

DEVICE int32_t label_of(const head_softmax_arguments &a, int64_t place) {
    return a.labels[a.list[a.first + place] * a.labels_stride];
}

/* The bias's gradient, not rounded to 16 bits: block (x, y) sums 128 rows. */
KERNEL(head_bias_parts, head_softmax_arguments, HEAD_BIAS_THREADS) {
    int64_t column = (int64_t)blockIdx.x * HEAD_BIAS_THREADS + threadIdx.x;
    int64_t first = (int64_t)blockIdx.y * COLUMN_SUMS_ROWS, last = first + COLUMN_SUMS_ROWS;
    if (last > *a.total - a.first) last = *a.total - a.first;
    if (column >= a.words || first >= last) return;
    const float *logits = (const float *)a.logits + column;
    float sum = 0.0f;
    for (int64_t place = first; place < last; place++)
        sum += gradient_of(a, logits[place * a.stride], a.log_sums[place],
                           label_of(a, place) == column);
    a.parts[blockIdx.y * a.words + column] = sum * (*a.gradient_scale * a.scale);
}

/* A row of gradients is shorter than its logits or as long. What a turn of the loop writes lies
 * before what the next one reads, and other threads have read what it overwrites. */
template <typename T> DEVICE void head_gradients(const head_softmax_arguments &a) {
    int64_t place = blockIdx.x;
    if (a.first + place >= *a.total) return;
    const float *row = (const float *)a.logits + place * a.stride;
    typename T::stored *to = (typename T::stored *)(void *)((float *)a.logits + place * a.stride);
    float log_sum = a.log_sums[place];
    int32_t label = label_of(a, place);
    for (int64_t turn = 0; turn < a.words; turn += HEAD_COLUMNS) {
        int64_t at = turn + 4 * (int64_t)threadIdx.x;
        float values[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (at < a.words) load_four(values, row + at);
#pragma unroll
        for (int i = 0; i < 4; i++)
            values[i] = gradient_factor(T()) * gradient_of(a, values[i], log_sum, label == at + i);
        __syncthreads();
        if (at >= a.words) continue;
        wide_of<typename T::stored, 4> out;
#pragma unroll
        for (int i = 0; i < 4; i++) out.at[i] = T::store(values[i]);
        *(wide_of<typename T::stored, 4> *)(void *)(to + at) = out;
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
