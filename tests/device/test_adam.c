/* Adam over several steps against doubles, its copies in 16 bits to the last bit, and conversions
 * of every 16-bit number.
 * in test_asan */
#include "base/random.h"
#include "device/update_case.h"

enum { COUNT = 70003, STEPS = 5 };

static void convert(device *dev, const void *from, base_dtype a, void *to, base_dtype b,
                    int64_t count) {
    device_call call = {.kernel = DEVICE_CONVERT,
                        .x = {update_vector((void *)(uintptr_t)from, count, a)},
                        .y = update_vector(to, count, b)};
    update_run(dev, &call);
}

/* What hardware does: to nearest even, by exact arithmetic in double. */
static uint16_t rounded(float value, base_dtype dtype) {
    int digits = dtype == BASE_BF16 ? 8 : 11, least = dtype == BASE_BF16 ? -133 : -24, exponent;
    double most = dtype == BASE_BF16 ? 0x1.fep127 : 65504, magnitude = fabs((double)value);
    uint32_t sign = signbit(value) ? 0x8000 : 0, bits = dtype == BASE_BF16 ? 7 : 10;
    uint32_t infinite = dtype == BASE_BF16 ? 0x7f80 : 0x7c00;
    if (magnitude == 0) return (uint16_t)sign;
    frexp(magnitude, &exponent);
    int unit = exponent - digits > least ? exponent - digits : least;
    double whole = nearbyint(ldexp(magnitude, -unit));
    if (ldexp(whole, unit) > most) return (uint16_t)(sign | infinite);
    /* the exponent field counts from the least normal number; a carry moves into it by itself */
    return (uint16_t)(sign | (((uint32_t)(unit - least) << bits) + (uint32_t)whole));
}

typedef struct adam_state {
    float *gradient, *weights, *first, *second;
    void *copy;
} adam_state;

static adam_state make_state(void) {
    adam_state s = {update_block(COUNT * 4, 0x5a), update_block(COUNT * 4, 0x5a),
                    update_block(COUNT * 4, 0x5a), update_block(COUNT * 4, 0x5a),
                    update_block(COUNT * 4, 0x5a)};
    for (uint64_t i = 0; i < COUNT; i++) {
        s.weights[i] = (float)base_normal(1, i);
        s.first[i] = s.second[i] = 0;
    }
    return s;
}

static void free_state(adam_state *s) {
    void *blocks[] = {s->gradient, s->weights, s->first, s->second, s->copy};
    for (int i = 0; i < 5; i++) free(blocks[i]);
}

static void set_gradient(float *gradient, int step) {
    for (uint64_t i = 0; i < COUNT; i++)
        gradient[i] = (float)(base_normal((uint64_t)step + 10, i) * (i % 7 ? 1.0 : 1e-4));
}

static device_call call_of(adam_state *s, base_dtype copy, bool decoupled,
                           const device_step *step) {
    device_call call = {
        .kernel = DEVICE_ADAM,
        .x = {update_vector(s->gradient, COUNT, BASE_FP32)},
        .w = {update_vector(s->weights, COUNT, BASE_FP32), update_vector(s->copy, COUNT, copy)},
        .saved = {update_vector(s->first, COUNT, BASE_FP32),
                  update_vector(s->second, COUNT, BASE_FP32)},
        .step = step};
    if (copy == BASE_NONE) call.w[1] = (device_matrix){0};
    call.attributes.update.epsilon = 1e-8f;
    call.attributes.update.lr_scale = 0.7f;
    call.attributes.update.weight_decay = 0.1f;
    call.attributes.update.decoupled = decoupled;
    return call;
}

/* The formula of kernels/updates.def, from the definition of the update. */
static double reference_update(double *p, double *m, double *v, double gradient,
                               const device_step *s, bool decoupled) {
    double before = *p, b1 = 0.9f, b2 = 0.95f, decay = 0.1f, lr = s->learning_rate * 0.7f;
    double g = gradient * (double)s->update_scale + (decoupled ? 0 : decay * *p);
    *m = b1 * *m + (1 - b1) * g;
    *v = b2 * *v + (1 - b2) * g * g;
    if (decoupled) *p *= 1 - lr * decay;
    *p -= lr / (double)s->correction1 * *m / (sqrt(*v / (double)s->correction2) + (double)1e-8f);
    return fabs(*p - before);
}

static void check_copy(const adam_state *s, base_dtype copy) {
    const uint16_t *half = s->copy;
    for (int64_t i = 0; i < COUNT && copy != BASE_NONE; i++)
        if (half[i] != rounded(s->weights[i], copy))
            fail_msg("copy %lld of %a is %04x, expected %04x", (long long)i, (double)s->weights[i],
                     half[i], rounded(s->weights[i], copy));
    const uint8_t *end = (const uint8_t *)s->copy + (copy == BASE_NONE ? 0 : 2 * COUNT);
    for (int i = 0; i < 32; i++) assert_int_equal(end[i], 0x5a);
}

static void test_adam_steps(void **state) {
    static const base_dtype copies[] = {BASE_NONE, BASE_BF16, BASE_FP16};
    (void)state;
    double *p = malloc(3 * COUNT * sizeof *p), *m = p + COUNT, *v = m + COUNT;
    assert_non_null(p);
    for (int isa = 0; isa < UPDATE_ISAS; isa++) {
        device *dev = update_device(2, update_isas[isa]);
        for (int form = 0; form < 6 && dev; form++) {
            adam_state s = make_state();
            bool decoupled = form % 2;
            double worst = 0;
            for (int i = 0; i < COUNT; i++) p[i] = (double)s.weights[i], m[i] = v[i] = 0;
            for (int t = 1; t <= STEPS; t++) {
                device_step step = update_step(t, 1e-3f);
                device_call call = call_of(&s, copies[form / 2], decoupled, &step);
                set_gradient(s.gradient, t);
                update_run(dev, &call);
                for (int i = 0; i < COUNT; i++) {
                    double moved = reference_update(&p[i], &m[i], &v[i], (double)s.gradient[i],
                                                    &step, decoupled);
                    /* three roundings of the weight a step, some of the update, where moments of
                     * opposite signs may have cancelled */
                    double allowed = t * (ldexp(3 * fabs(p[i]) + 1, -24) + 2e-6 * moved) + 1e-8;
                    worst = fmax(worst, fabs((double)s.weights[i] - p[i]) / allowed);
                }
                check_copy(&s, copies[form / 2]);
            }
            if (!(worst < 1))
                fail_msg("%s, form %d: %g of what is allowed", update_isas[isa], form, worst);
            free_state(&s);
        }
        device_close(dev);
    }
    free(p);
}

/* Any number of threads, and every place of an element in a vector, give the same bits. */
static void test_adam_bits(void **state) {
    static const int threads[] = {1, 2, 3, 8};
    (void)state;
    for (int isa = 0; isa < UPDATE_ISAS; isa++) {
        adam_state first = make_state();
        for (int t = 0; t < 4; t++) {
            device *dev = update_device(threads[t], update_isas[isa]);
            if (!dev) break;
            adam_state s = make_state();
            device_step step = update_step(3, 1e-3f);
            device_call call = call_of(t ? &s : &first, BASE_BF16, true, &step);
            set_gradient(t ? s.gradient : first.gradient, 1);
            update_run(dev, &call);
            if (t) {
                assert_memory_equal(s.weights, first.weights, COUNT * 4);
                assert_memory_equal(s.second, first.second, COUNT * 4);
                assert_memory_equal(s.copy, first.copy, COUNT * 2);
            } else { /* element by element, each of them a tail */
                set_gradient(s.gradient, 1);
                for (int64_t i = COUNT - 40; i < COUNT; i++) {
                    device_call one = call;
                    one.x[0] = update_vector(s.gradient + i, 1, BASE_FP32);
                    one.w[0] = update_vector(s.weights + i, 1, BASE_FP32);
                    one.w[1] = update_vector((uint16_t *)s.copy + i, 1, BASE_BF16);
                    one.saved[0] = update_vector(s.first + i, 1, BASE_FP32);
                    one.saved[1] = update_vector(s.second + i, 1, BASE_FP32);
                    update_run(dev, &one);
                    assert_memory_equal(&s.weights[i], &first.weights[i], 4);
                }
            }
            free_state(&s);
            device_close(dev);
        }
        free_state(&first);
    }
}

/* A gradient in 16 bits does what the same numbers do in fp32. */
static void test_narrow_gradient(void **state) {
    static const base_dtype types[] = {BASE_BF16, BASE_FP16};
    (void)state;
    uint16_t *half = update_block(COUNT * 2, 0x5a);
    for (int number = 0; number < 2 * UPDATE_ISAS; number++) {
        base_dtype type = types[number % 2];
        device *dev = update_device(2, update_isas[number / 2]);
        if (!dev) continue;
        adam_state s = make_state(), other = make_state();
        device_step step = update_step(2, 1e-3f);
        set_gradient(s.gradient, 1);
        convert(dev, s.gradient, BASE_FP32, half, type, COUNT);
        convert(dev, half, type, s.gradient, BASE_FP32, COUNT);
        device_call call = call_of(&s, BASE_BF16, true, &step);
        device_call same = call_of(&other, BASE_BF16, true, &step);
        same.x[0] = update_vector(half, COUNT, type);
        update_run(dev, &call);
        update_run(dev, &same);
        assert_memory_equal(s.weights, other.weights, COUNT * 4);
        assert_memory_equal(s.second, other.second, COUNT * 4);
        free_state(&s);
        free_state(&other);
        device_close(dev);
    }
    free(half);
}

static void test_adam_skips(void **state) {
    (void)state;
    device *dev = update_device(1, NULL);
    adam_state s = make_state(), kept = make_state();
    device_step step = update_step(1, 1e-3f);
    step.update = false;
    set_gradient(s.gradient, 1);
    device_call call = call_of(&s, BASE_BF16, true, &step);
    update_run(dev, &call);
    assert_memory_equal(s.weights, kept.weights, COUNT * 4);
    assert_memory_equal(s.first, kept.first, COUNT * 4);
    assert_memory_equal(s.copy, kept.copy, COUNT * 2);
    free_state(&s);
    free_state(&kept);
    device_close(dev);
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* All 16-bit numbers there and back; what lies half way between neighbours, and beside it. */
static void test_conversions(void **state) {
    static const base_dtype types[] = {BASE_BF16, BASE_FP16};
    (void)state;
    enum { ALL = 0x10000 };
    uint16_t *half = update_block(2 * ALL, 0x5a), *back = update_block(2 * ALL, 0x5a);
    float *single = update_block(4 * ALL, 0x5a), *moved = update_block(4 * ALL, 0x5a);
    for (int isa = 0; isa < UPDATE_ISAS; isa++) {
        device *dev = update_device(2, update_isas[isa]);
        for (int t = 0; t < 2 && dev; t++) {
            for (int i = 0; i < ALL; i++) half[i] = (uint16_t)i;
            convert(dev, half, types[t], single, BASE_FP32, ALL);
            convert(dev, single, BASE_FP32, back, types[t], ALL);
            for (int i = 0; i < ALL; i++) {
                uint32_t infinite = t ? 0x7c00 : 0x7f80, rest = (uint32_t)i & 0x7fff;
                assert_int_equal(isnan(single[i]) != 0, rest > infinite);
                assert_int_equal(isinf(single[i]) != 0, rest == infinite);
                if (isnan(single[i]))
                    assert_true((back[i] & 0x7fffu) > infinite);
                else
                    assert_int_equal(back[i], i);
                if (rest < infinite) assert_int_equal(rounded(single[i], types[t]), i);
            }
            for (int shift = -1; shift <= 1; shift++) {
                for (int i = 0; i < ALL; i++) {
                    bool finite = i < ALL - 1 && isfinite(single[i]) && isfinite(single[i + 1]);
                    double middle = finite ? ((double)single[i] + (double)single[i + 1]) / 2 : 1.0;
                    moved[i] = (float)middle;
                    if (shift) moved[i] = nextafterf(moved[i], shift < 0 ? -INFINITY : INFINITY);
                }
                convert(dev, moved, BASE_FP32, back, types[t], ALL);
                for (int i = 0; i < ALL; i++)
                    if (back[i] != rounded(moved[i], types[t]))
                        fail_msg("%s, %s: %08x became %04x, expected %04x", update_isas[isa],
                                 base_dtype_name(types[t]), bits_of(moved[i]), back[i],
                                 rounded(moved[i], types[t]));
            }
        }
        device_close(dev);
    }
    free(half);
    free(back);
    free(single);
    free(moved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adam_steps),  cmocka_unit_test(test_adam_bits),
        cmocka_unit_test(test_adam_skips),  cmocka_unit_test(test_narrow_gradient),
        cmocka_unit_test(test_conversions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
