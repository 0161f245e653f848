/* Updates of the optimizers beside Adam, whose tests are test_adam, test_adam_bf16 and
 * test_adam_8bit: several steps against doubles on each instruction set, and the same bits wherever
 * a vector is cut. in test_asan */
#include "base/half.h"
#include "base/random.h"
#include "device/update_case.h"

enum { COUNT = 20003, STEPS = 4, KINDS = 1 + DEVICE_SAVED };
enum { UPDATES = DEVICE_UPDATE_NUMBER(DEVICE_ADAM_8BIT) }; /* those before it */

/* Kinds: weights, then states. */
typedef struct vectors {
    float *gradient, *kinds[KINDS];
    uint16_t *copy;
} vectors;

static vectors make_vectors(void) {
    vectors v = {update_block(COUNT * 4, 0), {NULL}, update_block(COUNT * 2, 0)};
    for (int k = 0; k < KINDS; k++) v.kinds[k] = update_block(COUNT * 4, 0);
    for (uint64_t i = 0; i < COUNT; i++) v.kinds[0][i] = (float)base_normal(1, i);
    return v;
}

static void free_vectors(vectors *v) {
    for (int k = 0; k < KINDS; k++) free(v->kinds[k]);
    free(v->gradient);
    free(v->copy);
}

static void set_gradient(float *gradient, int step) {
    for (uint64_t i = 0; i < COUNT; i++)
        gradient[i] = (float)(base_normal((uint64_t)step + 10, i) * (i % 7 ? 1.0 : 1e-3));
}

static void run(device *dev, const vectors *v, device_kernel kernel, bool nesterov, int64_t first,
                int64_t count, const device_step *step) {
    device_call call = {.kernel = kernel,
                        .x = {update_vector(v->gradient + first, count, BASE_FP32)},
                        .w = {update_vector(v->kinds[0] + first, count, BASE_FP32),
                              update_vector(v->copy + first, count, BASE_BF16)},
                        .step = step};
    for (int s = 0; s < device_update_states(kernel); s++)
        call.saved[s] = update_vector(v->kinds[1 + s] + first, count, BASE_FP32);
    call.attributes.update.epsilon = 1e-6f;
    call.attributes.update.lr_scale = 0.7f;
    call.attributes.update.weight_decay = 0.1f;
    call.attributes.update.decoupled = true;
    call.attributes.update.nesterov = nesterov;
    update_run(dev, &call);
}

static double sign_of(double value) {
    return value > 0 ? 1 : value < 0 ? -1 : 0;
}

/* The formulas of kernels/updates.def; returns what the copy becomes. */
static double reference(device_kernel kernel, bool nesterov, double *k, double gradient,
                        const device_step *s) {
    double lr = (double)(s->learning_rate * 0.7f), decay = (double)0.1f, eps = (double)1e-6f;
    double b1 = (double)s->beta1, b2 = (double)s->beta2, share = (double)s->share;
    double g = gradient * (double)s->update_scale, l2 = g + decay * k[0], y;
    switch (kernel) {
    case DEVICE_AMSGRAD:
        k[1] = b1 * k[1] + (1 - b1) * g;
        k[2] = b2 * k[2] + (1 - b2) * g * g;
        k[3] = fmax(k[3], k[2]);
        k[0] = k[0] * (1 - lr * decay) -
               lr / (double)s->correction1 * k[1] / (sqrt(k[3] / (double)s->correction2) + eps);
        return k[0];
    case DEVICE_SGD:
        return k[0] -= lr * l2;
    case DEVICE_MOMENTUM:
        k[1] = b1 * k[1] + share * l2;
        return k[0] -= lr * (nesterov ? l2 + b1 * k[1] : k[1]);
    case DEVICE_ADAGRAD:
        k[1] += l2 * l2;
        return k[0] -= lr * l2 / (sqrt(k[1]) + eps);
    case DEVICE_LION:
        k[0] = k[0] * (1 - lr * decay) - lr * sign_of(b1 * k[1] + (1 - b1) * g);
        k[1] = b2 * k[1] + (1 - b2) * g;
        return k[0];
    case DEVICE_SCHEDULE_FREE:
        k[2] = b2 * k[2] + (1 - b2) * g * g;
        y = k[0] + (1 - b1) * k[1];
        y = k[1] - lr * (g / (sqrt(k[2] / (double)s->correction2) + eps) + decay * y);
        k[0] += share * y;
        k[1] = (1 - share) * y;
        return k[0] + (1 - b1) * k[1];
    default:
        fail_msg("no reference of %s", device_kernel_name(kernel));
        return 0;
    }
}

static void check_steps(device *dev, device_kernel kernel, bool nesterov) {
    vectors v = make_vectors();
    double(*want)[KINDS] = calloc(COUNT, sizeof *want);
    assert_non_null(want);
    for (int i = 0; i < COUNT; i++) want[i][0] = (double)v.kinds[0][i];
    for (int t = 1; t <= STEPS; t++) {
        device_step step = update_step(t, 1e-2f);
        set_gradient(v.gradient, t);
        run(dev, &v, kernel, nesterov, 0, COUNT, &step);
        for (int i = 0; i < COUNT; i++) {
            double shown = reference(kernel, nesterov, want[i], (double)v.gradient[i], &step);
            double copy = (double)base_bf16_to_float(v.copy[i]);
            for (int k = 0; k < 1 + device_update_states(kernel); k++) {
                double off = fabs((double)v.kinds[k][i] - want[i][k]);
                if (!(off <= 1e-5 * (1 + fabs(want[i][k]))))
                    fail_msg("%s, %s, step %d: kind %d of %d is %.9g, expected %.9g",
                             device_kernel_name(kernel), device_isa(dev), t, k, i,
                             (double)v.kinds[k][i], want[i][k]);
            }
            assert_true(fabs(copy - shown) <= 0.0041 * fabs(shown) + 1e-5);
        }
    }
    free(want);
    free_vectors(&v);
}

/* Element by element, each of them a tail, and in two pieces. */
static void check_cuts(device *dev, device_kernel kernel, bool nesterov) {
    vectors whole = make_vectors(), cut = make_vectors();
    device_step step = update_step(2, 1e-2f);
    for (int t = 1; t <= 2; t++) {
        set_gradient(whole.gradient, t);
        set_gradient(cut.gradient, t);
        run(dev, &whole, kernel, nesterov, 0, COUNT, &step);
        run(dev, &cut, kernel, nesterov, 0, 9216, &step);
        run(dev, &cut, kernel, nesterov, 9216, COUNT - 9216 - 40, &step);
        for (int i = COUNT - 40; i < COUNT; i++) run(dev, &cut, kernel, nesterov, i, 1, &step);
    }
    for (int k = 0; k < 1 + device_update_states(kernel); k++)
        assert_memory_equal(whole.kinds[k], cut.kinds[k], COUNT * 4);
    assert_memory_equal(whole.copy, cut.copy, COUNT * 2);
    free_vectors(&whole);
    free_vectors(&cut);
}

static void every_kernel(void (*check)(device *dev, device_kernel kernel, bool nesterov)) {
    for (int isa = 0; isa < UPDATE_ISAS; isa++) {
        device *dev = update_device(2, update_isas[isa]);
        if (!dev) continue;
        for (int k = 1; k < UPDATES; k++) check(dev, (device_kernel)(DEVICE_ADAM + k), k % 2);
        check(dev, DEVICE_MOMENTUM, false);
        device_close(dev);
    }
}

static void steps(void **state) {
    (void)state;
    every_kernel(check_steps);
}

static void cuts(void **state) {
    (void)state;
    every_kernel(check_cuts);
}

/* A step that does not update leaves all as it was. */
static void skips(void **state) {
    (void)state;
    device *dev = NULL;
    vectors v = make_vectors(), kept = make_vectors();
    device_step step = update_step(1, 1e-2f);
    step.update = false;
    set_gradient(v.gradient, 1);
    assert_int_equal(device_open_cpu(1, NULL, &dev, NULL), SIFR_OK);
    for (int k = 0; k < UPDATES; k++)
        run(dev, &v, (device_kernel)(DEVICE_ADAM + k), false, 0, COUNT, &step);
    for (int k = 0; k < KINDS; k++) assert_memory_equal(v.kinds[k], kept.kinds[k], COUNT * 4);
    assert_memory_equal(v.copy, kept.copy, COUNT * 2);
    device_close(dev);
    free_vectors(&v);
    free_vectors(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(cuts),
                                       cmocka_unit_test(skips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
