/* Kernels of GPUs on rows, over the shim, beside those of the CPU: moves, rotary embedding and the
 * gradient of a table with the CPU's bits; norms within 3e-7 of it, and with the bits that they had
 * before. All with the same bits in any order of threads. support/op_case.h compares them with
 * double precision.
 * in test_asan */
#include "device/shim_case.h"

#include <stdio.h>

#include "base/hash.h"

static device_matrix numbers(int64_t rows, int32_t below, uint64_t seed) {
    device_matrix m = case_matrix(rows, 1, BASE_INT32, seed, 1);
    for (int64_t r = 0; r < rows; r++)
        case_set(&m, r, 0, base_philox(seed, (uint64_t)r, 1).v[0] % (uint32_t)below);
    return m;
}

/* Makes a call's operands; `back`: of the backward kernel. */
typedef void make_call(device_call *call, bool back, base_dtype type, int64_t rows, int64_t columns,
                       int variant);

/* variant: words; two more lie before them. Word 1 only pads. */
static void make_embedding(device_call *call, bool back, base_dtype type, int64_t rows,
                           int64_t columns, int variant) {
    call->kernel = back ? DEVICE_EMBEDDING_BACKWARD : DEVICE_EMBEDDING;
    call->attributes.embedding.first = 2;
    call->attributes.embedding.padded = true;
    call->attributes.embedding.padding = 3;
    call->x[0] = numbers(rows, variant, 1);
    if (back) {
        call->dy = case_matrix(rows, columns, type, 2, 1);
        call->dw[0] = case_matrix(variant + 2, columns, BASE_FP32, 3, 1);
    } else {
        call->w[0] = case_matrix(variant + 2, columns, type, 4, 1);
        call->y = case_matrix(rows, columns, type, 5, 1);
    }
}

static void make_rows(device_call *call, bool back, base_dtype type, int64_t rows, int64_t columns,
                      int variant) {
    (void)variant;
    call->kernel = back ? DEVICE_ROWS_BACKWARD : DEVICE_ROWS;
    if (back) {
        call->dy = case_matrix(rows, columns, type, 1, 1);
        call->dw[0] = case_matrix(rows, columns, BASE_FP32, 2, 1);
    } else {
        call->w[0] = case_matrix(rows, columns, type, 3, 1);
        call->y = case_matrix(rows, columns, type, 4, 1);
    }
}

/* Operands of one shape, as kernels have them that take x0 or dy and write y or dx0. */
static void make_ends(device_call *call, bool back, base_dtype type, int64_t rows, int64_t from,
                      int64_t to) {
    *(back ? &call->dy : &call->x[0]) = case_matrix(rows, from, type, 11, 1);
    *(back ? &call->dx[0] : &call->y) = case_matrix(rows, to, type, 12, 1);
}

/* variant: heads, PAIRS, STAYING x the elements of a head that stay. */
enum { HEADS = 64, PAIRS = 64, STAYING = 128 };

static void make_rope(device_call *call, bool back, base_dtype type, int64_t rows, int64_t columns,
                      int variant) {
    int32_t heads = variant % HEADS, dim = (int32_t)(columns / heads);
    call->kernel = back ? DEVICE_ROPE_BACKWARD : DEVICE_ROPE;
    call->attributes.rope.heads = heads;
    call->attributes.rope.head_dim = dim;
    call->attributes.rope.rotary_dim = dim - variant / STAYING;
    call->attributes.rope.interleaved = variant & PAIRS;
    call->x[1] = numbers(rows, 50, 5);
    call->x[2] = case_matrix(50, dim - variant / STAYING, BASE_FP32, 6, 1);
    make_ends(call, back, type, rows, columns, columns);
}

/* variant: 16 groups + parts */
static void make_split_qkv(device_call *call, bool back, base_dtype type, int64_t rows,
                           int64_t columns, int variant) {
    call->kernel = back ? DEVICE_SPLIT_QKV_BACKWARD : DEVICE_SPLIT_QKV;
    call->attributes.split_qkv.groups = variant / 16;
    call->attributes.split_qkv.parts = variant % 16;
    make_ends(call, back, type, rows, columns, columns);
}

/* variant: size; 100 more: with segments. Two sequences. */
static void make_unfold(device_call *call, bool back, base_dtype type, int64_t rows,
                        int64_t columns, int variant) {
    int32_t size = variant % 100;
    call->kernel = back ? DEVICE_UNFOLD_BACKWARD : DEVICE_UNFOLD;
    call->attributes.unfold.length = rows / 2;
    call->attributes.unfold.size = size;
    if (variant >= 100) call->x[1] = numbers(rows, 2, 7);
    make_ends(call, back, type, rows, back ? columns * size : columns,
              back ? columns : columns * size);
}

typedef struct rows_case {
    const char *name;
    make_call *make;
    int64_t rows, columns;
    int variant;
} rows_case;

static const rows_case moves[] = {
    {"embedding", make_embedding, 9, 64, 5},
    {"embedding", make_embedding, 33, 67, 5},
    {"embedding", make_embedding, 300, 40, 2},
    {"embedding", make_embedding, 600, 24, 700},
    {"embedding", make_embedding, 20, 1100, 9},
    {"rows", make_rows, 33, 17, 0},
    {"rows", make_rows, 20, 264, 0},
    {"rope", make_rope, 40, 66, 3},
    {"rope", make_rope, 33, 128, 2},
    {"rope", make_rope, 33, 128, 2 + PAIRS},
    {"rope", make_rope, 5, 72, 3 + PAIRS},
    {"rope", make_rope, 7, 96, 2 + 16 * STAYING},
    {"rope", make_rope, 7, 57, 3 + 5 * STAYING},
    {"rope", make_rope, 9, 96, 2 + 16 * STAYING + PAIRS},
    {"split_qkv", make_split_qkv, 5, 36, 4 * 16 + 3},
    {"split_qkv", make_split_qkv, 33, 96, 2 * 16 + 3},
    {"unfold", make_unfold, 34, 17, 3},
    {"unfold", make_unfold, 34, 17, 103},
    {"unfold", make_unfold, 12, 40, 31},
};

static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};

static void run_moves(bool back, bool accumulate) {
    device *shims[SHIM_ORDERS];
    if (shim_skipped()) skip();
    shim_case_open(shims);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        const rows_case *c = &moves[i];
        for (size_t t = 0; t < 3; t++) {
            if (thinned_out(i + t)) continue;
            char what[100];
            device_call call = {.accumulate = {accumulate}, .accumulate_dw = accumulate};
            c->make(&call, back, types[t], c->rows, c->columns, c->variant);
            snprintf(what, sizeof what, "%s %lldx%lld %s%s", device_kernel_name(call.kernel),
                     (long long)c->rows, (long long)c->columns, base_dtype_name(types[t]),
                     accumulate ? " added" : "");
            shim_case_compare(what, &call, shims, false);
            shim_case_free(&call);
        }
    }
    shim_case_close(shims);
}

static void moves_forward(void **state) {
    (void)state;
    run_moves(false, false);
}

static void moves_backward(void **state) {
    (void)state;
    run_moves(true, false);
}

static void moves_added(void **state) {
    (void)state;
    run_moves(true, true);
}

/* Words of three digits of the sort, in tokens of more than one tile. */
static void many_words(void **state) {
    (void)state;
    device *shims[SHIM_ORDERS];
    device_call call = {.accumulate_dw = true};
    if (shim_skipped()) skip();
    shim_case_open(shims);
    make_embedding(&call, true, BASE_BF16, 1100, 3, 270000);
    for (int64_t r = 500; r < 1100; r += 3) case_set(&call.x[0], r, 0, r % 2 ? 7 : 519);
    shim_case_compare("many words", &call, shims, false);
    shim_case_free(&call);
    shim_case_close(shims);
}

/* Norms; variant: NO_BIAS, PLUS_ONE, RMS, NO_DX, PLAIN (no weights), OWN (of each group),
 * GROUPS x their number */
enum { NO_BIAS = 1, PLUS_ONE = 2, RMS = 4, NO_DX = 8, PLAIN = 16, OWN = 32, GROUPS = 64 };

static void make_norm(device_call *call, bool back, base_dtype type, int64_t rows, int64_t columns,
                      int variant) {
    int64_t groups = variant / GROUPS > 0 ? variant / GROUPS : 1, n = columns / groups;
    bool plain = variant & PLAIN, rms = variant & RMS;
    bool bias = !rms && !plain && !(variant & NO_BIAS);
    int64_t weights = variant & OWN ? groups : 1;
    call->attributes.norm.epsilon = 1e-5f;
    call->attributes.norm.plus_one = variant & PLUS_ONE;
    call->attributes.norm.groups = (int32_t)groups;
    call->x[0] = case_matrix(rows, columns, type, 21, 2);
    if (!plain) call->w[0] = case_matrix(weights, n, type, 22, 2);
    call->saved[0] = case_matrix(rows, groups * (rms ? 1 : 2), BASE_FP32, 24, 1);
    if (!back) {
        call->kernel = rms ? DEVICE_RMS_NORM : DEVICE_LAYER_NORM;
        call->y = case_matrix(rows, columns, type, 25, 1);
        if (bias) call->w[1] = case_matrix(weights, n, type, 23, 2);
        return;
    }
    call->kernel = rms ? DEVICE_RMS_NORM_BACKWARD : DEVICE_LAYER_NORM_BACKWARD;
    for (int64_t r = 0; r < rows; r++) /* some mean, and a scale near that of x */
        for (int64_t i = 0; i < call->saved[0].columns; i++)
            if (rms || i % 2) case_set(&call->saved[0], r, i, 0.8 + 0.01 * (double)(r % 7));
    call->dy = case_matrix(rows, columns, type, 26, 2);
    if (!plain) call->dw[0] = case_matrix(weights, n, BASE_FP32, 27, 1);
    if (bias) call->dw[1] = case_matrix(weights, n, BASE_FP32, 28, 1);
    if (!(variant & NO_DX)) call->dx[0] = case_matrix(rows, columns, type, 29, 1);
}

static const rows_case norms[] = {
    {"norm", make_norm, 3, 17, 0},
    {"norm", make_norm, 300, 40, RMS},
    {"norm", make_norm, 300, 33, NO_BIAS},
    {"norm", make_norm, 40, 768, 0},
    {"norm", make_norm, 33, 1030, RMS},
    {"norm", make_norm, 70, 3 * 24, 3 * GROUPS + RMS + PLUS_ONE},
    {"norm", make_norm, 9, 3 * 600, 3 * GROUPS + PLUS_ONE},
    {"norm", make_norm, 2, 5300, 0}, /* weight gradients of two launches */
    {"norm", make_norm, 3, 10300, RMS},
    {"norm", make_norm, 2, 5300, NO_DX},
    {"norm", make_norm, 70, 3 * 24, 3 * GROUPS + RMS + PLAIN},
    {"norm", make_norm, 9, 2 * 600, 2 * GROUPS + PLAIN},
    {"norm", make_norm, 70, 3 * 24, 3 * GROUPS + OWN},
    {"norm", make_norm, 9, 2 * 600, 2 * GROUPS + OWN + RMS + PLUS_ONE},
};

enum { NORMS = sizeof norms / sizeof *norms };

/* Of the results of each: runs that go on must have the bits that they began with. */
static const uint64_t norm_hashes[NORMS] = {
    0xdcdae17a2394aac2, 0xc09ab2ac4f949e28, 0xcbeb15e4570aab68, 0xf0646e99bd965de8,
    0x7f2ca0e16600aba1, 0xce0d0c2f70bfe1a3, 0x2ee50e644da80956, 0x08e20255d1b1da14,
    0x9df19451c668a759, 0x944f13b7d5af2ad0, 0xd1da6d5cbdedfd8a, 0x5afa839b0d1767c1,
    0x3a6a1ed4849ce684, 0xbcd3625a73156e7e,
};

static uint64_t hash_results(device_call *call, uint64_t hash) {
    for (int i = 0; i < SHIM_RESULTS; i++) {
        const device_matrix *m = shim_case_result(call, i);
        if (m->dtype != BASE_NONE) hash = base_hash_seeded(m->data, case_bytes(m), hash);
    }
    return hash;
}

static void norm_directions(void **state) {
    (void)state;
    device *shims[SHIM_ORDERS];
    if (shim_skipped()) skip();
    shim_case_open(shims);
    for (size_t i = 0; i < NORMS; i++) {
        const rows_case *c = &norms[i];
        uint64_t hash = 0;
        for (size_t t = i % 2; t < 9; t += 2) { /* types; forward, backward, added */
            char what[100];
            bool back = t >= 3, added = t >= 6;
            device_call call = {.accumulate = {added}, .accumulate_dw = added};
            if (thinned_out(i + t / 2)) continue;
            c->make(&call, back, types[t % 3], c->rows, c->columns, c->variant);
            snprintf(what, sizeof what, "%s %lldx%lld %s%s", device_kernel_name(call.kernel),
                     (long long)c->rows, (long long)c->columns, base_dtype_name(types[t % 3]),
                     added ? " added" : "");
            shim_case_compare(what, &call, shims, true);
            hash = hash_results(&call, hash);
            shim_case_free(&call);
        }
        if (!thinned_out(1) && hash != norm_hashes[i])
            fail_msg("norm %zu: other bits than before: 0x%016llx", i, (unsigned long long)hash);
    }
    shim_case_close(shims);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_forward),   cmocka_unit_test(moves_backward),
        cmocka_unit_test(moves_added),     cmocka_unit_test(many_words),
        cmocka_unit_test(norm_directions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
