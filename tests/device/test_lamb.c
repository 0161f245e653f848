/* LAMB's two kernels against their formula in double, and the same bits however a weight is cut. */
#include <stdio.h>

#include "base/exact_sum.h"
#include "base/random.h"
#include "device/update_case.h"

enum { COUNT = 5 * 1024, CUT = 2 * 1024, WORDS = 2 * EXACT_WORDS, STEPS = 3 };

typedef struct lamb_state {
    float *gradient, *weights, *first, *second, *average;
    int64_t sums[2][WORDS];
} lamb_state;

static lamb_state make_state(void) {
    lamb_state s;
    float **all[] = {&s.gradient, &s.weights, &s.first, &s.second, &s.average};
    for (int i = 0; i < 5; i++) *all[i] = update_block(COUNT * sizeof(float), 0);
    for (uint64_t i = 0; i < COUNT; i++) s.weights[i] = (float)base_normal(3, i);
    return s;
}

static void free_state(lamb_state *s) {
    free(s->gradient);
    free(s->weights);
    free(s->first);
    free(s->second);
    free(s->average);
}

static device_call call_of(lamb_state *s, device_kernel kernel, int64_t first, int64_t count,
                           const device_step *step) {
    device_call call = {.kernel = kernel,
                        .x = {update_vector(s->gradient + first, count, BASE_FP32)},
                        .w = {update_vector(s->weights + first, count, BASE_FP32)},
                        .saved = {update_vector(s->first + first, count, BASE_FP32),
                                  update_vector(s->second + first, count, BASE_FP32)},
                        .step = step};
    call.attributes.update.epsilon = 1e-6f;
    call.attributes.update.weight_decay = 0.1f;
    call.attributes.update.lr_scale = 0.7f;
    call.attributes.update.min_coeff = 0.01f;
    call.attributes.update.max_coeff = 10.0f;
    return call;
}

/* `parts` ranges, each with sums of its own. */
static void run_step(device *dev, lamb_state *s, int parts, const device_step *step) {
    static const int64_t borders[] = {0, CUT, COUNT};
    memset(s->sums, 0, sizeof s->sums);
    for (int p = 0; p < parts; p++) {
        int64_t first = parts > 1 ? borders[p] : 0, end = parts > 1 ? borders[p + 1] : COUNT;
        device_call call = call_of(s, DEVICE_LAMB_BEGIN, first, end - first, step);
        call.y = (device_matrix){s->sums[p], 1, WORDS, WORDS, BASE_INT64};
        update_run(dev, &call);
    }
    for (int p = 0; p < parts; p++) {
        int64_t first = parts > 1 ? borders[p] : 0, end = parts > 1 ? borders[p + 1] : COUNT;
        device_call call = call_of(s, DEVICE_LAMB, first, end - first, step);
        call.x[1] = (device_matrix){s->sums, parts, WORDS, WORDS, BASE_INT64};
        call.attributes.update.averages = true;
        call.saved[2] = update_vector(s->average + first, end - first, BASE_FP32);
        update_run(dev, &call);
    }
}

static void set_gradient(lamb_state *s, int t) {
    for (uint64_t i = 0; i < COUNT; i++) s->gradient[i] = (float)base_normal((uint64_t)t + 10, i);
}

typedef struct reference {
    double p[COUNT], m[COUNT], v[COUNT], u[COUNT], a[COUNT];
} reference;

/* Returns the trust ratio. */
static double reference_step(reference *r, const float *gradient, const device_step *s) {
    double b1 = (double)s->beta1, b2 = (double)s->beta2, weights = 0, directions = 0;
    for (int i = 0; i < COUNT; i++) {
        double g = (double)gradient[i] * (double)s->update_scale;
        r->m[i] = b1 * r->m[i] + (1 - b1) * g;
        r->v[i] = b2 * r->v[i] + (1 - b2) * g * g;
        r->u[i] = r->m[i] / (double)s->correction1 /
                      (sqrt(r->v[i] / (double)s->correction2) + (double)1e-6f) +
                  (double)0.1f * r->p[i];
        weights += r->p[i] * r->p[i];
        directions += r->u[i] * r->u[i];
    }
    double trust = weights > 0 && directions > 0 ? sqrt(weights / directions) : 1;
    if (weights > 0 && directions > 0) trust = fmin(fmax(trust, 0.01), 10);
    for (int i = 0; i < COUNT; i++) {
        r->p[i] -= (double)(s->learning_rate * 0.7f) * trust * r->u[i];
        r->a[i] += (double)s->average_share * (r->p[i] - r->a[i]);
    }
    return trust;
}

static void check(const lamb_state *s, const reference *r, int t) {
    for (int i = 0; i < COUNT; i++) {
        const double want[] = {r->p[i], r->m[i], r->v[i], r->a[i]};
        const float have[] = {s->weights[i], s->first[i], s->second[i], s->average[i]};
        for (int k = 0; k < 4; k++)
            if (!(fabs((double)have[k] - want[k]) <= 1e-5 * (1 + fabs(want[k]))))
                fail_msg("step %d: kind %d of %d is %.9g, expected %.9g", t, k, i, (double)have[k],
                         want[k]);
    }
}

/* `scale`: of the first weights; 0: they begin as zeros, with a ratio of 1. */
static void check_steps(device *dev, float scale, double least, double most) {
    lamb_state whole = make_state(), cut = make_state();
    reference *r = calloc(1, sizeof *r);
    for (int i = 0; i < COUNT; i++) {
        whole.weights[i] *= scale, cut.weights[i] *= scale;
        r->p[i] = (double)whole.weights[i];
    }
    for (int t = 1; t <= STEPS; t++) {
        device_step step = update_step(t, 1e-3f);
        step.average_share = t == 1 ? 1.0f : 0.25f;
        set_gradient(&whole, t), set_gradient(&cut, t);
        run_step(dev, &whole, 1, &step);
        run_step(dev, &cut, 2, &step);
        double trust = reference_step(r, whole.gradient, &step);
        if (t == 1) {
            assert_true(trust >= least);
            assert_true(trust <= most);
        }
        check(&whole, r, t);
        assert_memory_equal(whole.weights, cut.weights, COUNT * sizeof(float));
        assert_memory_equal(whole.first, cut.first, COUNT * sizeof(float));
        assert_memory_equal(whole.average, cut.average, COUNT * sizeof(float));
    }
    free(r);
    free_state(&whole);
    free_state(&cut);
}

static void steps(void **state) {
    (void)state;
    for (int i = 0; i < UPDATE_ISAS; i++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            device *dev = update_device(threads, update_isas[i]);
            if (!dev) continue;
            check_steps(dev, 1, 0.5, 2);
            check_steps(dev, 1e-3f, 0.01, 0.01);
            check_steps(dev, 1e3f, 9.8, 10);
            check_steps(dev, 0, 1, 1);
            device_close(dev);
        }
    }
}

/* A step that does not update changes nothing. */
static void skipped(void **state) {
    (void)state;
    device *dev = update_device(1, NULL);
    lamb_state s = make_state(), before = make_state();
    device_step step = update_step(1, 1e-3f);
    step.update = false;
    set_gradient(&s, 1);
    run_step(dev, &s, 2, &step);
    assert_memory_equal(s.weights, before.weights, COUNT * sizeof(float));
    assert_memory_equal(s.first, before.first, COUNT * sizeof(float));
    assert_memory_equal(s.average, before.average, COUNT * sizeof(float));
    free_state(&s);
    free_state(&before);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(skipped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
