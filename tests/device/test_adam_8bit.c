/* Adam with moments in 8 bits: codes are the nearest ones, steps are Adam's on what codes stand
 * for, on each instruction set, and bits do not depend on where a vector is cut. in test_asan */
#include "base/code8.h"
#include "base/random.h"
#include "device/update_case.h"

enum { COUNT = 20003, SCALES = (COUNT + DEVICE_CODED - 1) / DEVICE_CODED, STEPS = 5 };

typedef struct vectors {
    float *gradient, *weights, *scales[2];
    uint8_t *codes[2];
    uint16_t *copy;
} vectors;

static vectors make_vectors(void) {
    vectors v = {.gradient = update_block(COUNT * 4, 0),
                 .weights = update_block(COUNT * 4, 0),
                 .copy = update_block(COUNT * 2, 0)};
    for (int k = 0; k < 2; k++)
        v.scales[k] = update_block(SCALES * 4, 0), v.codes[k] = update_block(COUNT, 0);
    for (uint64_t i = 0; i < COUNT; i++) v.weights[i] = (float)base_normal(1, i);
    return v;
}

static void free_vectors(vectors *v) {
    for (int k = 0; k < 2; k++) free(v->scales[k]), free(v->codes[k]);
    free(v->gradient);
    free(v->weights);
    free(v->copy);
}

/* Some blocks are zeros, some gradients far smaller than others. */
static void set_gradient(float *gradient, int step) {
    for (uint64_t i = 0; i < COUNT; i++) {
        double size = i / DEVICE_CODED == 3 ? 0.0 : i % 7 ? 1.0 : 1e-5;
        gradient[i] = (float)(base_normal((uint64_t)step + 10, i) * size);
    }
}

static void run(device *dev, const vectors *v, int64_t first, int64_t count,
                const device_step *step) {
    int64_t scales = (count + DEVICE_CODED - 1) / DEVICE_CODED;
    device_call call = {.kernel = DEVICE_ADAM_8BIT,
                        .x = {update_vector(v->gradient + first, count, BASE_FP32)},
                        .w = {update_vector(v->weights + first, count, BASE_FP32),
                              update_vector(v->copy + first, count, BASE_BF16)},
                        .step = step};
    for (int k = 0; k < 2; k++) {
        call.saved[k] = update_vector(v->codes[k] + first, count, BASE_UINT8);
        call.saved[2 + k] = update_vector(v->scales[k] + first / DEVICE_CODED, scales, BASE_FP32);
    }
    call.attributes.update.epsilon = 1e-6f;
    call.attributes.update.lr_scale = 1.0f;
    call.attributes.update.weight_decay = 0.1f;
    call.attributes.update.decoupled = true;
    update_run(dev, &call);
}

/* Stored codes are counted from that of 0. */
static float value_of(const base_code8 *map, uint8_t stored) {
    return map->values[(uint8_t)(stored + map->zero)];
}

static int nearest(const base_code8 *map, double x) {
    int best = 0;
    for (int c = 1; c < BASE_CODES; c++) {
        if (fabs(x - (double)map->values[c]) < fabs(x - (double)map->values[best])) best = c;
    }
    return best;
}

static void expect_code(const base_code8 *map, float x) {
    int have = base_code8_of(map, x), want = nearest(map, (double)x);
    double off = fabs((double)x - (double)map->values[have]);
    double least = fabs((double)x - (double)map->values[want]);
    if (off > least + 1e-7 * fabs((double)x)) /* bounds are rounded to fp32 */
        fail_msg("%.9g has code %d, expected %d", (double)x, have, want);
}

static void codes(void **state) {
    (void)state;
    const base_code8 *const maps[] = {&base_code8_signed, &base_code8_unsigned};
    for (int m = 0; m < 2; m++) {
        for (int c = 0; c < BASE_CODES; c++) {
            assert_int_equal(base_code8_of(maps[m], maps[m]->values[c]), c);
            if (c == 0) continue;
            assert_true(maps[m]->values[c - 1] < maps[m]->values[c]);
            float bound = maps[m]->bounds[c];
            assert_int_equal(base_code8_of(maps[m], bound), c - 1);
            assert_int_equal(base_code8_of(maps[m], nextafterf(bound, 2)), c);
        }
        for (uint64_t i = 0; i < 20000; i++) {
            float x = (float)pow(10, -8.0 * (double)i / 20000);
            expect_code(maps[m], x);
            if (m == 0) expect_code(maps[m], -x);
        }
        assert_int_equal(base_code8_of(maps[m], 0), maps[m]->zero);
    }
}

/* Of a block: the moments in doubles, from codes; the step; codes of the new moments, which may be
 * the next ones where the moment is near a bound. */
static void check_block(const vectors *before, const vectors *after, int64_t first, int64_t count,
                        const device_step *s) {
    const base_code8 *const maps[] = {&base_code8_signed, &base_code8_unsigned};
    double moments[2][DEVICE_CODED], largest[2] = {0};
    int64_t scale = first / DEVICE_CODED;
    for (int64_t i = 0; i < count; i++) {
        double g = (double)before->gradient[first + i] * (double)s->update_scale, old[2];
        for (int k = 0; k < 2; k++) {
            double beta = (double)(k ? s->beta2 : s->beta1);
            old[k] = (double)value_of(maps[k], before->codes[k][first + i]) *
                     (double)before->scales[k][scale];
            moments[k][i] = beta * old[k] + (1 - beta) * (k ? g * g : g);
            largest[k] = fmax(largest[k], fabs(moments[k][i]));
        }
        double rate = (double)s->learning_rate, root = sqrt(moments[1][i]);
        double p = (double)before->weights[first + i] * (1 - rate * (double)0.1f);
        p -= rate / (double)s->correction1 * moments[0][i] /
             (root / sqrt((double)s->correction2) + (double)1e-6f);
        if (!(fabs(p - (double)after->weights[first + i]) <= 1e-5 * (1 + fabs(p))))
            fail_msg("weight %d is %.9g, expected %.9g", (int)(first + i),
                     (double)after->weights[first + i], p);
    }
    for (int k = 0; k < 2; k++) {
        double have = (double)after->scales[k][scale];
        assert_true(fabs(have - largest[k]) <= 1e-5 * largest[k]);
        for (int64_t i = 0; i < count && have > 0; i++) {
            double x = moments[k][i] / have;
            double off = fabs(x - (double)value_of(maps[k], after->codes[k][first + i]));
            double least = fabs(x - (double)maps[k]->values[nearest(maps[k], x)]);
            assert_true(off <= least + 1e-5 * fabs(x) + 1e-6);
        }
    }
}

static void copy_states(vectors *to, const vectors *from) {
    memcpy(to->gradient, from->gradient, COUNT * 4);
    memcpy(to->weights, from->weights, COUNT * 4);
    for (int k = 0; k < 2; k++) {
        memcpy(to->scales[k], from->scales[k], SCALES * 4);
        memcpy(to->codes[k], from->codes[k], COUNT);
    }
}

static void steps(void **state) {
    (void)state;
    for (int isa = 0; isa < UPDATE_ISAS; isa++) {
        device *dev = update_device(2, update_isas[isa]);
        if (!dev) continue;
        vectors v = make_vectors(), before = make_vectors();
        for (int t = 1; t <= STEPS; t++) {
            device_step step = update_step(t, 1e-2f);
            set_gradient(v.gradient, t);
            copy_states(&before, &v);
            run(dev, &v, 0, COUNT, &step);
            for (int64_t at = 0; at < COUNT; at += DEVICE_CODED)
                check_block(&before, &v, at, COUNT - at < DEVICE_CODED ? COUNT - at : DEVICE_CODED,
                            &step);
        }
        assert_true(v.scales[0][3] == 0);
        assert_true(v.scales[0][2] > 0);
        free_vectors(&v);
        free_vectors(&before);
        device_close(dev);
    }
}

static void cuts(void **state) {
    (void)state;
    for (int isa = 0; isa < UPDATE_ISAS; isa++) {
        device *dev = update_device(2, update_isas[isa]);
        if (!dev) continue;
        vectors whole = make_vectors(), cut = make_vectors();
        for (int t = 1; t <= 3; t++) {
            device_step step = update_step(t, 1e-2f);
            set_gradient(whole.gradient, t);
            set_gradient(cut.gradient, t);
            run(dev, &whole, 0, COUNT, &step);
            for (int64_t at = 0; at < COUNT; at += DEVICE_BLOCK)
                run(dev, &cut, at, COUNT - at < DEVICE_BLOCK ? COUNT - at : DEVICE_BLOCK, &step);
        }
        for (int k = 0; k < 2; k++) {
            assert_memory_equal(whole.codes[k], cut.codes[k], COUNT);
            assert_memory_equal(whole.scales[k], cut.scales[k], SCALES * 4);
        }
        assert_memory_equal(whole.weights, cut.weights, COUNT * 4);
        assert_memory_equal(whole.copy, cut.copy, COUNT * 2);
        free_vectors(&whole);
        free_vectors(&cut);
        device_close(dev);
    }
}

/* A step that does not update leaves all as it was, and a wrong operand is refused by name. */
static void skips(void **state) {
    (void)state;
    device *dev = NULL;
    vectors v = make_vectors(), kept = make_vectors();
    device_step step = update_step(1, 1e-2f);
    sifr_error error = {0};
    step.update = false;
    set_gradient(v.gradient, 1);
    assert_int_equal(device_open_cpu(1, NULL, &dev, NULL), SIFR_OK);
    run(dev, &v, 0, COUNT, &step);
    assert_memory_equal(v.weights, kept.weights, COUNT * 4);
    assert_memory_equal(v.codes[0], kept.codes[0], COUNT);
    assert_memory_equal(v.scales[1], kept.scales[1], SCALES * 4);
    device_call call = {.kernel = DEVICE_ADAM_8BIT,
                        .x = {update_vector(v.gradient, 1024, BASE_FP32)},
                        .w = {update_vector(v.weights, 1024, BASE_FP32)},
                        .saved = {update_vector(v.codes[0], 1024, BASE_UINT8),
                                  update_vector(v.codes[1], 1024, BASE_UINT8),
                                  update_vector(v.scales[0], 4, BASE_FP32),
                                  update_vector(v.scales[1], 5, BASE_FP32)},
                        .step = &step};
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "saved[3]"));
    device_close(dev);
    free_vectors(&v);
    free_vectors(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(codes), cmocka_unit_test(steps),
                                       cmocka_unit_test(cuts), cmocka_unit_test(skips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
