/* The average of the weights (ema_decay): its values, the same bits at every stage, rank count and
 * tier, and what has none. Against torch: test_golden_optimizers. label: full, timeout: 300 */
#include <math.h>

#include "model/registry.h"
#include "plan/queries.h"
#include "support/optimizer_runs.h"

#define EMA .ema_decay = 0.75
#define ADAMW                                                                                      \
    .type = SIFR_ADAMW, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8, .bias_correction = true,          \
    .decoupled = true

static const sifr_optimizer optimizers[] = {
    {ADAMW, EMA},
    {ADAMW, .amsgrad = true, EMA},
    {.type = SIFR_SGD, EMA},
    {.type = SIFR_SGD, .momentum = 0.9, .nesterov = true, .ema_decay = 0.25},
    {.type = SIFR_ADAGRAD, .eps = 1e-10, EMA},
    {.type = SIFR_LION, .beta1 = 0.9, .beta2 = 0.99, EMA, .no_decay = SIFR_NO_DECAY_TRANSFORMERS}};

enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

/* The weights and the other states are those of a run without it. */
static void check_rest(int optimizer, sifr_precision precision, const zero_outcome *have) {
    sifr_optimizer plain = optimizers[optimizer];
    zero_variant v = optimizer_variant(&optimizers[optimizer], precision);
    plain.ema_decay = 0;
    v.optimizer = &plain;
    zero_outcome want = zero_run(v);
    model_config config = zero_config("llama");
    sifr_model *model;
    assert_int_equal(model_from_config(&config, &model, NULL), SIFR_OK);
    size_t parameters = (size_t)sifr_model_parameters(model);
    sifr_model_free(model);
    assert_int_equal(have->count, want.count + parameters);
    assert_memory_equal(have->weights, want.weights, parameters * sizeof(float));
    assert_memory_equal(have->loss, want.loss, sizeof want.loss);
    assert_int_equal(have->peak[PLAN_MOMENTS] - want.peak[PLAN_MOMENTS],
                     precision == SIFR_FP32 ? have->peak[PLAN_PARAMETERS]
                                            : 2 * have->peak[PLAN_PARAMETERS]);
    free(want.weights);
}

static void stages_and_ranks(void **state) {
    (void)state;
    for (int i = 0; i < OPTIMIZERS; i++) {
        for (int p = SIFR_FP32; p <= (i ? SIFR_BF16 : SIFR_FP16); p++) {
            zero_variant v = optimizer_variant(&optimizers[i], (sifr_precision)p);
            zero_outcome want = zero_run(v);
            check_rest(i, (sifr_precision)p, &want);
            optimizer_expect_each_stage(&want, v, true);
            free(want.weights);
        }
    }
}

/* With states and masters in bf16 the average still has 32 bits. */
static void narrow_states(void **state) {
    (void)state;
    zero_variant v = optimizer_variant(&optimizers[0], SIFR_BF16);
    v.moments = v.masters = SIFR_BF16;
    zero_outcome want = zero_run(v);
    v.ranks = 2;
    optimizer_expect_each_stage(&want, v, false);
    assert_int_equal(want.peak[PLAN_MOMENTS], 4 * want.peak[PLAN_PARAMETERS]);
    free(want.weights);
}

static void tiers(void **state) {
    (void)state;
    for (int i = 0; i < OPTIMIZERS; i++) optimizer_expect_tiers(&optimizers[i], i, false);
}

/* --- values --- */

typedef struct averaged {
    sifr_model *model;
    sifr_engine *engine;
    float **average; /* by weight */
    int64_t updates;
} averaged;

static size_t elements(const sifr_model *model, size_t w) {
    return (size_t)(model->weights[w].rows * model->weights[w].columns);
}

static averaged begin(sifr_settings settings, const char *frozen) {
    averaged a = {0};
    model_config config = zero_config("llama");
    sifr_error error = {0};
    settings.threads = 1;
    settings.micro_batch_size = 1;
    settings.seq_length = ZERO_LENGTH;
    assert_int_equal(model_from_config(&config, &a.model, NULL), SIFR_OK);
    if (frozen) assert_int_equal(sifr_model_freeze(a.model, frozen, NULL), SIFR_OK);
    if (sifr_model_group(a.model, &settings.optimizer, &error) ||
        sifr_engine_create(a.model, &settings, &a.engine, &error) ||
        sifr_engine_initialise(a.engine, ZERO_SEED, &error))
        fail_msg("%s", error.message);
    a.average = calloc(a.model->weight_count, sizeof *a.average);
    for (size_t w = 0; w < a.model->weight_count; w++)
        a.average[w] = calloc(elements(a.model, w), sizeof(float));
    return a;
}

/* A step; `labelled`: without labels nothing is updated. */
static void step(averaged *a, double decay, bool labelled) {
    int32_t tokens[ZERO_LENGTH], labels[ZERO_LENGTH];
    sifr_step_result result;
    for (int i = 0; i < ZERO_LENGTH; i++) {
        tokens[i] = (i * 7 + (int)a->updates) % 97;
        labels[i] = labelled ? (i * 5 + 3) % 97 : -100;
    }
    sifr_batch batch = {.tokens = tokens, .labels = labels};
    assert_int_equal(sifr_engine_step(a->engine, &batch, 1e-2, &result, NULL), SIFR_OK);
    assert_int_equal(result.updated, labelled);
    float share = a->updates ? (float)(1 - decay) : 1.0f, rest = 1.0f - share;
    if (!labelled) return;
    a->updates++;
    for (size_t w = 0; w < a->model->weight_count; w++) {
        size_t count = elements(a->model, w);
        float *now = calloc(count, sizeof *now);
        assert_int_equal(
            sifr_engine_read_weight(a->engine, a->model->weights[w].name, now, count, NULL),
            SIFR_OK);
        for (size_t i = 0; i < count; i++) {
            float d = now[i] - a->average[w][i];
            a->average[w][i] = share < 0.5f ? a->average[w][i] + share * d : now[i] - d * rest;
        }
        free(now);
    }
}

static void check_average(const averaged *a) {
    engine_part part = (engine_part)(engine_parts(a->engine) - 1);
    assert_string_equal(engine_part_name(engine_optimizer(a->engine), part), "ema");
    for (size_t w = 0; w < a->model->weight_count; w++) {
        const char *name = a->model->weights[w].name;
        size_t count = elements(a->model, w);
        float *values = calloc(count, sizeof *values);
        sifr_status status = sifr_engine_read_average(a->engine, name, values, count, NULL);
        assert_int_equal(status, a->model->weights[w].frozen ? SIFR_USAGE : SIFR_OK);
        if (status == SIFR_OK) assert_memory_equal(values, a->average[w], count * sizeof(float));
        free(values);
    }
}

static void end(averaged *a) {
    for (size_t w = 0; w < a->model->weight_count; w++) free(a->average[w]);
    free(a->average);
    sifr_engine_free(a->engine);
    sifr_model_free(a->model);
}

static void values(void **state) {
    (void)state;
    static const double decays[] = {0.9, 0.3};
    for (int n = 0; n < 4; n++) {
        sifr_settings settings = sifr_settings_defaults();
        settings.precision = n / 2 ? SIFR_BF16 : SIFR_FP32; /* masters in fp32 */
        settings.optimizer.ema_decay = decays[n % 2];
        averaged a = begin(settings, n % 2 ? "*embed*" : NULL);
        step(&a, decays[n % 2], false);
        for (int s = 0; s < 4; s++) {
            step(&a, decays[n % 2], true);
            check_average(&a);
            step(&a, decays[n % 2], false);
            check_average(&a);
        }
        end(&a);
    }
}

static void refused(void **state) {
    (void)state;
    static const sifr_optimizer_type types[] = {SIFR_ADAMW_8BIT, SIFR_ADAM_8BIT,
                                                SIFR_SCHEDULE_FREE_ADAMW};
    for (int t = 0; t < 3; t++) {
        model_config config = zero_config("llama");
        sifr_settings settings = sifr_settings_defaults();
        sifr_model *model;
        sifr_engine *engine;
        sifr_error error = {0};
        settings.optimizer.type = types[t];
        settings.optimizer.ema_decay = 0.9;
        assert_int_equal(model_from_config(&config, &model, NULL), SIFR_OK);
        assert_int_equal(sifr_model_group(model, &settings.optimizer, NULL), SIFR_OK);
        assert_int_equal(sifr_engine_create(model, &settings, &engine, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, "an average of the weights"));
        sifr_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(refused),
                                       cmocka_unit_test(stages_and_ranks),
                                       cmocka_unit_test(narrow_states), cmocka_unit_test(tiers)};
    return cmocka_run_group_tests(tests, optimizer_setup, optimizer_teardown);
}
