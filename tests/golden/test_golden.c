/* The stored results agree with themselves and with the folders, and the checks of golden.h can
 * fail. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/weights.h"
#include "model/model_config.h"
#include "support/golden.h"

typedef void (*golden_visit)(const golden *g);

static void for_each(golden_visit visit) {
    golden_list list;
    golden_list_open(&list);
    assert_true(list.count >= 7);
    for (size_t i = 0; i < list.count; i++) {
        golden g;
        golden_open(&list, i, &g);
        visit(&g);
        golden_close(&g);
    }
    golden_list_close(&list);
}

static double norm2(const float *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)values[i] * (double)values[i];
    return sum;
}

static void sums_agree(const golden *g) {
    double gradient = 0, update = 0;
    int64_t labelled = 0;
    for (size_t i = 0; i < g->parameter_count; i++) {
        const golden_parameter *p = &g->parameters[i];
        size_t count;
        float *values = golden_gradient(g, p->name, &count);
        assert_int_equal(count, p->elements);
        gradient += norm2(values, count);
        free(values);
        values = golden_update(g, p->name, &count);
        assert_int_equal(count, p->elements);
        update += norm2(values, count);
        free(values);
    }
    assert_true(golden_relative(sqrt(gradient), g->gradient_norm) < 1e-6);
    assert_true(golden_relative(sqrt(update), g->update_norm) < 1e-3);
    for (int64_t i = 0; i < g->sequences * g->length; i++) labelled += g->labels[i] >= 0;
    assert_int_equal(labelled, g->labelled);
    assert_int_equal(g->masked, labelled < g->sequences * g->length);
    assert_true(g->step_loss[g->steps - 1] < g->step_loss[0]);
    assert_true(g->step_norm[0] > g->clipping); /* or clipping would not be tested */
}

static void test_sums(void **state) {
    (void)state;
    for_each(sums_agree);
}

static void folder_agrees(const golden *g) {
    sifr_error error = {0};
    formats_weights *weights = NULL;
    model_config config;
    if (model_config_load(g->folder, &config, &error)) fail_msg("%s", error.message);
    assert_int_equal(config.vocab_size, g->vocab_size);
    if (formats_weights_open(g->folder, &weights, &error)) fail_msg("%s", error.message);
    for (size_t i = 0; i < g->parameter_count; i++) {
        const golden_parameter *p = &g->parameters[i];
        const formats_tensor *tensor = formats_weights_find(weights, p->name);
        if (tensor == NULL && strncmp(p->name, "transformer.", 12) == 0) {
            tensor = formats_weights_find(weights, p->name + 12);
        }
        if (tensor == NULL) fail_msg("%s: no tensor %s", g->folder, p->name);
        assert_int_equal(tensor->elements, (int64_t)p->elements);
        const char *stored = strcmp(g->stored_dtype, "float32") == 0    ? "F32"
                             : strcmp(g->stored_dtype, "bfloat16") == 0 ? "BF16"
                                                                        : "F16";
        assert_string_equal(formats_dtype_name(tensor->dtype), stored);
    }
    formats_weights_close(weights);
}

static void test_folders(void **state) {
    (void)state;
    for_each(folder_agrees);
}

/* Values that are off by a little more or less than the bound are told apart. */
static void measures(const golden *g) {
    golden_update_error sum = {0, 0};
    for (size_t i = 0; i < g->parameter_count; i++) {
        const golden_parameter *p = &g->parameters[i];
        size_t count;
        float *values = golden_gradient(g, p->name, &count);
        golden_check_gradient(g, GOLDEN_FP32, p->name, values, count);
        golden_check_gradient(g, GOLDEN_BF16, p->name, values, count);
        for (size_t k = 0; k < count; k++) values[k] *= 1.0003f;
        golden_gradient_error error = golden_measure_gradient(g, p->name, values, count);
        assert_true(error.relative > 2.9e-4);
        assert_true(error.relative < 3.1e-4);
        assert_true(error.zero_share <= golden_zero_bound(g, GOLDEN_FP32));
        double bf16 = golden_gradient_bound(g, GOLDEN_BF16, p->name);
        assert_true(bf16 > 1e-3);
        assert_true(bf16 < 0.1);
        free(values);

        float *update = golden_update(g, p->name, &count);
        float *zero = calloc(count, sizeof *zero);
        assert_non_null(zero);
        for (size_t k = 0; k < count; k++) update[k] *= 1.002f;
        golden_add_update(g, &sum, p->name, zero, update, count);
        free(zero);
        free(update);
    }
    double off = sqrt(sum.difference2 / sum.update2);
    assert_true(off > 1.9e-3);
    assert_true(off < 2.1e-3);
    assert_true(off > golden_update_bound(g, GOLDEN_FP32));

    golden_check_logits(g, GOLDEN_FP32, g->logits);
    float *logits = malloc(g->logit_row_count * (size_t)g->vocab_size * sizeof *logits);
    assert_non_null(logits);
    memcpy(logits, g->logits, g->logit_row_count * (size_t)g->vocab_size * sizeof *logits);
    logits[7] += (float)(g->logit_largest * 3e-5);
    double logit = golden_logit_error(g, logits);
    assert_true(logit > golden_logit_bound(g, GOLDEN_FP32));
    assert_true(logit < 4e-5);
    logits[7] = NAN;
    assert_false(golden_logit_error(g, logits) <= 1);
    free(logits);
}

static void test_measures(void **state) {
    (void)state;
    for_each(measures);
}

static void test_init(void **state) {
    (void)state;
    golden_init init;
    size_t cases = 0;
    for (; golden_init_open(&init, cases); cases++) {
        model_config config;
        sifr_error error = {0};
        if (model_config_parse(init.config, strlen(init.config), init.name, &config, &error)) {
            fail_msg("%s", error.message);
        }
        assert_true(golden_init_tensors(&init) > 10);
        assert_non_null(golden_init_name(&init, 0));
        golden_init_close(&init);
    }
    assert_int_equal(cases, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_measures),
        cmocka_unit_test(test_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
