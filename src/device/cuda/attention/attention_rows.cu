/* What attention needs to know of rows before it begins: rowsum(dy y) of each query of a head, and
 * the least and largest segment of each span of rows. */
#include "device/cuda/attention/attention_arguments.h"
#include "device/cuda/kernel.h"

namespace {

/* A warp a query of a head. */
template <typename T> DEVICE void delta(const attention_arguments &a) {
    int64_t task = (int64_t)blockIdx.x * (ATTENTION_THREADS / 32) + threadIdx.x / 32;
    int lane = (int)(threadIdx.x % 32);
    int64_t row = task / a.heads, head = task % a.heads;
    if (row >= a.rows) return; /* the whole warp */
    typedef const typename T::stored *pointer;
    pointer y = (pointer)a.y.data + row * a.y.stride + head * a.head_dim;
    pointer dy = (pointer)a.dy.data + row * a.dy.stride + head * a.head_dim;
    float sum = 0.0f;
    for (int c = lane; c < a.head_dim; c += 32) sum = fmaf(T::load(y[c]), T::load(dy[c]), sum);
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (lane == 0) a.delta[head * a.rows + row] = sum;
}

} // namespace

KERNEL(attention_delta_fp32, attention_arguments, ATTENTION_THREADS) {
    delta<fp32>(a);
}
KERNEL(attention_delta_bf16, attention_arguments, ATTENTION_THREADS) {
    delta<bf16>(a);
}
KERNEL(attention_delta_fp16, attention_arguments, ATTENTION_THREADS) {
    delta<fp16>(a);
}

/* A thread a span. */
KERNEL(attention_ranges, attention_arguments, ATTENTION_THREADS) {
    int64_t task = (int64_t)blockIdx.x * ATTENTION_THREADS + threadIdx.x;
    int64_t sequence = task / a.spans, span = task % a.spans, first = span * ATTENTION_SPAN;
    if (sequence >= a.sequences) return;
    const int32_t *segments = a.segments + (sequence * a.length + first) * a.segment_stride;
    int32_t least = segments[0], most = least;
    for (int64_t i = 1; i < ATTENTION_SPAN && first + i < a.length; i++) {
        int32_t segment = segments[i * a.segment_stride];
        least = segment < least ? segment : least;
        most = segment > most ? segment : most;
    }
    a.ranges[2 * task] = least;
    a.ranges[2 * task + 1] = most;
}
