/* Groups of settings of an optimizer: what they change, the same bits at every stage, rank count
 * and tier, and what is refused. Against torch: test_golden_optimizers. label: full, timeout: 300
 */
#include <math.h>

#include "model/registry.h"
#include "support/optimizer_runs.h"

static const sifr_optimizer_group some_groups[] = {
    {"*mlp*", 2, -1}, {"*_proj.weight", 0.25, 0.3}, {"*embed*", 3, 0}};

#define GROUPS .groups = some_groups, .group_count = 3, .layer_decay = 0.6

static const sifr_optimizer optimizers[] = {
    {.type = SIFR_ADAMW,
     .beta1 = 0.9,
     .beta2 = 0.99,
     .eps = 1e-8,
     .bias_correction = true,
     .decoupled = true,
     .no_decay = SIFR_NO_DECAY_TRANSFORMERS,
     GROUPS},
    {.type = SIFR_SGD, .momentum = 0.9, .no_decay = SIFR_NO_DECAY_TRANSFORMERS},
    {.type = SIFR_SCHEDULE_FREE_ADAMW,
     .beta1 = 0.9,
     .beta2 = 0.99,
     .eps = 1e-8,
     .r = 1,
     .weight_lr_power = 2,
     GROUPS},
    {.type = SIFR_ADAMW_8BIT,
     .beta1 = 0.9,
     .beta2 = 0.99,
     .eps = 1e-8,
     .bias_correction = true,
     .min_8bit_size = 1000,
     .no_decay = SIFR_NO_DECAY_TRANSFORMERS,
     GROUPS},
    {.type = SIFR_LION, .beta1 = 0.9, .beta2 = 0.99, GROUPS}};

enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static void stages_and_ranks(void **state) {
    (void)state;
    for (int i = 0; i < OPTIMIZERS; i++) {
        for (int p = SIFR_FP32; p <= (i ? SIFR_BF16 : SIFR_FP16); p++) {
            zero_variant v = optimizer_variant(&optimizers[i], (sifr_precision)p);
            zero_outcome want = zero_run(v);
            assert_true(isfinite(want.loss[ZERO_STEPS - 1]));
            assert_true(want.norm[0] > 0);
            optimizer_expect_each_stage(&want, v, true);
            free(want.weights);
        }
    }
}

/* Stochastic rounding counts elements over the whole model, segment after segment. */
static void narrow_states(void **state) {
    (void)state;
    zero_variant v = optimizer_variant(&optimizers[0], SIFR_BF16);
    v.moments = v.masters = SIFR_BF16;
    zero_outcome want = zero_run(v);
    v.ranks = 2;
    optimizer_expect_each_stage(&want, v, false);
    free(want.weights);
}

static void tiers(void **state) {
    (void)state;
    for (int i = 0; i < OPTIMIZERS; i++) optimizer_expect_tiers(&optimizers[i], i, false);
}

/* --- what groups change --- */

static sifr_model *model_of(const char *type) {
    model_config config = zero_config(type);
    sifr_model *model;
    assert_int_equal(model_from_config(&config, &model, NULL), SIFR_OK);
    return model;
}

static sifr_settings settings_of(sifr_optimizer optimizer) {
    sifr_settings settings = sifr_settings_defaults();
    settings.threads = 1;
    settings.micro_batch_size = 1;
    settings.seq_length = ZERO_LENGTH;
    settings.optimizer = optimizer;
    return settings;
}

typedef struct trained {
    sifr_model *model;
    float **before, **after; /* by weight */
} trained;

static float **read_all(const sifr_engine *engine, const sifr_model *model) {
    float **out = calloc(model->weight_count, sizeof *out);
    for (size_t w = 0; w < model->weight_count; w++) {
        size_t count = (size_t)(model->weights[w].rows * model->weights[w].columns);
        out[w] = calloc(count, sizeof **out);
        assert_int_equal(
            sifr_engine_read_weight(engine, model->weights[w].name, out[w], count, NULL), SIFR_OK);
    }
    return out;
}

/* Two steps. */
static trained train(sifr_optimizer optimizer, double learning_rate) {
    trained t = {.model = model_of("llama")};
    sifr_settings settings = settings_of(optimizer);
    int32_t tokens[ZERO_LENGTH], labels[ZERO_LENGTH];
    sifr_error error = {0};
    sifr_engine *engine;
    for (int i = 0; i < ZERO_LENGTH; i++) tokens[i] = i * 7 % 97, labels[i] = (i * 5 + 3) % 97;
    if (sifr_model_group(t.model, &settings.optimizer, &error) ||
        sifr_engine_create(t.model, &settings, &engine, &error) ||
        sifr_engine_initialise(engine, ZERO_SEED, &error))
        fail_msg("%s", error.message);
    t.before = read_all(engine, t.model);
    sifr_batch batch = {.tokens = tokens, .labels = labels};
    sifr_step_result result;
    for (int s = 0; s < 2; s++)
        assert_int_equal(sifr_engine_step(engine, &batch, learning_rate, &result, &error), SIFR_OK);
    t.after = read_all(engine, t.model);
    sifr_engine_free(engine);
    return t;
}

static bool is_moved(const trained *t, size_t w) {
    size_t count = (size_t)(t->model->weights[w].rows * t->model->weights[w].columns);
    return memcmp(t->before[w], t->after[w], count * sizeof(float)) != 0;
}

static bool is_alike(const trained *a, const trained *b, size_t w) {
    size_t count = (size_t)(a->model->weights[w].rows * a->model->weights[w].columns);
    return memcmp(a->after[w], b->after[w], count * sizeof(float)) == 0;
}

static void free_trained(trained *t) {
    for (size_t w = 0; w < t->model->weight_count; w++) {
        free(t->before[w]);
        free(t->after[w]);
    }
    free(t->before);
    free(t->after);
    sifr_model_free(t->model);
}

static sifr_optimizer adamw(void) {
    sifr_optimizer o = sifr_settings_defaults().optimizer;
    o.weight_decay = 0.1;
    return o;
}

/* A group whose rate is 0 stays as it is. */
static void still_weights(void **state) {
    (void)state;
    static const sifr_optimizer_group still[] = {{"*self_attn*", 0, -1}};
    sifr_optimizer o = adamw();
    trained all = train(o, 1e-3);
    o.groups = still, o.group_count = 1;
    trained some = train(o, 1e-3);
    int moved = 0;
    for (size_t w = 0; w < some.model->weight_count; w++) {
        bool attention = strstr(some.model->weights[w].name, "self_attn") != NULL;
        assert_int_equal(is_moved(&some, w), !attention);
        assert_true(is_moved(&all, w));
        moved += !attention;
    }
    assert_in_range(moved, 1, (int)some.model->weight_count - 1);
    assert_int_equal(some.model->group_count, 2);
    free_trained(&all);
    free_trained(&some);
}

/* A factor for all weights is a factor of the rate; decay given to all is the optimizer's. */
static void factors(void **state) {
    (void)state;
    static const sifr_optimizer_group half[] = {{"*", 0.5, 0.1}};
    sifr_optimizer o = adamw();
    trained want = train(o, 0.5e-3);
    o.weight_decay = 0.7;
    o.groups = half, o.group_count = 1;
    trained have = train(o, 1e-3);
    for (size_t w = 0; w < have.model->weight_count; w++) assert_true(is_alike(&want, &have, w));
    assert_int_equal(have.model->segment_count, have.model->unit_count);
    free_trained(&want);
    free_trained(&have);
}

/* Norms are a group without decay. */
static void no_decay(void **state) {
    (void)state;
    sifr_optimizer o = adamw();
    trained with = train(o, 1e-3);
    o.weight_decay = 0;
    trained without = train(o, 1e-3);
    o.weight_decay = 0.1, o.no_decay = SIFR_NO_DECAY_TRANSFORMERS;
    sifr_model *model = model_of("llama");
    assert_int_equal(sifr_model_group(model, &o, NULL), SIFR_OK);
    assert_int_equal(model->group_count, 2);
    for (size_t w = 0; w < model->weight_count; w++) {
        bool norm = strstr(model->weights[w].name, "norm") != NULL;
        double decay = model->groups[model->weights[w].group].weight_decay;
        assert_true(norm ? !(decay > 0) : decay > 0.09);
        assert_false(is_alike(&with, &without, w));
    }
    sifr_model_free(model);
    free_trained(&with);
    free_trained(&without);
}

/* The embeddings are the first unit, the head the last. */
static void layers(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2", "bert", "deberta-v2"};
    for (int t = 0; t < 4; t++) {
        sifr_model *model = model_of(types[t]);
        sifr_optimizer o = adamw();
        o.layer_decay = 0.5;
        assert_int_equal(sifr_model_group(model, &o, NULL), SIFR_OK);
        assert_int_equal(model->unit_count, 4); /* two layers */
        for (size_t w = 0; w < model->weight_count; w++) {
            const model_weight *weight = &model->weights[w];
            double want[] = {0.125, 0.25, 0.5, 1};
            assert_true(fabs(model->groups[weight->group].lr_scale - want[weight->unit]) < 1e-12);
        }
        o.layer_decay = 1;
        assert_int_equal(sifr_model_group(model, &o, NULL), SIFR_OK);
        assert_int_equal(model->group_count, 1);
        assert_int_equal(model->segment_count, model->unit_count);
        sifr_model_free(model);
    }
}

/* What is not trained is not divided by what would train it. */
static void frozen_units(void **state) {
    (void)state;
    static const sifr_optimizer two_rows[] = {
        {.type = SIFR_MUON, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-10},
        {.type = SIFR_ADAMW_8BIT, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .min_8bit_size = 100}};
    for (int i = 0; i < 2; i++) {
        sifr_model *model = model_of("llama");
        assert_int_equal(sifr_model_freeze(model, "model.layers.*", NULL), SIFR_OK);
        assert_int_equal(sifr_model_group(model, &two_rows[i], NULL), SIFR_OK);
        for (size_t u = 0; u < model->unit_count; u++)
            if (model->weights[model->units[u].first_weight].frozen)
                assert_int_equal(model->units[u].segments, 1);
        sifr_model_free(model);
    }
}

/* --- what is refused --- */

static void expect_refused(sifr_model *model, const sifr_optimizer *o, const char *message) {
    sifr_error error = {0};
    assert_int_equal(sifr_model_group(model, o, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
}

static void refused(void **state) {
    (void)state;
    static const sifr_optimizer_group nothing[] = {{"*mlp*", 2, -1}, {"*no_such*", 1, -1}};
    static const sifr_optimizer_group hidden[] = {{"*proj*", 2, -1}, {"*mlp*", 1, -1}};
    static const sifr_optimizer_group frozen[] = {{"*embed*", 2, -1}};
    sifr_optimizer o = adamw();
    sifr_model *model = model_of("llama");
    sifr_engine *engine;
    sifr_error error = {0};
    o.groups = nothing, o.group_count = 2;
    expect_refused(model, &o, "no weight's name matches \"*no_such*\"; names look like ");
    o.groups = hidden;
    expect_refused(model, &o,
                   "\"*mlp*\" matches only weights that belong to groups before it; put the "
                   "narrower patterns first");
    assert_int_equal(sifr_model_freeze(model, "*embed*", NULL), SIFR_OK);
    o.groups = frozen, o.group_count = 1;
    expect_refused(model, &o,
                   "\"*embed*\" matches only weights that are frozen; leave the group out");
    o.groups = hidden;
    sifr_settings settings = settings_of(o);
    assert_int_equal(sifr_engine_create(model, &settings, &engine, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "call sifr_model_group first"));
    assert_int_equal(sifr_model_group(model, &o, NULL), SIFR_OK);
    assert_int_equal(sifr_engine_create(model, &settings, &engine, &error), SIFR_OK);
    sifr_engine_free(engine);
    settings.optimizer = adamw(); /* the model is still divided */
    assert_int_equal(sifr_engine_create(model, &settings, &engine, &error), SIFR_USAGE);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(still_weights),
                                       cmocka_unit_test(factors),
                                       cmocka_unit_test(no_decay),
                                       cmocka_unit_test(layers),
                                       cmocka_unit_test(frozen_units),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(stages_and_ranks),
                                       cmocka_unit_test(narrow_states),
                                       cmocka_unit_test(tiers)};
    return cmocka_run_group_tests(tests, optimizer_setup, optimizer_teardown);
}
