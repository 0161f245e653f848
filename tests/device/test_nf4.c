/* Codes of 4 bits: bitsandbytes' codes and scales bit for bit, and its values
 * (tests/golden/README.md: make_nf4.py), tensors of any length, and the kernel on each instruction
 * set. in test_asan */
#include "base/nf4.h"

#include <stdio.h>

#include "base/code8.h"
#include "base/file.h"
#include "base/half.h"
#include "base/random.h"
#include "device/update_case.h"
#include "formats/safetensors/safetensors.h"

enum { STRIDE = 5 };

static formats_safetensors file;

static int open_file(void **state) {
    char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    sifr_error error = {0};
    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/results/nf4.safetensors", source ? source : ".");
    if (formats_safetensors_open(path, &file, &error) == SIFR_OK) return 0;
    print_message("%s\n", error.message);
    return -1;
}

static int close_file(void **state) {
    (void)state;
    formats_safetensors_close(&file);
    return 0;
}

/* A copy, since a file may hold its tensors at any alignment. */
static void *tensor(const char *name, int64_t *count) {
    const formats_tensor *t = formats_safetensors_find(&file, name);
    if (!t) fail_msg("no tensor %s", name);
    void *copy = update_block(t->bytes, 0);
    memcpy(copy, t->data, t->bytes);
    *count = t->elements;
    return copy;
}

static int64_t record_bytes(bool doubled) {
    return doubled ? BASE_NF4_DOUBLED : BASE_NF4_PLAIN;
}

static int64_t records_of(int64_t count) {
    return (count + BASE_NF4_RECORD - 1) / BASE_NF4_RECORD;
}

static uint8_t *encode(const float *values, int64_t count, bool doubled, float mean) {
    int64_t bytes = record_bytes(doubled);
    uint8_t *records = update_block((size_t)(records_of(count) * bytes), 0xff);
    for (int64_t r = 0; r < records_of(count); r++) {
        int64_t at = r * BASE_NF4_RECORD, rest = count - at;
        base_nf4_encode(values + at, rest < BASE_NF4_RECORD ? rest : BASE_NF4_RECORD, doubled, mean,
                        records + r * bytes);
    }
    return records;
}

static void decode(const uint8_t *records, int64_t count, bool doubled, float *out) {
    for (int64_t at = 0; at < count; at += BASE_NF4_RECORD) {
        int64_t rest = count - at;
        base_nf4_decode(records + at / BASE_NF4_RECORD * record_bytes(doubled), doubled, 0,
                        rest < BASE_NF4_RECORD ? rest : BASE_NF4_RECORD, out + at);
    }
}

static void check_codes(const uint8_t *records, int64_t count, bool doubled, const uint8_t *codes) {
    for (int64_t i = 0; i < count / 2; i++) {
        int64_t r = 2 * i / BASE_NF4_RECORD, at = i - r * BASE_NF4_CODES;
        int have = records[r * record_bytes(doubled) + at];
        if (have != codes[i])
            fail_msg("values %lld and the next: codes %02x, bitsandbytes has %02x",
                     (long long)(2 * i), (unsigned)have, codes[i]);
    }
}

static void maps(void **state) {
    int64_t n;
    (void)state;
    float *map = tensor("map", &n), *scale_map = tensor("scale_map", &n);
    assert_memory_equal(map, base_nf4_values, sizeof base_nf4_values);
    assert_int_equal(n, BASE_CODES);
    for (int c = 0; c < BASE_CODES; c++) { /* torch.linspace differs by processor */
        double value = (double)base_code8_signed.values[c];
        assert_true(fabs((double)scale_map[c] - value) <= 2e-7 * fabs(value));
    }
    free(map);
    free(scale_map);
}

static void plain(void **state) {
    int64_t count, n;
    (void)state;
    float *values = tensor("values", &count), *scales = tensor("scales", &n);
    uint8_t *codes = tensor("codes", &n), *records = encode(values, count, false, 0);
    float *own = update_block((size_t)count * 4, 0);
    check_codes(records, count, false, codes);
    assert_memory_equal(records + BASE_NF4_CODES, scales, BASE_NF4_SCALES * 4);
    base_nf4_scales(values, count, own);
    assert_memory_equal(own, scales, (size_t)count / BASE_NF4_BLOCK * 4);
    free(values);
    free(scales);
    free(codes);
    free(records);
    free(own);
}

static void doubled(void **state) {
    int64_t count, n, groups;
    (void)state;
    float *values = tensor("values", &count), *scales = tensor("scales", &n);
    float *mean = tensor("scale_mean", &n), *most = tensor("scale_largest", &groups);
    float *opened = tensor("opened", &n), *own = update_block((size_t)count * 4, 0);
    uint8_t *codes = tensor("codes", &n), *scale_codes = tensor("scale_codes", &n);
    uint8_t *records = encode(values, count, true, *mean);
    assert_int_equal(n, count / BASE_NF4_BLOCK);
    assert_int_equal(groups, records_of(count));
    check_codes(records, count, true, codes);
    for (int64_t r = 0; r < groups; r++) {
        const uint8_t *tail = records + r * BASE_NF4_DOUBLED + BASE_NF4_CODES;
        int64_t rest = n - r * BASE_NF4_SCALES;
        for (int64_t b = 0; b < BASE_NF4_SCALES; b++) {
            int wanted = b < rest ? scale_codes[r * BASE_NF4_SCALES + b] : 0;
            if (tail[b] != wanted)
                fail_msg("scale %lld of group %lld: code %d, bitsandbytes has %d", (long long)b,
                         (long long)r, tail[b], wanted);
        }
        assert_memory_equal(tail + BASE_NF4_SCALES, &most[r], 4);
        assert_memory_equal(tail + BASE_NF4_SCALES + 4, mean, 4);
    }
    float mine = base_nf4_mean(scales, n);
    assert_true(fabsf(mine - *mean) <= 1e-6f * *mean);
    decode(records, count, true, own);
    for (int64_t i = 0; i < count; i += STRIDE)
        if (fabsf(own[i] - opened[i / STRIDE]) > 3e-7f * most[i / BASE_NF4_RECORD])
            fail_msg("value %lld: %.9g, bitsandbytes has %.9g", (long long)i, (double)own[i],
                     (double)opened[i / STRIDE]);
    void *all[] = {values, scales, mean, most, opened, own, codes, scale_codes, records};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* Any length, also where a block or a byte of codes is not full: no value is further off than half
 * of the widest gap between codes, of its scale as that was stored. */
static void lengths(void **state) {
    static const int64_t counts[] = {1, 2, 63, 64, 65, 16383, 16384, 16385, 40001};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int64_t count = counts[c], blocks = (count + BASE_NF4_BLOCK - 1) / BASE_NF4_BLOCK;
        float *values = update_block((size_t)count * 4, 0),
              *out = update_block((size_t)count * 4, 0);
        float *scales = update_block((size_t)blocks * 4, 0);
        for (int64_t i = 0; i < count; i++) values[i] = (float)base_normal(c, (uint64_t)i);
        base_nf4_scales(values, count, scales);
        for (int d = 0; d < 2; d++) {
            float mean = base_nf4_mean(scales, blocks);
            uint8_t *records = encode(values, count, d, mean);
            decode(records, count, d, out);
            for (int64_t i = 0; i < count; i++) {
                float scale = scales[i / BASE_NF4_BLOCK], off = fabsf(out[i] - values[i]);
                float rounded = d ? 0.02f * 3 : 0; /* the widest gap of codes of scales */
                if (off > scale * 0.1520f + rounded)
                    fail_msg("%lld values, number %lld: %g for %g", (long long)count, (long long)i,
                             (double)out[i], (double)values[i]);
            }
            free(records);
        }
        free(values);
        free(out);
        free(scales);
    }
}

/* Equal scales: none is above the mean. */
static void equal_scales(void **state) {
    enum { COUNT = 2 * BASE_NF4_BLOCK };
    float values[COUNT], out[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) values[i] = i % 2 ? 0.25f : -0.25f;
    uint8_t *records = encode(values, COUNT, true, 0.25f);
    decode(records, COUNT, true, out);
    assert_memory_equal(out, values, sizeof values);
    free(records);
}

static void run_kernel(device *dev, const uint8_t *records, int64_t count, bool is_doubled,
                       base_dtype type, void *out) {
    int64_t bytes = record_bytes(is_doubled), rows = records_of(count);
    device_call call = {.kernel = DEVICE_DEQUANTISE,
                        .x = {{(void *)(uintptr_t)records, rows, bytes, bytes, BASE_UINT8}},
                        .y = update_vector(out, rows * BASE_NF4_RECORD, type)};
    update_run(dev, &call);
}

/* The kernel's values are those of base_nf4_decode, rounded once. */
static void kernel(void **state) {
    static const char *const sets[] = {"plain", "avx2", "avx512", NULL};
    int64_t count, opened;
    (void)state;
    float *values = tensor("values", &count);
    opened = records_of(count) * BASE_NF4_RECORD;
    float *truth = update_block((size_t)opened * 4, 0), *wide = update_block((size_t)opened * 4, 0);
    uint16_t *narrow = update_block((size_t)opened * 2, 0);
    for (int run = 0; run < 4 * 2 * 2; run++) {
        bool is_doubled = run & 1;
        device *dev;
        sifr_error error = {0};
        if (device_open_cpu(run & 2 ? 1 : 3, sets[run / 4], &dev, &error) != SIFR_OK) continue;
        uint8_t *records = encode(values, count, is_doubled, 0.031f);
        decode(records, opened, is_doubled, truth);
        run_kernel(dev, records, count, is_doubled, BASE_FP32, wide);
        assert_memory_equal(wide, truth, (size_t)opened * 4);
        run_kernel(dev, records, count, is_doubled, BASE_BF16, narrow);
        for (int64_t i = 0; i < opened; i++)
            assert_int_equal(narrow[i], base_bf16_from_float(truth[i]));
        run_kernel(dev, records, count, is_doubled, BASE_FP16, narrow);
        for (int64_t i = 0; i < opened; i++)
            assert_int_equal(narrow[i], base_half_from_float(truth[i]));
        free(records);
        device_close(dev);
    }
    free(values);
    free(truth);
    free(wide);
    free(narrow);
}

static void refused(void **state) {
    device *dev;
    sifr_error error = {0};
    (void)state;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    device_call call = {.kernel = DEVICE_DEQUANTISE,
                        .x = {{NULL, 2, 8000, 8000, BASE_UINT8}},
                        .y = update_vector(NULL, 2 * BASE_NF4_RECORD, BASE_BF16)};
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "dequantise: x[0]"));
    call.x[0].columns = call.x[0].stride = BASE_NF4_DOUBLED;
    call.y.columns = call.y.stride = BASE_NF4_RECORD;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "dequantise: y"));
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps),         cmocka_unit_test(plain),
                                       cmocka_unit_test(doubled),      cmocka_unit_test(lengths),
                                       cmocka_unit_test(equal_scales), cmocka_unit_test(kernel),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, open_file, close_file);
}
