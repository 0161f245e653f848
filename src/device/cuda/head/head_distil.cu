/* Rows of a head that learns another head's distribution. Products of the words whose probabilities
 * it gives are kept apart, and -infinity takes their place among the logits, which marks them. */
#include "device/cuda/head/head_pieces.h"
#include "device/cuda/product/column_sums_arguments.h"

/* A row of the chunk: its place, and where it has what it is given. */
struct distil_row {
    int64_t place;
    int32_t index; /* of the row in the call */
    const float *words, *log_q;
    float *kept, *numbers;
};

DEVICE distil_row row_of(const head_distil_arguments &a, int64_t place) {
    distil_row r;
    r.place = place;
    r.index = a.head.list[a.head.first + place];
    r.words = a.given + r.index * a.given_stride;
    r.log_q = r.words + a.top;
    r.kept = a.kept + place * a.top;
    r.numbers = a.numbers + 2 * place;
    return r;
}

/* -1: what is given is no word. */
DEVICE int64_t word_of(const head_distil_arguments &a, const distil_row &r, int64_t i) {
    float word = r.words[i];
    return word >= 0.0f && word < (float)a.head.words ? (int64_t)word : -1;
}

/* Keeps the products of the words given. One that is no word makes NaN. */
template <typename T>
DEVICE void keep_products(const head_distil_arguments &a, const distil_row &r,
                          typename T::stored *row) {
    for (int64_t i = threadIdx.x; i < a.top; i += HEAD_THREADS) {
        int64_t word = word_of(a, r, i);
        r.kept[i] = word < 0 ? NAN : T::load(row[word]);
    }
    __syncthreads(); /* a word may be given twice */
    for (int64_t i = threadIdx.x; i < a.top; i += HEAD_THREADS) {
        int64_t word = word_of(a, r, i);
        if (word >= 0) row[word] = T::store(-INFINITY);
    }
    __syncthreads();
}

/* The logarithm of the sum of exponentials of the other words' logits / temperature; -infinity:
 * there is none. */
template <typename T>
DEVICE double rest_of(const head_distil_arguments &a, const typename T::stored *row,
                      float *shared) {
    typedef head_piece<T> piece;
    const head_softmax_arguments &h = a.head;
    float largest = -INFINITY, sum = 0.0f, inverse = 1.0f / a.temperature;
    for (int64_t at = piece::SIZE * (int64_t)threadIdx.x; at < h.words; at += piece::COLUMNS) {
        float values[piece::SIZE], most = largest;
        load_piece<T>(values, row + at);
#pragma unroll
        for (int i = 0; i < piece::SIZE; i++) {
            bool other = at + i < h.words && values[i] > -INFINITY;
            values[i] = other ? head_shaped(values[i], h.scale, h.softcap) * inverse : -INFINITY;
            most = fmaxf(most, values[i]);
        }
        if (most > largest) {
            sum *= expf(largest - most);
            largest = most;
        }
#pragma unroll
        for (int i = 0; i < piece::SIZE; i++)
            if (values[i] > -INFINITY) sum += expf(values[i] - largest);
    }
    float most = of_block<true>(largest, shared);
    float total = of_block<false>(largest > -INFINITY ? sum * expf(largest - most) : 0.0f, shared);
    return most > -INFINITY ? (double)most + log((double)total) : -(double)INFINITY;
}

/* Of the logits / temperature. */
DEVICE double kept_logit(const head_distil_arguments &a, const distil_row &r, int64_t i) {
    return (double)head_shaped(r.kept[i], a.head.scale, a.head.softcap) / (double)a.temperature;
}

/* The loss of the distribution, and the row's two numbers; in all threads. */
DEVICE double compare_distributions(const head_distil_arguments &a, const distil_row &r,
                                    double rest, double *shared) {
    double largest = rest, sum = 0, q = 0, loss = 0, factor = 1;
    for (int64_t i = threadIdx.x; i < a.top; i += HEAD_THREADS)
        largest = fmax(largest, kept_logit(a, r, i));
    largest = of_block<true>(largest, shared);
    for (int64_t i = threadIdx.x; i < a.top; i += HEAD_THREADS)
        sum += exp(kept_logit(a, r, i) - largest);
    sum = of_block<false>(sum, shared);
    double log_sum = largest + log(sum + exp(rest - largest));
    for (int64_t i = threadIdx.x; i < a.top; i += HEAD_THREADS) {
        double log_q = (double)r.log_q[i];
        loss += exp(log_q) * (log_q - (kept_logit(a, r, i) - log_sum));
        q += exp(log_q);
    }
    loss = of_block<false>(loss, shared);
    q = of_block<false>(q, shared);
    double other = fmax(1 - q, 0.0);
    if (rest > -(double)INFINITY) { /* without a rest nothing is multiplied by the factor */
        if (other > 0) loss += other * (log(other) - (rest - log_sum));
        factor = 1 - other * exp(log_sum - rest);
    }
    if (threadIdx.x == 0) {
        r.numbers[0] = (float)log_sum;
        r.numbers[1] = (float)factor;
    }
    return loss;
}

/* Joins the row's loss, a cross entropy so far. */
template <typename T>
DEVICE void distil_rows(const head_distil_arguments &a, float *shared, double *sums) {
    const head_softmax_arguments &h = a.head;
    int64_t place = blockIdx.x;
    if (h.first + place >= *h.total) return;
    distil_row r = row_of(a, place);
    typename T::stored *row = (typename T::stored *)h.logits + place * h.stride;
    keep_products<T>(a, r, row);
    double rest = rest_of<T>(a, row, shared);
    double loss = compare_distributions(a, r, rest, sums);
    if (threadIdx.x != 0) return;
    double t = (double)a.temperature, weight = (double)a.weight;
    float *y = &h.y[r.index * h.y_stride];
    *y = (float)((1 - weight) * (double)*y + weight * t * t * loss);
}

#define ROWS(type)                                                                                 \
    KERNEL(head_distil_rows_##type, head_distil_arguments, HEAD_THREADS) {                         \
        SHARED(float, shared, HEAD_THREADS);                                                       \
        SHARED(double, sums, HEAD_THREADS);                                                        \
        distil_rows<type>(a, shared, sums);                                                        \
    }

ROWS(fp32)
ROWS(bf16)
ROWS(fp16)

/* Of a logit. q: the probability given; factor: what its own one is times. */
DEVICE float distil_gradient(const head_distil_arguments &a, const distil_row &r, float product,
                             bool label, float factor, float q) {
    float logit = head_shaped(product, a.head.scale, a.head.softcap);
    float own = expf(logit - a.head.log_sums[r.place]) - (label ? 1.0f : 0.0f);
    float other = expf(logit / a.temperature - r.numbers[0]) * factor - q;
    float sum = (1.0f - a.weight) * own + a.weight * a.temperature * other;
    return sum * head_slope(logit, a.head.softcap);
}

/* Of the other words, by pieces, then of those given. */
template <typename T> DEVICE void distil_gradients(const head_distil_arguments &a) {
    typedef head_piece<T> piece;
    const head_softmax_arguments &h = a.head;
    int64_t place = blockIdx.x;
    if (h.first + place >= *h.total) return;
    distil_row r = row_of(a, place);
    typename T::stored *row = (typename T::stored *)h.logits + place * h.stride;
    float scale = gradient_factor(T(), true), factor = r.numbers[1];
    int32_t label = label_of(h, place);
    for (int64_t at = piece::SIZE * (int64_t)threadIdx.x; at < h.words; at += piece::COLUMNS) {
        float values[piece::SIZE];
        typename piece::wide out;
        load_piece<T>(values, row + at);
#pragma unroll
        for (int i = 0; i < piece::SIZE; i++)
            out.at[i] =
                T::store(scale * distil_gradient(a, r, values[i], label == at + i, factor, 0.0f));
        *(typename piece::wide *)(void *)(row + at) = out;
    }
    __syncthreads(); /* those above wrote in the places of these */
    for (int64_t i = threadIdx.x; i < a.top; i += HEAD_THREADS) {
        int64_t word = word_of(a, r, i);
        if (word < 0) continue;
        row[word] = T::store(
            scale * distil_gradient(a, r, r.kept[i], label == word, 1.0f, expf(r.log_q[i])));
    }
}

#define GRADIENTS(type)                                                                            \
    KERNEL(head_distil_gradients_##type, head_distil_arguments, HEAD_THREADS) {                    \
        distil_gradients<type>(a);                                                                 \
    }

GRADIENTS(fp32)
GRADIENTS(bf16)
GRADIENTS(fp16)

/* The bias's gradient, from those of the logits: block (x, y) sums 128 rows. */
template <typename T> DEVICE void distil_bias_parts(const head_softmax_arguments &a) {
    int64_t column = (int64_t)blockIdx.x * HEAD_BIAS_THREADS + threadIdx.x;
    int64_t first = (int64_t)blockIdx.y * COLUMN_SUMS_ROWS, last = first + COLUMN_SUMS_ROWS;
    if (last > *a.total - a.first) last = *a.total - a.first;
    if (column >= a.words || first >= last) return;
    const typename T::stored *gradients = (const typename T::stored *)a.logits + column;
    float sum = 0.0f, factor = *a.gradient_scale * a.scale / gradient_factor(T(), true);
    for (int64_t place = first; place < last; place++) sum += T::load(gradients[place * a.stride]);
    a.parts[blockIdx.y * a.words + column] = sum * factor;
}

#define BIAS_PARTS(type)                                                                           \
    KERNEL(head_distil_bias_##type, head_distil_arguments, HEAD_BIAS_THREADS) {                    \
        distil_bias_parts<type>(a.head);                                                           \
    }

BIAS_PARTS(fp32)
BIAS_PARTS(bf16)
BIAS_PARTS(fp16)
