/* Rows of a head: which ones have a label, and copies of them; and the shape of logits. */
#include "device/cuda/kernel.h"

#include "device/cuda/head/head_arguments.h"
#include "device/cuda/head/head_shape.h"

enum { ROWS_A_THREAD = HEAD_LIST_ROWS / HEAD_LIST_THREADS, GROUP = 16 };

/* Labels of a thread's rows: bit i is set if row first + i has one. */
DEVICE int labelled_rows(const head_list_arguments &a, int64_t first) {
    int bits = 0;
#pragma unroll
    for (int i = 0; i < ROWS_A_THREAD; i++)
        if (first + i < a.rows && a.labels[(first + i) * a.labels_stride] >= 0) bits |= 1 << i;
    return bits;
}

DEVICE int bits_set(int bits) {
    int count = 0;
#pragma unroll
    for (int i = 0; i < ROWS_A_THREAD; i++) count += bits >> i & 1;
    return count;
}

DEVICE int64_t first_row(void) {
    return (int64_t)blockIdx.x * HEAD_LIST_ROWS + (int64_t)threadIdx.x * ROWS_A_THREAD;
}

KERNEL(head_count, head_list_arguments, HEAD_LIST_THREADS) {
    SHARED(int32_t, shared, HEAD_LIST_THREADS);
    shared[threadIdx.x] = bits_set(labelled_rows(a, first_row()));
    for (int half = HEAD_LIST_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0) a.counts[blockIdx.x] = shared[0];
}

KERNEL(head_list, head_list_arguments, HEAD_LIST_THREADS) {
    SHARED(int32_t, shared, HEAD_LIST_THREADS);
    SHARED(int32_t, groups, HEAD_LIST_THREADS / GROUP);
    SHARED(int32_t, before, 1);
    int thread = (int)threadIdx.x;
    /* Rows of the blocks before this one: counts are whole numbers, their order does not matter. */
    int32_t earlier = 0;
    for (int64_t block = thread; block < blockIdx.x; block += HEAD_LIST_THREADS)
        earlier += a.counts[block];
    shared[thread] = earlier;
    for (int half = HEAD_LIST_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) shared[thread] += shared[thread + half];
    }
    if (thread == 0) *before = shared[0];
    __syncthreads();
    int64_t first = first_row();
    int bits = labelled_rows(a, first);
    shared[thread] = bits_set(bits);
    __syncthreads();
    if (thread < HEAD_LIST_THREADS / GROUP) {
        int32_t sum = 0;
        for (int i = 0; i < GROUP; i++) sum += shared[thread * GROUP + i];
        groups[thread] = sum;
    }
    __syncthreads();
    int32_t at = *before;
    for (int group = 0; group < thread / GROUP; group++) at += groups[group];
    for (int i = thread / GROUP * GROUP; i < thread; i++) at += shared[i];
    for (int i = 0; i < ROWS_A_THREAD; i++) {
        if (first + i >= a.rows) continue;
        if (bits >> i & 1)
            a.list[at++] = (int32_t)(first + i);
        else
            a.y[(first + i) * a.y_stride] = 0.0f;
    }
    if (blockIdx.x == gridDim.x - 1 && thread == HEAD_LIST_THREADS - 1) *a.total = at;
}

template <typename T> DEVICE void head_clear(const head_clear_arguments &a) {
    int64_t row = blockIdx.x;
    if (a.labels[row * a.labels_stride] >= 0) return;
    for (int64_t i = threadIdx.x; i < a.width; i += HEAD_THREADS)
        ((T *)a.dx)[row * a.dx_stride + i] = 0;
}

KERNEL(head_clear16, head_clear_arguments, HEAD_THREADS) {
    head_clear<uint16_t>(a);
}

KERNEL(head_clear32, head_clear_arguments, HEAD_THREADS) {
    head_clear<uint32_t>(a);
}

template <typename T> DEVICE void head_gather(const head_gather_arguments &a) {
    int64_t row = blockIdx.x, at = threadIdx.x;
    if (a.first + row >= *a.total) return;
    const T *from = (const T *)a.from + a.list[a.first + row] * a.from_stride;
    T *to = (T *)a.to + row * a.to_stride;
    const int64_t wide = 16 / sizeof(T);
    if (a.wide) {
        for (; at < a.width / wide; at += HEAD_THREADS)
            ((uint4 *)(void *)to)[at] = ((const uint4 *)(const void *)from)[at];
        at = a.width / wide * wide + threadIdx.x;
    }
    for (; at < a.width; at += HEAD_THREADS) to[at] = from[at];
}

KERNEL(head_gather16, head_gather_arguments, HEAD_THREADS) {
    head_gather<uint16_t>(a);
}

KERNEL(head_gather32, head_gather_arguments, HEAD_THREADS) {
    head_gather<uint32_t>(a);
}

template <typename T> DEVICE void head_shape(const head_shape_arguments &a) {
    int64_t pieces = (a.columns + HEAD_COLUMNS - 1) / HEAD_COLUMNS;
    int64_t first = blockIdx.x % pieces * HEAD_COLUMNS + threadIdx.x;
    typename T::stored *row = (typename T::stored *)a.logits + blockIdx.x / pieces * a.stride;
    for (int64_t i = first; i < first + HEAD_COLUMNS && i < a.columns; i += HEAD_THREADS)
        row[i] = T::store(head_shaped(T::load(row[i]), a.scale, a.softcap));
}

KERNEL(head_shape_fp32, head_shape_arguments, HEAD_THREADS) {
    head_shape<fp32>(a);
}

KERNEL(head_shape_bf16, head_shape_arguments, HEAD_THREADS) {
    head_shape<bf16>(a);
}

KERNEL(head_shape_fp16, head_shape_arguments, HEAD_THREADS) {
    head_shape<fp16>(a);
}
