/* Exact sums of squares by each instruction set, by GPU kernels over the shim, with any number of
 * threads and any cut: the bytes that adding number by number gives (tests/base/test_exact_sum.c).
 * in test_asan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/random.h"
#include "device/device.h"
#include "support/cuda/shim_run.h"

enum { MOST = 150000, SHIM_MOST = 20000, ORDERS = 3 };

/* What there is a path for, and what leads from one to another. */
typedef enum spread {
    NORMAL,
    EQUAL,      /* the largest of a binade: sums are as large as they can be */
    LARGEST,    /* of the type */
    WIDE,       /* exponents of 25 binades: a third level */
    ANY_BITS,   /* finite */
    SUBNORMALS, /* some among normal numbers */
    TINY,       /* the smallest normal numbers */
    ZEROS,      /* all but a few */
    SPREADS
} spread;

static uint32_t any_float(spread kind, int64_t i) {
    uint32_t draw = (uint32_t)base_random_key(9, (uint64_t)i, (uint64_t)kind), sign = draw << 31;
    switch (kind) {
    case NORMAL:
        return base_float_to_bits((float)base_normal(4, (uint64_t)i));
    case EQUAL:
        return 0x3fffffff | sign;
    case LARGEST:
        return 0x7f7fffff | sign;
    case WIDE:
        return (110 + draw / 2 % 25) << 23 | draw >> 9 | sign;
    case SUBNORMALS:
        return i % 700 == 0 ? draw >> 9 : base_float_to_bits(1e-30f * (float)i);
    case TINY:
        return draw >> 7 | 0x00800000;
    case ZEROS:
        return i % 999 ? sign : draw >> 2;
    case ANY_BITS:
    case SPREADS:
        break;
    }
    return (draw & 0x7f800000) == 0x7f800000 ? draw & 0xbfffffff : draw;
}

/* Number i, written to x; returns its value. */
static float put(void *x, base_dtype type, spread kind, int64_t i) {
    float value = base_float_from_bits(any_float(kind, i));
    uint16_t half;
    if (type == BASE_FP32) {
        ((float *)x)[i] = value;
        return value;
    }
    if (type == BASE_BF16) {
        half = (uint16_t)(base_float_to_bits(value) >> 16);
    } else if (kind == LARGEST) {
        half = 0x7bff;
    } else if (kind == ANY_BITS || kind == SUBNORMALS) {
        half = (uint16_t)(base_float_to_bits(value) & 0xbbff); /* finite; subnormal, too */
    } else {
        half = base_half_from_float(value);
    }
    ((uint16_t *)x)[i] = half;
    return type == BASE_BF16 ? base_bf16_to_float(half) : base_half_to_float(half);
}

typedef struct vector {
    void *x;
    base_dtype type;
    int64_t count;
    base_exact_sum want;
} vector;

static vector make(base_dtype type, spread kind, int64_t count) {
    vector v = {malloc((size_t)count * (size_t)base_dtype_bytes(type)), type, count, {{0}, 0, 0}};
    assert_non_null(v.x);
    for (int64_t i = 0; i < count; i++) base_exact_square(&v.want, put(v.x, type, kind, i));
    base_exact_settle(&v.want);
    return v;
}

static const void *from(const vector *v, int64_t first) {
    return (const char *)v->x + first * base_dtype_bytes(v->type);
}

static void compare(const base_exact_sum *have, const base_exact_sum *want, const char *who,
                    base_dtype type, int kind) {
    if (memcmp(have, want, sizeof *want) != 0)
        fail_msg("%s, %s, numbers of kind %d: %a, not %a", who, base_dtype_name(type), kind,
                 base_exact_round(have), base_exact_round(want));
}

static void add(device *dev, const void *x, base_dtype type, int64_t n, base_exact_sum *sum) {
    device_call call = {.kernel = DEVICE_EXACT_SQUARES,
                        .x = {{(void *)(uintptr_t)x, 1, n, n, type}},
                        .y = {sum, 1, EXACT_WORDS, EXACT_WORDS, BASE_INT64}};
    sifr_error error = {0};
    if (device_prepare(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(device_run(dev, &call, &error), SIFR_OK);
}

static void check(device *dev, const vector *v, int64_t cut, const char *who, int kind) {
    base_exact_sum sum = {0};
    for (int64_t first = 0; first < v->count; first += cut) {
        int64_t n = v->count - first < cut ? v->count - first : cut;
        add(dev, from(v, first), v->type, n, &sum);
    }
    base_exact_settle(&sum);
    compare(&sum, &v->want, who, v->type, kind);
}

static void cpu_sets(void **state) {
    static const char *const isas[] = {"plain", "avx2", "avx512", "avx512_bf16"};
    (void)state;
    for (int i = 0; i < 4 * 3; i++) {
        device *dev;
        sifr_error error = {0};
        const char *isa = isas[i / 3];
        if (device_open_cpu(1 + i % 3, isa, &dev, &error) != SIFR_OK) continue; /* not here */
        for (int kind = 0; kind < SPREADS; kind++) {
            for (base_dtype type = BASE_FP32; type <= BASE_FP16; type++) {
                vector v = make(type, (spread)kind, i % 3 == 2 ? MOST : 9001);
                check(dev, &v, v.count, isa, kind);
                check(dev, &v, 6001, isa, kind);
                if (i % 3 == 0) check(dev, &v, 333, isa, kind);
                free(v.x);
            }
        }
        device_close(dev);
    }
}

static void gpu_kernels(void **state) {
    static const int orders[ORDERS] = {SHIM_UP, SHIM_DOWN, 5};
    (void)state;
    if (shim_skipped()) skip();
    for (int o = 0; o < ORDERS; o++) {
        device *dev;
        sifr_error error = {0};
        assert_int_equal(device_open_shim(orders[o], &dev, &error), SIFR_OK);
        for (int kind = 0; kind < SPREADS; kind++) {
            for (base_dtype type = BASE_FP32; type <= BASE_FP16; type++) {
                vector v = make(type, (spread)kind, SHIM_MOST);
                check(dev, &v, o ? SHIM_MOST : 7001, "shim", kind);
                free(v.x);
            }
        }
        device_close(dev);
    }
}

/* An infinity, a NaN, both: anywhere, on both devices. */
static void not_finite(void **state) {
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    (void)state;
    device *cpu, *shim;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(2, NULL, &cpu, &error), SIFR_OK);
    assert_int_equal(device_open_shim(SHIM_UP, &shim, &error), SIFR_OK);
    for (int n = 0; n < 12; n++) {
        vector v = make(BASE_FP32, NORMAL, 5000);
        float *x = v.x;
        base_exact_sum sums[2] = {{{0}, 0, 0}, {{0}, 0, 0}};
        x[n * 431] = odd[n % 3];
        if (n > 8) x[4999] = odd[(n + 1) % 3];
        base_exact_sum want = {{0}, 0, 0};
        for (int i = 0; i < 5000; i++) base_exact_square(&want, x[i]);
        base_exact_settle(&want);
        bool nan = n % 3 == 2 || (n > 8 && (n + 1) % 3 == 2);
        add(cpu, x, BASE_FP32, v.count, &sums[0]);
        if (!shim_skipped()) add(shim, x, BASE_FP32, v.count, &sums[1]);
        base_exact_settle(&sums[1]);
        for (int d = 0; d < (shim_skipped() ? 1 : 2); d++) {
            double sum = base_exact_round(&sums[d]);
            compare(&sums[d], &want, d ? "shim" : "CPU", BASE_FP32, n);
            assert_true(nan ? isnan(sum) : isinf(sum) && sum > 0);
        }
        free(x);
    }
    device_close(cpu);
    device_close(shim);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_sets), cmocka_unit_test(gpu_kernels),
                                       cmocka_unit_test(not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
