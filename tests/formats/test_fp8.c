/* Folders whose matrices are in 8 bits: the values of tests/golden/make_fp8.py, which are also
 * transformers'; blocks of 128 that do not divide a matrix, in double precision; and what is wrong
 * in such a folder. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "support/scratch.h"

#include "base/file.h"
#include "base/half.h"
#include "base/json.h"
#include "base/sha256.h"
#include "formats/config_edit.h"
#include "formats/fp8.h"
#include "formats/weights.h"

static sifr_error error;
static formats_weights *weights;

/* --- golden folders --- */

static void check_tensor(const formats_tensor *t, const char *wanted) {
    enum { MOST = 64 * 64 };
    float values[MOST];
    uint16_t narrow[MOST];
    char hash[65];
    const void *bytes = t->data;
    assert_true(t->elements <= MOST);
    assert_int_equal(formats_value_type(t), BASE_BF16);
    if (t->scales) {
        for (int64_t at = 0; at < t->elements; at += 7) /* pieces meet edges of blocks */
            formats_fp8_values(t, at, at + 7 < t->elements ? 7 : t->elements - at, values + at);
        for (int64_t i = 0; i < t->elements; i++) narrow[i] = base_bf16_from_float(values[i]);
        bytes = narrow;
    }
    base_sha256_hex(bytes, 2 * (size_t)t->elements, hash);
    hash[16] = '\0';
    if (strcmp(hash, wanted) != 0) fail_msg("%s: %s, not %s", t->name, hash, wanted);
}

static void golden(void **state) {
    (void)state;
    static const char *const names[] = {"blocks", "tensor"};
    char path[512];
    json_t *expected;
    snprintf(path, sizeof path, "%s/tests/golden/fp8/expected.json", getenv("SOURCE"));
    assert_int_equal(base_json_load(path, 1 << 20, &expected, &error), SIFR_OK);
    for (size_t f = 0; f < 2; f++) {
        json_t *tensors = json_object_get(json_object_get(expected, names[f]), "tensors"), *hash;
        const char *name;
        size_t read = 0, others = 0;
        snprintf(path, sizeof path, "%s/tests/golden/fp8/%s", getenv("SOURCE"), names[f]);
        if (formats_weights_open(path, &weights, &error) != SIFR_OK) fail_msg("%s", error.message);
        json_object_foreach(tensors, name, hash) {
            const formats_tensor *t = formats_weights_find(weights, name);
            assert_non_null(t);
            check_tensor(t, json_string_value(hash));
            read++;
        }
        for (size_t i = 0; i < formats_weights_count(weights); i++)
            others += formats_weights_at(weights, i)->of_another;
        assert_int_equal(read, 25);
        assert_int_equal(others, f ? 28 : 14);
        assert_int_equal(read + others, formats_weights_count(weights));
        formats_weights_close(weights);
    }
    json_decref(expected);
}

/* --- numbers --- */

/* OCP 8-bit floating point, 1.0, table 1. */
static void numbers(void **state) {
    (void)state;
    static const struct {
        uint8_t byte;
        float value;
    } known[] = {{0x00, 0},    {0x01, 0x1p-9f}, {0x07, 0x1.cp-7f}, {0x08, 0x1p-6f},
                 {0x38, 1},    {0x3c, 1.5f},    {0x7e, 448},       {0xb8, -1},
                 {0xfe, -448}, {0x81, -0x1p-9f}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(formats_fp8_number(known[i].byte) == known[i].value);
    assert_true(isnan(formats_fp8_number(0x7f)) && isnan(formats_fp8_number(0xff)));
    assert_true(signbit(formats_fp8_number(0x80)));
}

/* --- folders of one matrix --- */

typedef struct matrix {
    int64_t rows, columns;
    formats_tensor_spec scales;
    const char *config;
} matrix;

static float scale_of(int64_t i) {
    return 0.001f * (float)(i + 1);
}

static sifr_status fill(void *user, size_t position, formats_safetensors_writer *writer,
                        sifr_error *e) {
    const matrix *m = user;
    int64_t count = position ? m->scales.rank == 2 ? m->scales.shape[0] * m->scales.shape[1] : 1
                             : m->rows * m->columns;
    for (int64_t i = 0; i < count; i++) {
        uint8_t byte = (uint8_t)(i * 37 % 0x7f);
        uint16_t half = base_bf16_from_float(scale_of(i));
        float scale = scale_of(i);
        if (!position)
            BASE_TRY(formats_safetensors_append(writer, &byte, 1, e));
        else if (m->scales.dtype == BASE_FP32)
            BASE_TRY(formats_safetensors_append(writer, &scale, sizeof scale, e));
        else
            BASE_TRY(formats_safetensors_append(writer, &half,
                                                (size_t)base_dtype_bytes(m->scales.dtype), e));
    }
    return SIFR_OK;
}

static sifr_status open_matrix(const char *name, const matrix *m) {
    char config[600];
    const char *folder = scratch_path(name);
    formats_tensor_spec specs[2] = {
        {.name = "a.weight", .dtype = BASE_FP8_E4M3, .rank = 2, .shape = {m->rows, m->columns}},
        m->scales};
    assert_int_equal(mkdir(folder, 0777), 0);
    if (formats_weights_write(folder, specs, m->scales.name ? 2 : 1, 0, fill, (void *)(uintptr_t)m,
                              &error) != SIFR_OK)
        fail_msg("%s", error.message);
    snprintf(config, sizeof config, "{\"quantization_config\": {%s}}", m->config);
    char path[600];
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(base_write_file(path, config, strlen(config), &error), SIFR_OK);
    return formats_weights_open(folder, &weights, &error);
}

#define METHOD "\"quant_method\": \"fp8\""

/* Blocks of 128, the default, at the edges of 200 x 300; and scales of BF16. */
static void edges(void **state) {
    (void)state;
    static const base_dtype types[] = {BASE_FP32, BASE_BF16};
    for (int k = 0; k < 2; k++) {
        matrix m = {200, 300, {"a.weight_scale_inv", types[k], 2, {2, 3}}, METHOD};
        if (open_matrix(k ? "narrow" : "edges", &m) != SIFR_OK) fail_msg("%s", error.message);
        const formats_tensor *t = formats_weights_find(weights, "a.weight");
        float values[300];
        for (int64_t row = 0; row < m.rows; row++) {
            formats_fp8_values(t, row * m.columns, m.columns, values);
            for (int64_t c = 0; c < m.columns; c++) {
                float scale = scale_of(row / 128 * 3 + c / 128);
                if (k) scale = base_bf16_to_float(base_bf16_from_float(scale));
                uint8_t byte = ((const uint8_t *)t->data)[row * m.columns + c];
                double exact = (double)formats_fp8_number(byte) * (double)scale;
                assert_true(fabs((double)values[c] - exact) <= fabs(exact) * 0x1.01p-8);
                assert_true(base_bf16_to_float(base_bf16_from_float(values[c])) == values[c]);
            }
        }
        formats_weights_close(weights);
    }
}

static void wrong(void **state) {
    (void)state;
    static const struct {
        matrix m;
        const char *message;
    } cases[] = {
        {{200, 300, {0}, METHOD}, "a.weight_scale_inv, are missing"},
        {{200, 300, {"a.weight_scale_inv", BASE_FP32, 2, {3, 2}}, METHOD}, "block of 128 x 128"},
        {{200, 300, {"a.weight_scale_inv", BASE_FP32, 2, {1, 2}}, METHOD}, "block of 128 x 128"},
        {{20,
          30,
          {"a.weight_scale_inv", BASE_FP32, 2, {2, 2}},
          METHOD ", \"weight_block_size\": null"},
         "the whole of it"},
        {{20, 30, {"a.weight_scale_inv", BASE_FP8_E8M0, 2, {1, 1}}, METHOD}, "F8_E8M0"},
        {{20, 30, {"a.weight_scale", BASE_FP32, 0, {0}}, METHOD ", \"weight_block_size\": [0, 8]"},
         "weight_block_size must be"},
        {{20, 30, {"a.weight_scale", BASE_FP32, 0, {0}}, METHOD ", \"weight_block_size\": 128"},
         "weight_block_size must be"},
        {{20, 30, {"a.weight_scale", BASE_FP32, 0, {0}}, METHOD ", \"fmt\": \"e5m2\""}, "e5m2"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[16];
        snprintf(name, sizeof name, "wrong%zu", i);
        assert_int_not_equal(open_matrix(name, &cases[i].m), SIFR_OK);
        if (!strstr(error.message, cases[i].message)) fail_msg("%s", error.message);
    }
}

static void other_methods(void **state) {
    (void)state;
    static const char *const methods[] = {"gptq", "awq", "compressed-tensors", "bitsandbytes"};
    formats_fp8 fp8;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        json_t *json = json_pack("{s:s}", "quant_method", methods[i]);
        assert_false(formats_fp8_is(json));
        assert_int_equal(formats_fp8_read(json, "config.json", &fp8, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, methods[i]));
        assert_non_null(strstr(error.message, "in BF16"));
        json_decref(json);
    }
}

/* --- taking a key out of config.json --- */

static void take_out(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\n  \"a\": 1,\n  \"q\": {\"b\": [2, \"}\"]},\n  \"c\": 3\n}\n",
         "{\n  \"a\": 1,\n  \"c\": 3\n}\n"},
        {"{\n  \"a\": 1,\n  \"q\": {}\n}\n", "{\n  \"a\": 1\n}\n"},
        {"{\"q\": null, \"a\": {\"q\": 1}}", "{\"a\": {\"q\": 1}}"},
        {"{\"q\": 1}", "{}"},
        {"{\"a\": {\"q\": 1}}", "{\"a\": {\"q\": 1}}"}};
    const formats_config_change change = {"q", NULL};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out;
        size_t size;
        assert_int_equal(formats_config_edit(cases[i][0], strlen(cases[i][0]), "x", &change, 1,
                                             &out, &size, &error),
                         SIFR_OK);
        assert_string_equal(out, cases[i][1]);
        free(out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden),        cmocka_unit_test(numbers),
                                       cmocka_unit_test(edges),         cmocka_unit_test(wrong),
                                       cmocka_unit_test(other_methods), cmocka_unit_test(take_out)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
