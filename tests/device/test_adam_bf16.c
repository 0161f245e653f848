/* Adam with states in bf16: what is stored is one of the two neighbours of what fp32 states would
 * have, by the numbers of (seed, step, kind, element), whoever computes it and wherever it is cut;
 * its mean is the value itself, and a second moment that only shrinks does not stand still. */
#include "base/half.h"
#include "base/random.h"
#include "device/update_case.h"
#include "support/thinned.h"

enum { COUNT = 70003, KINDS = 3 };

/* Weights and both moments, each kept in one of two types. */
typedef struct states {
    uint16_t *half[KINDS]; /* as they begin: values that bf16 has */
    float *single[KINDS];
    float *gradient;
} states;

static states make_states(void) {
    states s;
    s.gradient = update_block(COUNT * 4, 0);
    for (int k = 0; k < KINDS; k++) {
        s.half[k] = update_block(COUNT * 2, 0);
        s.single[k] = update_block(COUNT * 4, 0);
        for (uint64_t i = 0; i < COUNT; i++) {
            double value = base_normal((uint64_t)k + 1, i) * (k ? 0.1 : 1.0);
            if (k == 2) value = value * value + 1e-6;
            s.half[k][i] = base_bf16_from_float((float)value);
            s.single[k][i] = base_bf16_to_float(s.half[k][i]);
        }
    }
    for (uint64_t i = 0; i < COUNT; i++) s.gradient[i] = (float)base_normal(10, i) * 0.1f;
    return s;
}

static void free_states(states *s) {
    for (int k = 0; k < KINDS; k++) {
        free(s->half[k]);
        free(s->single[k]);
    }
    free(s->gradient);
}

static device_matrix state_of(const states *s, int kind, bool narrow, int64_t first,
                              int64_t count) {
    if (narrow) return update_vector(s->half[kind] + first, count, BASE_BF16);
    return update_vector(s->single[kind] + first, count, BASE_FP32);
}

static const device_step the_step = {.seed = 77,
                                     .step = 12,
                                     .update_scale = 0.75f,
                                     .learning_rate = 1e-2f,
                                     .correction1 = 0.5f,
                                     .correction2 = 0.25f,
                                     .update = true};

static void run_adam(device *dev, const states *s, bool masters, bool moments, int64_t first,
                     int64_t count, const device_step *step, float beta2) {
    enum { BEGIN = 3 << 20 }; /* of the model: what comes before */
    device_step numbers = *step;
    numbers.beta1 = 0.9f;
    numbers.beta2 = beta2;
    device_call call = {
        .kernel = DEVICE_ADAM,
        .attributes = {.element = BEGIN + first},
        .x = {update_vector(s->gradient + first, count, BASE_FP32)},
        .w = {state_of(s, 0, masters, first, count)},
        .saved = {state_of(s, 1, moments, first, count), state_of(s, 2, moments, first, count)},
        .step = &numbers};
    call.attributes.update.epsilon = 1e-8f;
    call.attributes.update.lr_scale = 1.0f;
    call.attributes.update.weight_decay = 0.1f;
    call.attributes.update.decoupled = true;
    update_run(dev, &call);
}

/* The number of one element, from its definition (vector/update.h): eight to a counter, two to a
 * word. */
static uint16_t number_of(uint64_t kind, uint64_t element) {
    uint64_t key =
        base_random_key(the_step.seed, (uint64_t)the_step.step, UINT64_C(1) << 63 | kind);
    base_random4 eight = base_philox(key, element / 8, 0);
    return (uint16_t)(eight.v[element % 8 / 2] >> (element % 2 ? 16 : 0));
}

/* From states that bf16 has, fp32 states and bf16 states come to the same values before rounding:
 * so the bits of the second are known. */
static void exact_bits(void **state) {
    (void)state;
    for (int form = 1; form < 4; form++) {
        bool masters = form & 1, moments = form >> 1;
        states want = make_states();
        device *plain = update_device(1, "plain");
        run_adam(plain, &want, false, false, 0, COUNT, &the_step, 0.999f);
        device_close(plain);
        for (int isa = 0; isa < UPDATE_ISAS; isa++) {
            if (thinned_set(update_isas[isa])) continue;
            for (int threads = 1; threads <= 4; threads += 3) {
                device *dev = update_device(threads, update_isas[isa]);
                if (!dev) continue;
                states have = make_states();
                run_adam(dev, &have, masters, moments, 0, COUNT, &the_step, 0.999f);
                for (int k = 0; k < KINDS; k++) {
                    bool narrow = k ? moments : masters;
                    for (uint64_t i = 0; i < COUNT; i++) {
                        uint16_t number = number_of((uint64_t)k, (3 << 20) + i);
                        uint16_t bits = base_bf16_drawn(want.single[k][i], number);
                        if (narrow ? have.half[k][i] == bits
                                   : have.single[k][i] == want.single[k][i])
                            continue;
                        fail_msg("%s, form %d, kind %d, element %d: %04x of %a and %04x",
                                 update_isas[isa], form, k, (int)i, have.half[k][i],
                                 (double)want.single[k][i], number);
                    }
                }
                free_states(&have);
                device_close(dev);
            }
        }
        free_states(&want);
    }
}

/* A vector in pieces, begun anywhere, as ranks, sub-groups and frozen weights cut it. */
static void cut_anywhere(void **state) {
    (void)state;
    static const int64_t cuts[] = {0, 1, 7, 1024, 1031, 2000, 34000, COUNT};
    for (int isa = 0; isa < UPDATE_ISAS; isa++) {
        device *dev = update_device(2, update_isas[isa]);
        if (!dev || thinned_set(update_isas[isa])) {
            device_close(dev);
            continue;
        }
        states whole = make_states(), pieces = make_states();
        run_adam(dev, &whole, true, true, 0, COUNT, &the_step, 0.999f);
        for (size_t c = 0; c + 1 < sizeof cuts / sizeof *cuts; c++)
            run_adam(dev, &pieces, true, true, cuts[c], cuts[c + 1] - cuts[c], &the_step, 0.999f);
        for (int k = 0; k < KINDS; k++)
            assert_memory_equal(whole.half[k], pieces.half[k], COUNT * 2);
        free_states(&whole);
        free_states(&pieces);
        device_close(dev);
    }
}

/* The formula of kernels/updates.def in double, from one element's states. */
static void reference_update(const states *from, int64_t i, double out[KINDS]) {
    const device_step *s = &the_step;
    double p = (double)from->single[0][i], g = (double)(from->gradient[i] * s->update_scale);
    double b1 = (double)0.9f, b2 = (double)0.999f, rate = (double)s->learning_rate;
    out[1] = b1 * (double)from->single[1][i] + (1 - b1) * g;
    out[2] = b2 * (double)from->single[2][i] + (1 - b2) * g * g;
    out[0] = p * (1 - rate * (double)0.1f) - rate / (double)s->correction1 * out[1] /
                                                 (sqrt(out[2] / (double)s->correction2) + 1e-8);
}

/* Over steps, values that lie a given share of the way from one number of bf16 to the next come to
 * their mean: within five standard deviations. To nearest, each of these classes would be off. */
static void unbiased(void **state) {
    (void)state;
    enum { CLASSES = 8, TIMES = 16 };
    device *dev = update_device(2, NULL);
    states start = make_states();
    double off[KINDS][CLASSES] = {0}, variance[KINDS][CLASSES] = {0};
    for (int t = 0; t < TIMES; t++) {
        states s = make_states();
        device_step step = the_step;
        step.step = t;
        run_adam(dev, &s, true, true, 0, COUNT, &step, 0.999f);
        for (int64_t i = 0; i < COUNT; i++) {
            double want[KINDS];
            reference_update(&start, i, want);
            for (int k = 0; k < KINDS; k++) {
                double size = fabs(want[k]), have = fabs((double)base_bf16_to_float(s.half[k][i]));
                int exponent;
                frexp(size, &exponent);
                double unit = ldexp(1, exponent - 8), share = fmod(size, unit) / unit;
                double error = (have - size) / unit;
                /* fp32 itself is off by 2^-15 of the unit or so; more where a sum cancels */
                if (share < 0.01 || share > 0.99 || size < 1e-3) continue;
                if (!(error > -share - 1e-2 && error < 1 - share + 1e-2))
                    fail_msg("kind %d: %a became %a", k, want[k], have);
                off[k][(int)(share * CLASSES)] += error;
                variance[k][(int)(share * CLASSES)] += share * (1 - share);
            }
        }
        free_states(&s);
    }
    for (int k = 0; k < KINDS; k++) {
        for (int c = 0; c < CLASSES; c++) {
            assert_true(variance[k][c] > 1000);
            double deviations = off[k][c] / sqrt(variance[k][c]);
            if (fabs(deviations) > 5)
                fail_msg("kind %d, class %d: off by %g standard deviations", k, c, deviations);
        }
    }
    free_states(&start);
    device_close(dev);
}

/* Without gradients v shrinks by 1 - beta2 = 2^-10 a step, a quarter of what bf16 can show: to
 * nearest it would never move. */
static void small_changes_count(void **state) {
    (void)state;
    enum { STEPS = THINNED(1000) };
    device *dev = update_device(2, NULL);
    states s = make_states();
    double before = 0, after = 0;
    memset(s.gradient, 0, COUNT * 4);
    for (int64_t i = 0; i < COUNT; i++) before += (double)base_bf16_to_float(s.half[2][i]);
    for (int t = 0; t < STEPS; t++) {
        device_step step = the_step;
        step.step = t;
        run_adam(dev, &s, true, true, 0, COUNT, &step, 0.999f);
    }
    for (int64_t i = 0; i < COUNT; i++) after += (double)base_bf16_to_float(s.half[2][i]);
    assert_true(fabs(after / before / pow(0.999, STEPS) - 1) < 0.01);
    free_states(&s);
    device_close(dev);
}

/* What is exact stays, what is infinite or none stays that. */
static void special_values(void **state) {
    (void)state;
    for (uint32_t draw = 0; draw < 0x10000; draw += 0x10000 / THINNED(13107)) {
        for (uint32_t i = 0; i < 0x10000; i += 0x55) {
            uint16_t bits = base_bf16_drawn(base_bf16_to_float((uint16_t)i), (uint16_t)draw);
            bool none = (i & 0x7fff) > 0x7f80;
            assert_int_equal(bits, none ? i | 0x40 : i);
        }
        uint16_t last = base_bf16_drawn(base_float_from_bits(0xffffffffu), (uint16_t)draw);
        uint16_t first = base_bf16_drawn(base_float_from_bits(0x7f800001u), (uint16_t)draw);
        assert_true((last & 0x7fff) > 0x7f80);
        assert_true((first & 0x7fff) > 0x7f80);
        assert_int_equal(base_bf16_drawn(base_float_from_bits(0x3f80ffffu), (uint16_t)draw),
                         draw ? 0x3f81 : 0x3f80);
    }
}

static void refused(void **state) {
    (void)state;
    device *dev = update_device(1, NULL);
    sifr_error error = {0};
    states s = make_states();
    device_call call = {.kernel = DEVICE_ADAM,
                        .x = {update_vector(s.gradient, 64, BASE_FP32)},
                        .w = {state_of(&s, 0, true, 0, 64)},
                        .saved = {state_of(&s, 1, true, 0, 64), state_of(&s, 2, false, 0, 64)}};
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "saved[1]"));
    call.saved[1] = state_of(&s, 2, true, 0, 64);
    call.w[0].dtype = BASE_FP16;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "w[0]"));
    free_states(&s);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_bits),     cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(unbiased),       cmocka_unit_test(small_changes_count),
        cmocka_unit_test(special_values), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
