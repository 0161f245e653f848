/* Kernels of GPUs for weights in 4 bits, magnitudes of DoRA and LAMB, over the shim: the CPU's
 * bits, in any order of threads, at any alignment, for slices of columns. What they compute is
 * tested in test_nf4.c, test_magnitude.c and test_lamb.c. in test_asan */
#include <stdio.h>

#include "base/nf4.h"
#include "device/shim_case.h"

enum { TYPES = 3, BLOCKS = 16 };

static const base_dtype types[TYPES] = {BASE_FP32, BASE_BF16, BASE_FP16};
static device *shims[SHIM_ORDERS];

static int open_shims(void **state) {
    (void)state;
    shim_case_open(shims);
    return 0;
}

static int close_shims(void **state) {
    (void)state;
    shim_case_close(shims);
    return 0;
}

/* The memory of a call's operands. */
typedef struct blocks {
    void *of[BLOCKS];
    int count;
} blocks;

/* Elements `shift` further than is aligned, with `gap` of them between rows. */
static device_matrix placed(blocks *b, int64_t rows, int64_t columns, int64_t gap, int64_t shift,
                            base_dtype type) {
    int64_t size = base_dtype_bytes(type);
    device_matrix m = {NULL, rows, columns, columns + gap, type};
    char *block = calloc(1, case_bytes(&m) + (size_t)(shift * size));
    assert_non_null(block);
    assert_true(b->count < BLOCKS);
    b->of[b->count] = block;
    m.data = block + shift * size;
    for (int64_t r = 0; r < rows && type != BASE_UINT8 && type != BASE_INT64; r++)
        for (int64_t c = 0; c < columns; c++) {
            base_random4 random = base_philox((uint64_t)b->count, (uint64_t)(r * columns + c), 0);
            case_set(&m, r, c, 2.0 * base_uniform(random.v[0]) - 1.0);
        }
    b->count++;
    return m;
}

static void free_blocks(blocks *b) {
    for (int i = 0; i < b->count; i++) free(b->of[i]);
}

static void compare(device_call *call, base_dtype type, const char *how) {
    char what[100];
    snprintf(what, sizeof what, "%s, %s, %s", device_kernel_name(call->kernel),
             base_dtype_name(type), how);
    shim_case_compare(what, call, shims, false);
}

/* --- values of codes --- */

/* Each code and each code of a scale, scales of all sizes: also such as are no normal number. */
static void fill_record(uint8_t *record, bool doubled, uint64_t seed) {
    int64_t scales = doubled ? 2 : BASE_NF4_SCALES;
    uint8_t *from = record + BASE_NF4_CODES + (doubled ? BASE_NF4_SCALES : 0);
    for (int i = 0; i < BASE_NF4_CODES + (doubled ? BASE_NF4_SCALES : 0); i++)
        record[i] = (uint8_t)(i * 7 + i / 256 + (int)seed);
    for (int64_t i = 0; i < scales; i++) {
        base_random4 random = base_philox(seed, (uint64_t)i, 0);
        int power = i % 5 == 4 ? (int)(random.v[1] % 150) : (int)(random.v[1] % 8);
        float value = ldexpf(0.5f + base_uniform(random.v[0]), -power);
        memcpy(from + i * 4, &value, sizeof value);
    }
}

static void codes(void **state) {
    static const struct {
        const char *how;
        int64_t records, gap, from, to; /* how far the operands are moved, in elements */
    } cases[] = {
        {"one record", 1, 0, 0, 0},         {"three records", 3, 0, 0, 0},
        {"records of words", 2, 4, 4, 0},   {"records of bytes", 2, 3, 1, 0},
        {"values not aligned", 2, 0, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int form = 0; form < 2 * TYPES; form++) {
            bool doubled = form % 2;
            int64_t record = doubled ? BASE_NF4_DOUBLED : BASE_NF4_PLAIN, n = cases[i].records;
            base_dtype type = types[form / 2];
            blocks b = {0};
            device_call call = {.kernel = DEVICE_DEQUANTISE};
            call.x[0] = placed(&b, n, record, cases[i].gap, cases[i].from, BASE_UINT8);
            call.y = placed(&b, 1, n * BASE_NF4_RECORD, 0, cases[i].to, type);
            for (int64_t r = 0; r < n; r++)
                fill_record((uint8_t *)call.x[0].data + r * call.x[0].stride, doubled,
                            (uint64_t)(r + 1));
            compare(&call, type, cases[i].how);
            free_blocks(&b);
        }
    }
}

/* --- magnitudes --- */

enum { TRANSPOSED = 1, NO_BIAS = 2, SLICED = 4, MOVED = 8 };

typedef struct magnitude_case {
    const char *how;
    int64_t rows, in, out, rank;
    int form;
} magnitude_case;

static const magnitude_case magnitude_cases[] = {
    {"one of each", 1, 1, 1, 1, 0},
    {"whole pieces", 64, 256, 64, 8, 0},
    {"several blocks", 67, 520, 133, 5, 0},
    {"odd", 13, 37, 19, 3, NO_BIAS},
    {"transposed", 9, 300, 33, 4, TRANSPOSED},
    {"transposed, odd", 5, 41, 70, 2, TRANSPOSED + NO_BIAS + MOVED},
    {"slices", 11, 72, 40, 4, SLICED},
    {"not aligned", 11, 72, 40, 4, MOVED},
    {"many tokens", 2100, 16, 40, 2, 0}, /* two turns of a block's warps, and a part of a part */
};

static void set_magnitude(const magnitude_case *c, blocks *b, base_dtype type, device_call *call) {
    int64_t gap = c->form & SLICED ? 3 : 0, shift = c->form & MOVED ? 1 : 0;
    call->x[0] = placed(b, c->rows, c->out, gap, shift, type);
    call->w[1] = placed(b, 1, c->out, 0, shift, type);
    call->saved[0] = placed(b, c->out, 1, 0, shift, BASE_FP32);
    call->attributes.magnitude.transposed = c->form & TRANSPOSED;
    call->attributes.magnitude.columns = (int32_t)c->out;
    call->attributes.magnitude.scale = 0.3f;
}

static void magnitude_forward(const magnitude_case *c, base_dtype type) {
    int64_t gap = c->form & SLICED ? 3 : 0, shift = c->form & MOVED ? 1 : 0;
    bool transposed = c->form & TRANSPOSED;
    blocks b = {0};
    device_call call = {.kernel = DEVICE_MAGNITUDE};
    set_magnitude(c, &b, type, &call);
    call.x[1] = placed(&b, c->rank, c->in, gap, shift, type);
    call.x[2] = placed(&b, c->out, c->rank, gap, shift, type);
    call.w[0] =
        placed(&b, transposed ? c->in : c->out, transposed ? c->out : c->in, gap, shift, type);
    call.y = placed(&b, c->rows, c->out, gap, shift, type);
    if (!(c->form & NO_BIAS)) call.x[3] = placed(&b, 1, c->out, 0, shift, type);
    compare(&call, type, c->how);
    free_blocks(&b);
}

/* `wants`: 1 dx0, 2 dw1. */
static void magnitude_backward(const magnitude_case *c, base_dtype type, int wants, bool add) {
    int64_t gap = c->form & SLICED ? 3 : 0, shift = c->form & MOVED ? 1 : 0;
    blocks b = {0};
    device_call call = {
        .kernel = DEVICE_MAGNITUDE_BACKWARD, .accumulate = {add}, .accumulate_dw = add};
    set_magnitude(c, &b, type, &call);
    call.dy = placed(&b, c->rows, c->out, gap, shift, type);
    if (wants & 1) call.dx[0] = placed(&b, c->rows, c->out, gap, shift, type);
    if (wants & 2) call.dw[1] = placed(&b, 1, c->out, 0, shift, BASE_FP32);
    compare(&call, type, c->how);
    free_blocks(&b);
}

static void magnitudes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof magnitude_cases / sizeof *magnitude_cases; i++) {
        for (size_t t = 0; t < TYPES; t++) {
            const magnitude_case *c = &magnitude_cases[i];
            magnitude_forward(c, types[t]);
            magnitude_backward(c, types[t], 3, (i + t) % 2);
            magnitude_backward(c, types[t], 1 + (int)(i + t) % 2, (i + t) % 3);
        }
    }
}

/* --- LAMB --- */

/* Values that are not negative, and some of other sizes. */
static void make_squares(device_matrix *m) {
    for (int64_t c = 0; c < m->columns; c++)
        case_set(m, 0, c, fabs(case_get(m, 0, c)) * (c % 97 == 3 ? 0x1p-60 : 1));
}

static const device_step steps[] = {
    {.seed = 77,
     .step = 12,
     .update_scale = 0.37f,
     .learning_rate = 1e-2f,
     .beta1 = 0.9f,
     .beta2 = 0.999f,
     .correction1 = 0.5f,
     .correction2 = 0.3f,
     .average_share = 0.1f,
     .update = true},
    {.seed = 78, .step = 13, .correction1 = 1, .correction2 = 1}, /* it does not update */
};

/* `form`: the bits choose the types, and whether there is an average. */
static void set_lamb(blocks *b, int64_t count, int form, device_call *call) {
    static const base_dtype copies[] = {BASE_NONE, BASE_FP32, BASE_BF16, BASE_FP16};
    base_dtype states = types[form / 6 % 2];
    bool begins = call->kernel == DEVICE_LAMB_BEGIN;
    call->attributes.element = 4096 + form % 8;
    call->attributes.update.epsilon = 1e-6f;
    call->attributes.update.lr_scale = 0.7f;
    call->attributes.update.weight_decay = 0.1f;
    call->attributes.update.min_coeff = 0.01f;
    call->attributes.update.max_coeff = form / 48 ? 0.02f : 10.0f;
    call->attributes.update.averages = !begins && form % 2;
    call->attributes.update.keeps = true; /* as of all memory of GPUs */
    call->x[0] = placed(b, 1, count, 0, 0, types[form % 3]);
    call->w[0] = placed(b, 1, count, 0, 0, types[form / 3 % 2]);
    call->saved[0] = placed(b, 1, count, 0, 0, states);
    call->saved[1] = placed(b, 1, count, 0, 0, states);
    make_squares(&call->saved[1]);
    if (begins) return;
    if (form % 2) call->saved[2] = placed(b, 1, count, 0, 0, BASE_FP32);
    if (form / 12 % 4) call->w[1] = placed(b, 1, count, 0, 0, copies[form / 12 % 4]);
}

static void run_lamb(int64_t count, int form, int step) {
    enum { PARTS = 3, WORDS = 2 * EXACT_WORDS };
    blocks b = {0};
    device_call begin = {.kernel = DEVICE_LAMB_BEGIN, .step = &steps[step]};
    device_call end = {.kernel = DEVICE_LAMB, .step = &steps[step]};
    set_lamb(&b, count, form, &begin);
    begin.y = placed(&b, 1, WORDS, 0, 0, BASE_INT64);
    compare(&begin, begin.x[0].dtype, "begins");
    set_lamb(&b, count, form, &end);
    int64_t parts = 1 + form % PARTS;
    end.x[1] = placed(&b, parts, WORDS, 0, 0, BASE_INT64);
    for (int64_t p = 0; p < parts; p++)
        memcpy((int64_t *)end.x[1].data + p * WORDS, begin.y.data, WORDS * sizeof(int64_t));
    compare(&end, end.x[0].dtype, "ends");
    free_blocks(&b);
}

static void lamb(void **state) {
    enum { FORMS = 96 };
    (void)state;
    for (int form = 0; form < FORMS; form++) run_lamb(form % 5 ? 77 : 1000, form, 0);
    run_lamb(20000, 13, 0);
    run_lamb(20000, 6, 0);
    run_lamb(100, 14, 1);
    run_lamb(100, 27, 1);
}

/* Norms of zero, of numbers that are none, and too large: the ratio is 1, or stays in its bounds.
 */
static void odd_ratios(void **state) {
    enum { WORDS = 2 * EXACT_WORDS };
    static const float weights[][2] = {{0, 1}, {1, 0}, {NAN, 1}, {1, INFINITY}, {0x1p100f, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        blocks b = {0};
        device_call end = {.kernel = DEVICE_LAMB, .step = &steps[0]};
        set_lamb(&b, 100, 12, &end);
        end.x[1] = placed(&b, 1, WORDS, 0, 0, BASE_INT64);
        for (int s = 0; s < 2; s++)
            base_exact_square((base_exact_sum *)end.x[1].data + s, weights[i][s]);
        compare(&end, end.x[0].dtype, "odd ratio");
        free_blocks(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(codes), cmocka_unit_test(magnitudes),
                                       cmocka_unit_test(lamb), cmocka_unit_test(odd_ratios)};
    if (shim_skipped()) return 77;
    return cmocka_run_group_tests(tests, open_shims, close_shims);
}
