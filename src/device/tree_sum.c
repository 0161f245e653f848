#include "device/tree_sum.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/half.h"

enum { BLOCK = 512 }; /* elements at a time: a few blocks fit in the first-level cache */

static void add(float *to, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static void sum_block(const float *const *rows, int32_t count, int64_t at, int64_t length,
                      float *out) {
    if (count % 2) {
        memcpy(out, rows[0] + at, (size_t)length * sizeof *out);
        for (int32_t r = 1; r < count; r++) add(out, rows[r] + at, length);
    } else if (count == 2) {
        const float *a = rows[0] + at, *b = rows[1] + at;
        for (int64_t i = 0; i < length; i++) out[i] = a[i] + b[i];
    } else {
        float right[BLOCK];
        sum_block(rows, count / 2, at, length, out);
        sum_block(rows + count / 2, count / 2, at, length, right);
        add(out, right, length);
    }
}

void device_tree_sum(const float *const *rows, int32_t count, int64_t elements, float *out) {
    base_assert(count >= 1);
    for (int64_t at = 0; at < elements; at += BLOCK) {
        int64_t length = elements - at < BLOCK ? elements - at : BLOCK;
        float block[BLOCK]; /* `out` may be one of the rows, which is then read last */
        sum_block(rows, count, at, length, block);
        memcpy(out + at, block, (size_t)length * sizeof *block);
    }
}

static void widen(base_dtype type, const uint16_t *from, int64_t length, float *out) {
    base_assert(type == BASE_FP16 || type == BASE_BF16);
    if (type == BASE_FP16) {
        for (int64_t i = 0; i < length; i++) out[i] = base_half_to_float(from[i]);
    } else {
        for (int64_t i = 0; i < length; i++) out[i] = base_bf16_to_float(from[i]);
    }
}

static void narrow(base_dtype type, const float *from, int64_t length, uint16_t *out) {
    base_assert(type == BASE_FP16 || type == BASE_BF16);
    if (type == BASE_FP16) {
        for (int64_t i = 0; i < length; i++) out[i] = base_half_from_float(from[i]);
    } else {
        for (int64_t i = 0; i < length; i++) out[i] = base_bf16_from_float(from[i]);
    }
}

typedef struct narrow_rows {
    base_dtype type;
    bool rounds; /* every sum */
    const void *const *rows;
    int64_t at, length;
} narrow_rows;

static void add_rounded(const narrow_rows *n, float *to, const float *from) {
    uint16_t rounded[BLOCK];
    add(to, from, n->length);
    if (!n->rounds) return;
    narrow(n->type, to, n->length, rounded);
    widen(n->type, rounded, n->length, to);
}

static void sum_narrow(const narrow_rows *n, int32_t first, int32_t count, float *out) {
    base_assert(count >= 1 && n->length <= BLOCK);
    float other[BLOCK];
    if (count % 2) {
        widen(n->type, (const uint16_t *)n->rows[first] + n->at, n->length, out);
        for (int32_t r = first + 1; r < first + count; r++) {
            widen(n->type, (const uint16_t *)n->rows[r] + n->at, n->length, other);
            add_rounded(n, out, other);
        }
    } else {
        sum_narrow(n, first, count / 2, out);
        sum_narrow(n, first + count / 2, count / 2, other);
        add_rounded(n, out, other);
    }
}

/* `out` is of `type`, or FP32. */
static void sum_blocks(base_dtype type, bool rounds, base_dtype out_type, const void *const *rows,
                       int32_t count, int64_t elements, void *out) {
    for (int64_t at = 0; at < elements; at += BLOCK) {
        int64_t length = elements - at < BLOCK ? elements - at : BLOCK;
        float block[BLOCK];
        narrow_rows n = {type, rounds, rows, at, length};
        sum_narrow(&n, 0, count, block);
        if (out_type != BASE_FP32)
            narrow(type, block, length, (uint16_t *)out + at);
        else
            memcpy((float *)out + at, block, (size_t)length * sizeof *block);
    }
}

void device_tree_sum_typed(base_dtype type, base_dtype sum, const void *const *rows, int32_t count,
                           int64_t elements, void *out) {
    base_assert(sum == BASE_FP32 || sum == type);
    if (type == BASE_FP32)
        device_tree_sum((const float *const *)rows, count, elements, out);
    else
        sum_blocks(type, sum != BASE_FP32, sum, rows, count, elements, out);
}

void device_tree_sum_once(base_dtype type, const void *const *rows, int32_t count, int64_t elements,
                          void *out) {
    if (type == BASE_FP32)
        device_tree_sum((const float *const *)rows, count, elements, out);
    else
        sum_blocks(type, false, type, rows, count, elements, out);
}
