/* Layer norm and RMS norm. A row is read again from the caches for each of its sums and for the
 * result, so its length has no limit. */
#include "device/cuda/vector/norm_arguments.h"
#include "device/cuda/vector/row_pieces.h"

/* Replaces each value by its sum over the threads of a unit. `sums`: NORM_SUMS floats. */
template <int count> DEVICE void unit_sums(float *values, uint32_t warps, float *sums) {
    for (int v = 0; v < count; v++) values[v] = warp_sum(values[v]);
    if (warps == 1) return;
    if (threadIdx.x % 32 == 0)
        for (int v = 0; v < count; v++) sums[v * NORM_WARPS + threadIdx.x / 32] = values[v];
    __syncthreads();
    for (int v = 0; v < count; v++) {
        values[v] = 0.0f;
        for (int w = 0; w < NORM_WARPS; w++) values[v] += sums[v * NORM_WARPS + w];
    }
    __syncthreads(); /* `sums` is used again */
}

/* The scale of a piece: the weight, or 1 + weight. One that is missing is 0. */
template <class type>
DEVICE void read_scale(const void *w, int64_t at, int count, bool wide, bool plus_one,
                       float to[ROW_PIECE]) {
    read_piece<type>((const typename type::stored *)w + at, w ? count : 0, wide, to);
    if (!plus_one) return;
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++) to[i] = 1.0f + to[i];
}

template <class type> DEVICE void norm(const norm_arguments &a) {
    typedef typename type::stored element;
    SHARED(float, sums, NORM_SUMS);
    bool few = a.warps == 1;
    int64_t unit = few ? (int64_t)blockIdx.x * NORM_WARPS + threadIdx.x / 32 : blockIdx.x;
    if (unit >= a.units) return;
    int64_t row = unit / a.groups, group = unit - row * a.groups;
    const element *x = (const element *)a.x + row * a.x_stride + group * a.columns;
    element *y = (element *)a.y + row * a.y_stride + group * a.columns;
    int64_t begin = (few ? threadIdx.x % 32 : threadIdx.x) * ROW_PIECE;
    int64_t step = (int64_t)a.warps * 32 * ROW_PIECE;
    float mean = 0.0f, sum = 0.0f, xs[ROW_PIECE], ws[ROW_PIECE], bs[ROW_PIECE];
    if (a.layer) {
        for (int64_t at = begin; at < a.columns; at += step) {
            read_piece<type>(x + at, piece_count(at, a.columns), a.wide, xs);
#pragma unroll
            for (int i = 0; i < ROW_PIECE; i++) sum += xs[i]; /* 0 beyond the end */
        }
        unit_sums<1>(&sum, a.warps, sums);
        mean = sum / (float)a.columns;
        sum = 0.0f;
    }
    for (int64_t at = begin; at < a.columns; at += step) {
        int count = piece_count(at, a.columns);
        read_piece<type>(x + at, count, a.wide, xs);
#pragma unroll
        for (int i = 0; i < ROW_PIECE; i++) {
            float d = i < count ? xs[i] - mean : 0.0f;
            sum = fmaf(d, d, sum);
        }
    }
    unit_sums<1>(&sum, a.warps, sums);
    float scale = 1.0f / sqrtf(sum / (float)a.columns + a.epsilon);
    if (begin == 0) {
        float *saved = a.saved + row * a.saved_stride + group * (a.layer ? 2 : 1);
        if (a.layer) *saved++ = mean;
        *saved = scale;
    }
    for (int64_t at = begin; at < a.columns; at += step) {
        int count = piece_count(at, a.columns);
        read_piece<type>(x + at, count, a.wide, xs);
        read_scale<type>(a.w, at, count, a.wide, a.plus_one, ws);
        if (a.bias) {
            read_piece<type>((const element *)a.bias + at, count, a.wide, bs);
#pragma unroll
            for (int i = 0; i < ROW_PIECE; i++) xs[i] = fmaf((xs[i] - mean) * scale, ws[i], bs[i]);
        } else {
#pragma unroll
            for (int i = 0; i < ROW_PIECE; i++) xs[i] = (xs[i] - mean) * scale * ws[i];
        }
        write_piece<type>(y + at, count, a.wide, xs);
    }
}

KERNEL(norm_fp32, norm_arguments, NORM_THREADS) {
    norm<fp32>(a);
}

KERNEL(norm_bf16, norm_arguments, NORM_THREADS) {
    norm<bf16>(a);
}

KERNEL(norm_fp16, norm_arguments, NORM_THREADS) {
    norm<fp16>(a);
}

/* Where an element of weight gradients is held. Threads have neighbouring pieces: element i of
 * theirs lie side by side, so that they use different banks. */
DEVICE int64_t held_place(int64_t at, int64_t held) {
    return at % ROW_PIECE * (held / ROW_PIECE) + at / ROW_PIECE;
}

/* A thread's piece of a unit. */
struct norm_piece {
    float normal[ROW_PIECE], g[ROW_PIECE], dy[ROW_PIECE];
    int count;
};

template <class type>
DEVICE norm_piece read_unit(const norm_backward_arguments &a, const typename type::stored *x,
                            const typename type::stored *dy, float mean, float scale, int64_t at) {
    norm_piece p;
    float w[ROW_PIECE];
    p.count = piece_count(at, a.columns);
    read_piece<type>(x + at, p.count, a.wide, p.normal);
    read_piece<type>(dy + at, p.count, a.wide, p.dy); /* 0 beyond the end, so nothing is added */
    read_scale<type>(a.w, at, p.count, a.wide, a.plus_one, w);
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++) {
        p.normal[i] = (p.normal[i] - mean) * scale;
        p.g[i] = w[i] * p.dy[i];
    }
    return p;
}

/* Adds a piece to what the thread holds of dw and db. */
DEVICE void hold_piece(const norm_backward_arguments &a, const norm_piece &p, int64_t at,
                       float *dw) {
    int64_t apart = a.held / ROW_PIECE, place = (at - a.first) / ROW_PIECE;
    float *db = dw + a.held;
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++) {
        float *sum = dw + i * apart + place;
        *sum = fmaf(p.dy[i], p.normal[i], *sum);
        if (a.gradients > 1) db[i * apart + place] += p.dy[i];
    }
}

/* With normal = (x - mean) scale and g = w dy: dx = scale (g - mean(g) - normal mean(g normal));
 * RMS norm lacks the first mean. dw = sum dy normal, db = sum dy. */
template <class type>
DEVICE void unit_backward(const norm_backward_arguments &a, int64_t unit, int64_t begin,
                          float *sums, float *dw) {
    typedef typename type::stored element;
    int64_t row = unit / a.groups, group = unit - row * a.groups, first = group * a.columns;
    const element *x = (const element *)a.x + row * a.x_stride + first;
    const element *dy = (const element *)a.dy + row * a.dy_stride + first;
    const float *saved = a.saved + row * a.saved_stride + group * (a.layer ? 2 : 1);
    float mean = a.layer ? saved[0] : 0.0f, scale = saved[a.layer ? 1 : 0];
    int64_t step = (int64_t)a.warps * 32 * ROW_PIECE;
    float means[2] = {0.0f, 0.0f}; /* of g normal, of g */
    for (int64_t at = begin; at < a.columns; at += step) {
        bool holds = at >= a.first && at - a.first < a.held;
        if (!holds && !a.dx) continue;
        norm_piece p = read_unit<type>(a, x, dy, mean, scale, at);
        if (holds) hold_piece(a, p, at, dw);
#pragma unroll
        for (int i = 0; i < ROW_PIECE; i++) {
            means[0] += p.g[i] * p.normal[i];
            means[1] += p.g[i];
        }
    }
    if (!a.dx) return;
    if (a.layer)
        unit_sums<2>(means, a.warps, sums);
    else
        unit_sums<1>(means, a.warps, sums);
    float mean_gn = means[0] / (float)a.columns;
    float mean_g = a.layer ? means[1] / (float)a.columns : 0.0f;
    element *dx = (element *)a.dx + row * a.dx_stride + first;
    for (int64_t at = begin; at < a.columns; at += step) {
        norm_piece p = read_unit<type>(a, x, dy, mean, scale, at);
#pragma unroll
        for (int i = 0; i < ROW_PIECE; i++)
            p.g[i] = scale * (fmaf(-p.normal[i], mean_gn, p.g[i]) - mean_g);
        write_gradient<type>(dx + at, p.count, a.wide, a.add, p.g);
    }
}

/* Writes the block's part: what its warps hold, or the block together, one after the other. */
DEVICE void write_part(const norm_backward_arguments &a, const float *dw, uint32_t holders) {
    int64_t length = a.gradients * a.held;
    float *part = a.parts + (int64_t)blockIdx.x * a.gradients * a.columns + a.first;
    for (int64_t e = threadIdx.x; e < length; e += NORM_THREADS) {
        int64_t which = e / a.held, at = e - which * a.held, place = held_place(at, a.held);
        if (a.first + at >= a.columns) continue;
        float sum = 0.0f;
        for (uint32_t h = 0; h < holders; h++) sum += dw[h * length + which * a.held + place];
        part[which * a.columns + at] = sum;
    }
}

template <class type> DEVICE void norm_backward(const norm_backward_arguments &a) {
    SHARED(float, sums, NORM_SUMS);
    SHARED_DYNAMIC(float, held);
    bool few = a.warps == 1;
    uint32_t holders = few ? NORM_WARPS : 1, holder = few ? threadIdx.x / 32 : 0;
    float *dw = held + (int64_t)holder * a.gradients * a.held;
    int64_t begin = (few ? threadIdx.x % 32 : threadIdx.x) * ROW_PIECE;
    int64_t step = (int64_t)a.warps * 32 * ROW_PIECE, apart = a.held / ROW_PIECE;
    for (int64_t at = begin; at < a.columns; at += step) { /* a thread clears what is its own */
        if (at < a.first || at - a.first >= a.held) continue;
        for (uint32_t i = 0; i < a.gradients * ROW_PIECE; i++)
            dw[i * apart + (at - a.first) / ROW_PIECE] = 0.0f;
    }
    int64_t first = ((int64_t)blockIdx.x * holders + holder) * NORM_UNITS;
    for (int64_t unit = first; unit < first + NORM_UNITS && unit < a.units; unit++)
        unit_backward<type>(a, unit, begin, sums, dw);
    __syncthreads();
    write_part(a, held, holders);
}

KERNEL(norm_backward_fp32, norm_backward_arguments, NORM_THREADS) {
    norm_backward<fp32>(a);
}

KERNEL(norm_backward_bf16, norm_backward_arguments, NORM_THREADS) {
    norm_backward<bf16>(a);
}

KERNEL(norm_backward_fp16, norm_backward_arguments, NORM_THREADS) {
    norm_backward<fp16>(a);
}
