/* Betas that change from step to step (OneCycle with cycle_momentum): the engine's weights and
 * moments against a hand-written Adam in double precision, which takes its gradients from a second
 * engine with the first one's weights: with betas of 0 a first moment is the gradient. */
#include "engine/small_model.h"

#include <math.h>

#include "config/schedule/lr_schedule.h"
#include "engine/engine_private.h"

enum { STEPS = 20, LENGTH = 24, SEQUENCES = 2 };

static const config_lr_schedule schedule = {.kind = CONFIG_LR_ONE_CYCLE,
                                            .cycle_min_lr = 1e-3,
                                            .cycle_max_lr = 1e-2,
                                            .first_step_size = 6,
                                            .second_step_size = 8,
                                            .decay_step_size = 4,
                                            .decay_mom_rate = 0.05,
                                            .decay_lr_rate = 0.1,
                                            .cycle_momentum = true,
                                            .cycle_min_mom = 0.7,
                                            .cycle_max_mom = 0.85};

typedef struct reference {
    double *weights, *first, *second; /* of all weights, one after the other */
    bool fixed;                       /* betas stay the options' */
} reference;

static sifr_settings options_of(bool gradients) {
    sifr_settings options = sifr_settings_defaults();
    options.threads = 2;
    options.micro_batch_size = SEQUENCES;
    options.seq_length = LENGTH;
    options.optimizer.weight_decay = gradients ? 0 : 0.05;
    options.gradient_clipping = 0;
    options.optimizer.bias_correction = !gradients;
    if (gradients) options.optimizer.beta1 = options.optimizer.beta2 = 0;
    return options;
}

static int64_t elements_of(const sifr_model *model, size_t weight) {
    return model->weights[weight].rows * model->weights[weight].columns;
}

static reference reference_new(const sifr_engine *engine, bool fixed) {
    const sifr_model *model = engine->model;
    size_t all = (size_t)sifr_model_parameters(model), at = 0;
    reference r = {calloc(all, sizeof(double)), calloc(all, sizeof(double)),
                   calloc(all, sizeof(double)), fixed};
    assert_non_null(r.weights);
    assert_non_null(r.first);
    assert_non_null(r.second);
    for (size_t w = 0; w < model->weight_count; w++) {
        const float *values = engine_state(engine, w, ENGINE_MASTER);
        for (int64_t i = 0; i < elements_of(model, w); i++) r.weights[at++] = values[i];
    }
    return r;
}

static void reference_free(reference *r) {
    free(r->weights);
    free(r->first);
    free(r->second);
}

/* torch.optim.AdamW's step number t, with the betas of this step. */
static void reference_step(reference *r, const sifr_engine *gradients, int t, double lr) {
    const sifr_model *model = gradients->model;
    double b1 = r->fixed ? 0.9 : config_lr_beta1_at(&schedule, t - 2, 0.9);
    double b2 = r->fixed ? 0.999 : config_lr_beta2_at(&schedule, 0.999);
    double c1 = 1 - pow(b1, t), c2 = 1 - pow(b2, t);
    size_t at = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        const float *g = engine_state(gradients, w, ENGINE_STATE1);
        for (int64_t i = 0; i < elements_of(model, w); i++, at++) {
            r->first[at] = b1 * r->first[at] + (1 - b1) * g[i];
            r->second[at] = b2 * r->second[at] + (1 - b2) * g[i] * g[i];
            r->weights[at] *= 1 - lr * 0.05;
            r->weights[at] -= lr / c1 * r->first[at] / (sqrt(r->second[at] / c2) + 1e-8);
        }
    }
}

/* The largest distance of the engine's weights from the reference's. */
static double distance(const sifr_engine *engine, const reference *r, double *moments) {
    double largest = 0;
    size_t at = 0;
    *moments = 0;
    for (size_t w = 0; w < engine->model->weight_count; w++) {
        const float *values = engine_state(engine, w, ENGINE_MASTER);
        const float *first = engine_state(engine, w, ENGINE_STATE1);
        for (int64_t i = 0; i < elements_of(engine->model, w); i++, at++) {
            largest = fmax(largest, fabs(values[i] - r->weights[at]));
            *moments = fmax(*moments, fabs(first[i] - r->first[at]));
        }
    }
    return largest;
}

static void copy_weights(const sifr_engine *from, sifr_engine *to) {
    sifr_error error = {0};
    for (size_t w = 0; w < from->model->weight_count; w++) {
        const float *values = engine_state(from, w, ENGINE_MASTER);
        assert_int_equal(engine_put(to, w, 0, elements_of(from->model, w), values, &error),
                         SIFR_OK);
    }
}

static void one_step(sifr_engine *engine, int64_t step, double lr) {
    int32_t tokens[SEQUENCES * LENGTH], labels[SEQUENCES * LENGTH];
    sifr_step_result result;
    sifr_error error = {0};
    small_batch(step, SEQUENCES * LENGTH, tokens, labels);
    if (sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, lr, &result,
                         &error) != SIFR_OK)
        fail_msg("%s", error.message);
    assert_true(result.updated);
}

static void cycle_against_double(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_model *model = small_model(SMALL_LLAMA);
    sifr_settings trained = options_of(false), oracle = options_of(true);
    sifr_engine *engine = small_engine(model, &trained), *gradients = small_engine(model, &oracle);
    reference moved = reference_new(engine, false), fixed = reference_new(engine, true);
    double lowest = 1, highest = 0, moments, other;
    for (int t = 1; t <= STEPS; t++) {
        double lr = config_lr_at(&schedule, t - 2);
        double beta1 = config_lr_beta1_at(&schedule, t - 2, 0.9);
        lowest = fmin(lowest, beta1);
        highest = fmax(highest, beta1);
        copy_weights(engine, gradients);
        one_step(gradients, t, 0);
        assert_int_equal(
            sifr_engine_set_betas(engine, beta1, config_lr_beta2_at(&schedule, 0.999), &error),
            SIFR_OK);
        one_step(engine, t, lr);
        reference_step(&moved, gradients, t, lr);
        reference_step(&fixed, gradients, t, lr);
    }
    assert_true(lowest == 0.7);
    assert_true(highest > 0.9); /* beyond the cycle */
    double near = distance(engine, &moved, &moments), far = distance(engine, &fixed, &other);
    if (!(near < 2e-6)) fail_msg("weights: %g off", near);
    if (!(moments < 2e-6)) fail_msg("first moments: %g off", moments);
    if (!(far > 1e-3)) fail_msg("betas of %g to %g make no difference: %g", lowest, highest, far);
    reference_free(&fixed);
    reference_free(&moved);
    sifr_engine_free(gradients);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

/* Betas that are set to what they are change no bit; wrong ones are refused and change nothing. */
static void the_same_betas(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_model *model = small_model(SMALL_TIED);
    sifr_settings options = options_of(false);
    sifr_engine *plain = small_engine(model, &options), *told = small_engine(model, &options);
    static const double wrong[][2] = {
        {1, 0.9}, {-0.1, 0.9}, {0.9, 0.99999998}, {NAN, 0.9}, {0.9, NAN}};
    for (int t = 1; t <= 3; t++) {
        assert_int_equal(sifr_engine_set_betas(told, 0.9, 0.999, &error), SIFR_OK);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            assert_int_equal(sifr_engine_set_betas(told, wrong[i][0], wrong[i][1], &error),
                             SIFR_USAGE);
        assert_non_null(strstr(error.message, "optimizer.beta2: nan is not in [0, 0.99999997]"));
        one_step(plain, t, 1e-3);
        one_step(told, t, 1e-3);
    }
    for (size_t w = 0; w < model->weight_count; w++)
        assert_memory_equal(engine_state(plain, w, ENGINE_MASTER),
                            engine_state(told, w, ENGINE_MASTER),
                            (size_t)elements_of(model, w) * sizeof(float));
    sifr_engine_free(told);
    sifr_engine_free(plain);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycle_against_double),
        cmocka_unit_test(the_same_betas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
