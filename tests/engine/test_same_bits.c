/* Promise 1 of the design: the trained weights do not depend on threads, step order or
 * recomputation, nor on the run. label: full, timeout: 300, not under sanitizers */
#include "engine/small_model.h"

#include <stdbool.h>

#include "model/description.h"

/* A micro batch has more tokens than a chunk of the CPU, and no round number of them. */
enum { SEQUENCES = 17, LENGTH = 67, STEPS = 2, TOKENS = SEQUENCES * LENGTH, MOST = 6 };

typedef struct outcome {
    float *weights; /* all, one after the other */
    size_t count;
    sifr_step_result steps[STEPS];
} outcome;

static sifr_settings defaults(sifr_precision precision) {
    sifr_settings options = sifr_settings_defaults();
    options.precision = precision;
    options.threads = 1;
    options.micro_batch_size = SEQUENCES;
    options.seq_length = LENGTH;
    options.optimizer.weight_decay = 0.1;
    return options;
}

static outcome train(const sifr_model *model, const sifr_settings *options) {
    static int32_t tokens[MOST * TOKENS], labels[MOST * TOKENS];
    outcome out = {0};
    sifr_error error = {0};
    sifr_engine *engine = small_engine(model, options);
    for (int step = 0; step < STEPS; step++) {
        small_batch(step, (int64_t)options->gradient_accumulation_steps * TOKENS, tokens, labels);
        if (sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-2,
                             &out.steps[step], &error) != SIFR_OK) {
            fail_msg("%s", error.message);
        }
        assert_true(out.steps[step].updated);
    }
    for (size_t w = 0; w < model->weight_count; w++) {
        out.count += (size_t)(model->weights[w].rows * model->weights[w].columns);
    }
    out.weights = malloc(out.count * sizeof *out.weights);
    assert_non_null(out.weights);
    float *at = out.weights;
    for (size_t w = 0; w < model->weight_count; w++) {
        size_t count = (size_t)(model->weights[w].rows * model->weights[w].columns);
        const char *name = model->weights[w].name;
        if (sifr_engine_read_weight(engine, name, at, count, &error) != SIFR_OK) {
            fail_msg("%s", error.message);
        }
        at += count;
    }
    sifr_engine_free(engine);
    return out;
}

/* The first weight that differs, by name. */
static void assert_same(const sifr_model *model, const outcome *a, const outcome *b,
                        const char *what) {
    for (int step = 0; step < STEPS; step++) {
        const sifr_step_result *x = &a->steps[step], *y = &b->steps[step];
        if (memcmp(&x->loss, &y->loss, sizeof x->loss) != 0)
            fail_msg("%s: loss of step %d: %.17g, %.17g", what, step, x->loss, y->loss);
        if (memcmp(&x->gradient_norm, &y->gradient_norm, sizeof x->gradient_norm) != 0)
            fail_msg("%s: gradient norm of step %d: %.17g, %.17g", what, step, x->gradient_norm,
                     y->gradient_norm);
    }
    size_t first = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        size_t count = (size_t)(model->weights[w].rows * model->weights[w].columns);
        for (size_t i = first; i < first + count; i++) {
            if (memcmp(&a->weights[i], &b->weights[i], sizeof *a->weights) == 0) continue;
            fail_msg("%s: %s differs at element %zu: %.9g, %.9g", what, model->weights[w].name,
                     i - first, (double)a->weights[i], (double)b->weights[i]);
        }
        first += count;
    }
}

static void compare(const sifr_model *model, const outcome *expected, const sifr_settings *options,
                    const char *what) {
    outcome got = train(model, options);
    assert_same(model, expected, &got, what);
    free(got.weights);
}

static bool differs(const outcome *a, const outcome *b) {
    return memcmp(a->weights, b->weights, a->count * sizeof *a->weights) != 0;
}

/* Numbers of threads, the first run's among them: it is run again. */
static void threads_of(small_kind kind, sifr_precision precision) {
    static const int threads[] = {1, 2, 3, 8};
    sifr_model *model = small_model(kind);
    sifr_settings options = defaults(precision);
    outcome expected = train(model, &options);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        char what[64];
        options.threads = threads[i];
        snprintf(what, sizeof what, "%s, %d threads", small_names[kind], threads[i]);
        compare(model, &expected, &options, what);
    }
    free(expected.weights);
    sifr_model_free(model);
}

/* Both step orders, with and without recomputation, for k micro batches. */
static void orders_of(small_kind kind, sifr_precision precision, int32_t k) {
    sifr_model *model = small_model(kind);
    sifr_settings options = defaults(precision);
    options.gradient_accumulation_steps = k;
    outcome expected = train(model, &options);
    for (int variant = 1; variant < 6; variant++) {
        char what[96];
        options.step_order = variant & 1 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        options.recompute = variant > 1 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        options.number_checkpoints =
            variant > 3; /* one: all blocks are computed again from the first */
        snprintf(what, sizeof what, "%s, k %d, %s order%s%s", small_names[kind], k,
                 options.step_order == SIFR_STEP_UNIT ? "unit" : "batch",
                 options.recompute ? ", recompute" : "",
                 options.number_checkpoints ? ", one checkpoint" : "");
        compare(model, &expected, &options, what);
    }
    free(expected.weights);
    sifr_model_free(model);
}

static void test_threads_fp32(void **state) {
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) threads_of((small_kind)kind, SIFR_FP32);
}

static void test_threads_bf16(void **state) {
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) threads_of((small_kind)kind, SIFR_BF16);
}

static void test_threads_fp16(void **state) {
    (void)state;
    threads_of(SMALL_TIED, SIFR_FP16);
    threads_of(SMALL_GPT2, SIFR_FP16);
}

/* Every kind with an even, an odd or a mixed tree; together all of 1, 2, 3, 4 and 6. */
static void test_orders(void **state) {
    static const int32_t k[SMALL_KINDS][2] = {{4, 1}, {3, 2}, {2, 6}};
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        for (int i = 0; i < 2; i++) {
            orders_of((small_kind)kind, SIFR_FP32, k[kind][i]);
            if (i == 0) orders_of((small_kind)kind, SIFR_BF16, k[kind][i]);
            if (kind == SMALL_TIED) orders_of(SMALL_TIED, SIFR_FP16, k[kind][i]);
        }
    }
}

/* Without the tree, the same from run to run and for any number of threads; and, with four micro
 * batches, other bits than the tree's, so that the option does something. */
static void test_sequential(void **state) {
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        sifr_model *model = small_model((small_kind)kind);
        sifr_settings options = defaults(SIFR_FP32);
        options.gradient_accumulation_steps = 4;
        outcome tree = train(model, &options);
        options.gradient_order = true ? SIFR_GRADIENT_SEQUENTIAL : SIFR_GRADIENT_TREE;
        outcome expected = train(model, &options);
        assert_true(differs(&tree, &expected));
        compare(model, &expected, &options, "sequential, run again");
        options.threads = 3;
        compare(model, &expected, &options, "sequential, 3 threads");
        options.recompute = SIFR_RECOMPUTE_UNIT;
        compare(model, &expected, &options, "sequential, recompute");
        free(tree.weights);
        free(expected.weights);
        sifr_model_free(model);
    }
}

/* What must change the bits does: else the tests above would compare nothing. */
static void test_other_inputs(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_GPT2);
    sifr_settings options = defaults(SIFR_FP32);
    outcome expected = train(model, &options);
    options.seed++; /* of dropout */
    outcome other = train(model, &options);
    assert_true(differs(&expected, &other));
    assert_true(expected.steps[0].loss > 5);
    assert_true(expected.steps[0].loss < 7); /* ln 331 = 5.80 */
    free(other.weights);
    free(expected.weights);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_fp32), cmocka_unit_test(test_threads_bf16),
        cmocka_unit_test(test_threads_fp16), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_sequential),   cmocka_unit_test(test_other_inputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
