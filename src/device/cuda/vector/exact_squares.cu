/* Exact sums of squares of vectors. */
#include "device/cuda/vector/exact_squares_arguments.h"

#include "device/cuda/vector/exact_window.h"

template <class type> DEVICE void add_exact_squares(const exact_squares_arguments &a) {
    SHARED(base_exact_sum, sum, 1);
    int64_t first = (int64_t)blockIdx.x * EXACT_EACH;
    const typename type::stored *x = (const typename type::stored *)a.data + first;
    int count = a.count - first < EXACT_EACH ? (int)(a.count - first) : EXACT_EACH;
    int at = (int)threadIdx.x;
    exact_window w = {0, {0, 0, 0}};
    clear_block_sums(sum, 1);
    for (int round = 0; round < EXACT_ROUNDS && at < count; round++) {
        uint32_t bits[EXACT_AHEAD];
#pragma unroll
        for (int i = 0; i < EXACT_AHEAD; i++, at += EXACT_THREADS)
            bits[i] = at < count ? base_float_to_bits(type::load(x[at])) & 0x7fffffff : 0;
        add_numbers<EXACT_AHEAD>(w, bits, sum);
    }
    flush_window(w, sum);
    add_block_sums(sum, 1, (int64_t *)a.sum);
}

KERNEL(exact_squares_fp32, exact_squares_arguments, EXACT_THREADS) {
    add_exact_squares<fp32>(a);
}

KERNEL(exact_squares_bf16, exact_squares_arguments, EXACT_THREADS) {
    add_exact_squares<bf16>(a);
}

KERNEL(exact_squares_fp16, exact_squares_arguments, EXACT_THREADS) {
    add_exact_squares<fp16>(a);
}
