/* Dropout, forward and backward: a number of Philox for each element decides, four of one counter
 * (device/cpu/vector/kernels_elements.c). A thread takes several packs, as making the call's key
 * takes as long as the numbers of four elements. */
#include "device/cuda/vector/elements_arguments.h"
#include "device/cuda/vector/packs.h"

/* The words of elements first to first + 7. Two counters hold them, or three; the words are moved
 * by selection, since registers have no index. */
DEVICE void pack_numbers(uint64_t key, uint64_t first, uint32_t out[PACK]) {
    enum { EACH = 4 };
    uint32_t words[3 * EACH] = {};
    int skip = (int)(first % EACH);
#pragma unroll
    for (int c = 0; c < 3; c++) {
        if (c == 2 && skip == 0) continue;
        base_random4 four = base_philox(key, first / EACH + (uint64_t)c, 0);
#pragma unroll
        for (int i = 0; i < EACH; i++) words[c * EACH + i] = four.v[i];
    }
#pragma unroll
    for (int i = 0; i <= PACK; i++)
        if (skip & 2) words[i] = words[i + 2];
#pragma unroll
    for (int i = 0; i < PACK; i++) out[i] = skip & 1 ? words[i + 1] : words[i];
}

DEVICE void drop_pack(const dropout_arguments &a, const pack_place &place, int type, bool training,
                      uint64_t key) {
    int64_t from = place.row * a.x.stride + place.first;
    int64_t to = place.row * a.result.stride + place.first;
    float x[PACK], before[PACK];
    pack_words words = load_pack(a.x.data, from, type, place.count), old = {};
    if (a.add) old = load_pack(a.result.data, to, type, place.count);
    widen_pack(words, type, x);
    if (training) {
        uint32_t numbers[PACK];
        pack_numbers(key, a.element + (uint64_t)(place.row * a.whole + place.first), numbers);
#pragma unroll
        for (int i = 0; i < PACK; i++) {
            x[i] = base_uniform(numbers[i]) >= a.probability ? x[i] * a.keep : 0.0f;
        }
    }
    if (a.add) {
        widen_pack(old, type, before);
#pragma unroll
        for (int i = 0; i < PACK; i++) x[i] += before[i];
    }
    store_pack(a.result.data, to, type, place.count, narrow_pack(x, type));
}

DEVICE void drop(const dropout_arguments &a, int type) {
    bool training = a.step->training;
    uint64_t key = base_random_key(a.step->seed, (uint64_t)a.step->step, a.place);
    int64_t first = (int64_t)blockIdx.x * DROPOUT_PACKS * PACK_THREADS + threadIdx.x;
#pragma unroll 1
    for (int p = 0; p < DROPOUT_PACKS; p++) {
        pack_place place = place_of_pack(first + p * PACK_THREADS, a.rows, a.columns);
        if (place.count == 0) return;
        drop_pack(a, place, type, training, key);
    }
}

KERNEL(dropout_fp32, dropout_arguments, PACK_THREADS) {
    drop(a, BASE_FP32);
}

KERNEL(dropout_bf16, dropout_arguments, PACK_THREADS) {
    drop(a, BASE_BF16);
}

KERNEL(dropout_fp16, dropout_arguments, PACK_THREADS) {
    drop(a, BASE_FP16);
}
