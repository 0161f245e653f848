#include "comm/tree.h"

#include <string.h>

#include "base/half.h"

enum { BLOCK = 512 }; /* elements at a time: a few blocks stay in the first cache */

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

void comm_tree_sum(const float *const *rows, int32_t count, int64_t elements, float *out) {
    for (int64_t at = 0; at < elements; at += BLOCK) {
        int64_t length = elements - at < BLOCK ? elements - at : BLOCK;
        float block[BLOCK]; /* `out` may be a row that is read last */
        sum_block(rows, count, at, length, block);
        memcpy(out + at, block, (size_t)length * sizeof *block);
    }
}

static void widen(comm_type type, const void *row, int64_t at, int64_t length, float *out) {
    const uint16_t *from = (const uint16_t *)row + at;
    if (type == COMM_FP16) {
        for (int64_t i = 0; i < length; i++) out[i] = base_half_to_float(from[i]);
    } else {
        for (int64_t i = 0; i < length; i++) out[i] = base_float_from_bits((uint32_t)from[i] << 16);
    }
}

static void sum_narrow(comm_type type, const void *const *rows, int32_t count, int64_t at,
                       int64_t length, float *out) {
    float other[BLOCK];
    if (count % 2) {
        widen(type, rows[0], at, length, out);
        for (int32_t r = 1; r < count; r++) {
            widen(type, rows[r], at, length, other);
            add(out, other, length);
        }
    } else {
        sum_narrow(type, rows, count / 2, at, length, out);
        sum_narrow(type, rows + count / 2, count / 2, at, length, other);
        add(out, other, length);
    }
}

void comm_tree_sum_typed(comm_type type, const void *const *rows, int32_t count, int64_t elements,
                         float *out) {
    if (type == COMM_FP32) {
        comm_tree_sum((const float *const *)rows, count, elements, out);
        return;
    }
    for (int64_t at = 0; at < elements; at += BLOCK) {
        int64_t length = elements - at < BLOCK ? elements - at : BLOCK;
        sum_narrow(type, rows, count, at, length, out + at);
    }
}
