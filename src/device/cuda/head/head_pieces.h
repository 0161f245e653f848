/* How blocks go through rows of logits, for .cu files: in pieces of 16 bytes, and with sums over
 * their threads. */
#ifndef CUDA_HEAD_PIECES_H
#define CUDA_HEAD_PIECES_H

#include "device/cuda/kernel.h"

#include "device/cuda/head/head_arguments.h"
#include "device/cuda/head/head_shape.h"
#include "device/cuda/wide.h"

/* What a thread moves at once, and a block. Rows of logits are longer than the words by up to 63
 * elements, so a piece may begin at any word of a multiple of its size. */
template <typename T> struct head_piece {
    typedef typename T::stored stored;
    enum { SIZE = 16 / sizeof(stored), COLUMNS = SIZE * HEAD_THREADS };
    typedef wide_of<stored, SIZE> wide;
};

template <typename T> DEVICE void load_piece(float *to, const typename T::stored *from) {
    typedef head_piece<T> piece;
    typename piece::wide all = *(const typename piece::wide *)(const void *)from;
#pragma unroll
    for (int i = 0; i < piece::SIZE; i++) to[i] = T::load(all.at[i]);
}

/* `large`: gradients may exceed 1. */
DEVICE float gradient_factor(fp32, bool) {
    return 1.0f;
}

DEVICE float gradient_factor(bf16, bool) {
    return 1.0f;
}

DEVICE float gradient_factor(fp16, bool large) {
    return large ? HEAD_FP16_FACTOR_LARGE : HEAD_FP16_FACTOR;
}

DEVICE float larger(float left, float right) {
    return fmaxf(left, right);
}

DEVICE double larger(double left, double right) {
    return fmax(left, right);
}

template <bool LARGEST, typename V> DEVICE V join(V left, V right) {
    return LARGEST ? larger(left, right) : left + right;
}

/* The largest of, or the sum of, one value a thread, in one order; the same in all threads. */
template <bool LARGEST, typename V> DEVICE V of_block(V value, V *shared) {
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
    V out = shared[0];
    for (int i = 1; i < GROUP; i++) out = join<LARGEST>(out, shared[i]);
    __syncthreads(); /* `shared` is used again */
    return out;
}

DEVICE int32_t label_of(const head_softmax_arguments &a, int64_t place) {
    return a.labels[a.list[a.first + place] * a.labels_stride];
}

#endif
