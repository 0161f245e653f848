/* CUDA kernels on elements and flat vectors, over the shim: the bits of the CPU's sets that have
 * fused multiply-adds, for numbers of all sizes, whatever the order of threads.
 * in test_asan */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "base/random.h"
#include "device/device.h"
#include "support/cuda/op_gpu.h"
#include "support/cuda/shim_run.h"

enum { SETS = 2, ORDERS = 4, TYPES = 3, OPERANDS = 7 };

static const base_dtype types[TYPES] = {BASE_FP32, BASE_BF16, BASE_FP16};
static device *cpus[SETS], *shims[ORDERS];

/* The first one is over the shim also where a GPU is tested: so that has its bits. */
static sifr_status open_order(int order, device **out, sifr_error *error) {
    return order == SHIM_UP ? device_open_shim(order, out, error) : op_gpu_open(order, out, error);
}

static int open_devices(void **state) {
    static const char *const sets[SETS] = {"avx2", "avx512"};
    static const int orders[ORDERS] = {SHIM_UP, SHIM_DOWN, 2, 5};
    sifr_error error = {0};
    int found = 0;
    (void)state;
    for (int s = 0; s < SETS; s++)
        found += device_open_cpu(1, sets[s], &cpus[s], &error) == SIFR_OK;
    for (int o = 0; o < ORDERS; o++)
        if (open_order(orders[o], &shims[o], &error) != SIFR_OK) return -1;
    if (found == 0) print_message("this processor has no set with fused multiply-adds\n");
    return 0;
}

static int close_devices(void **state) {
    (void)state;
    for (int s = 0; s < SETS; s++) device_close(cpus[s]);
    for (int o = 0; o < ORDERS; o++) device_close(shims[o]);
    return 0;
}

static void run(device *dev, device_call *call) {
    sifr_error error = {0};
    if (device_prepare(dev, call, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (device_run(dev, call, &error) != SIFR_OK) fail_msg("%s", error.message);
}

/* Of all sizes, near the places where functions change their way, and now and then none. */
static float some_value(uint64_t key, uint64_t element) {
    static const float places[] = {0.0f,      -0.0f,   0.625f,      -0.625f,  88.0f,   -87.3f,
                                   1e-40f,    -1e-45f, 1e30f,       -1e30f,   65504.f, INFINITY,
                                   -INFINITY, NAN,     0x1.fep127f, 0x1p-126f};
    base_random4 r = base_philox(key, element, 0);
    if (r.v[0] % 16 == 0) return places[r.v[1] % (sizeof places / sizeof *places)];
    float value = (base_uniform(r.v[1]) * 2.0f - 1.0f) * (r.v[2] % 4 ? 4.0f : 100.0f);
    return r.v[0] % 16 == 1 ? ldexpf(value, -(int)(r.v[3] % 120)) : value;
}

static void set_value(const device_matrix *m, int64_t at, float value) {
    if (m->dtype == BASE_UINT8)
        ((uint8_t *)m->data)[at] = (uint8_t)(base_float_to_bits(value) >> 11);
    else if (m->dtype == BASE_FP32)
        ((float *)m->data)[at] = value;
    else if (m->dtype == BASE_BF16)
        ((uint16_t *)m->data)[at] = base_bf16_from_float(value);
    else
        ((uint16_t *)m->data)[at] = base_half_from_float(value);
}

static bool is_none(const device_matrix *m, int64_t at) {
    if (m->dtype == BASE_UINT8) return false;
    if (m->dtype == BASE_FP32) return isnan(((const float *)m->data)[at]);
    if (m->dtype == BASE_FP64) return isnan(((const double *)m->data)[at]);
    uint16_t bits = ((const uint16_t *)m->data)[at];
    return (bits & 0x7fff) > (m->dtype == BASE_BF16 ? 0x7f80 : 0x7c00);
}

/* The operands of a call and their memory: exactly as much as they span. */
typedef struct operands {
    device_matrix *of[OPERANDS];
    char *memory[OPERANDS];
    size_t bytes[OPERANDS];
    int count;
} operands;

static size_t size_of(const device_matrix *m) {
    return (size_t)base_dtype_bytes(m->dtype);
}

static void make_operand(operands *o, device_matrix *m, int64_t rows, int64_t columns, int64_t gap,
                         base_dtype type) {
    *m = (device_matrix){NULL, rows, columns, columns + gap, type};
    size_t before = gap ? size_of(m) : 0; /* so a slice is not aligned */
    size_t bytes = before + (size_t)((rows - 1) * m->stride + columns) * size_of(m);
    char *memory = malloc(bytes);
    assert_non_null(memory);
    memset(memory, 0x5a, bytes);
    m->data = memory + before;
    for (int64_t r = 0; r < rows && type != BASE_FP64; r++)
        for (int64_t k = 0; k < columns; k++)
            set_value(m, r * m->stride + k,
                      some_value((uint64_t)o->count + 17, (uint64_t)(r * columns + k)));
    o->of[o->count] = m;
    o->memory[o->count] = memory;
    o->bytes[o->count++] = bytes;
}

static void free_operands(operands *o) {
    for (int i = 0; i < o->count; i++) free(o->memory[i]);
}

typedef char *copies[OPERANDS];

static void keep(const operands *o, copies out) {
    for (int i = 0; i < o->count; i++) {
        out[i] = malloc(o->bytes[i]);
        assert_non_null(out[i]);
        memcpy(out[i], o->memory[i], o->bytes[i]);
    }
}

static void put_back(const operands *o, copies from) {
    for (int i = 0; i < o->count; i++) memcpy(o->memory[i], from[i], o->bytes[i]);
}

static void drop(const operands *o, copies c) {
    for (int i = 0; i < o->count; i++) free(c[i]);
}

/* Which NaN a NaN is may differ: chips make their own. */
static void compare(const operands *o, copies want, const char *name, const char *where) {
    for (int i = 0; i < o->count; i++) {
        const device_matrix *m = o->of[i];
        size_t first = (size_t)((char *)m->data - o->memory[i]), size = size_of(m);
        device_matrix other = *m;
        other.data = want[i] + first;
        if (memcmp(o->memory[i], want[i], o->bytes[i]) == 0) continue;
        assert_memory_equal(o->memory[i], want[i], first);
        for (size_t at = 0; at < (o->bytes[i] - first) / size; at++) {
            if (memcmp((char *)m->data + at * size, (char *)other.data + at * size, size) == 0)
                continue;
            if (is_none(m, (int64_t)at) && is_none(&other, (int64_t)at)) continue;
            uint64_t got = 0, wanted = 0;
            memcpy(&got, (char *)m->data + at * size, size);
            memcpy(&wanted, (char *)other.data + at * size, size);
            fail_msg("%s, %s, %s: operand %d[%zu] is %llx, the CPU has %llx", name, where,
                     base_dtype_name(m->dtype), i, at, (unsigned long long)got,
                     (unsigned long long)wanted);
        }
    }
}

/* Runs a call on all devices from the same memory. */
static void same_bits(device_call *call, operands *o, const char *name) {
    copies before, want;
    bool known = false;
    keep(o, before);
    for (int s = 0; s < SETS; s++) {
        if (!cpus[s]) continue;
        put_back(o, before);
        run(cpus[s], call);
        if (known) compare(o, want, name, device_isa(cpus[s]));
        if (!known) keep(o, want);
        known = true;
    }
    for (int i = 0; i < ORDERS; i++) {
        put_back(o, before);
        run(shims[i], call);
        if (!known) keep(o, want);
        known = true;
        compare(o, want, name, device_isa(shims[i]));
    }
    drop(o, before);
    drop(o, want);
}

static const device_step the_step = {.seed = 7, .step = 3, .training = true};

typedef struct element_case {
    const char *name;
    device_kernel kernel;
    int inputs; /* x[0], and x[1] */
    bool backward;
    int variant;
    int results; /* gradients; 0: y */
    bool in_place;
} element_case;

static const element_case element_cases[] = {
#define DEVICE_ACTIVATION(NAME, name, number)                                                      \
    {#name, DEVICE_##NAME, 1, false, 0, 0, false},                                                 \
        {#name " backward", DEVICE_##NAME##_BACKWARD, 1, true, 0, 1, false},
#define DEVICE_ACTIVATION_FORMS(NAME, name, which, one, other)                                     \
    {#one, DEVICE_##NAME, 1, false, 0, 0, false}, {#other, DEVICE_##NAME, 1, false, 1, 0, false},  \
        {#one " backward", DEVICE_##NAME##_BACKWARD, 1, true, 0, 1, false},                        \
        {#other " backward", DEVICE_##NAME##_BACKWARD, 1, true, 1, 1, false},
#include "device/kernels.def"
    {"silu gate", DEVICE_SILU_GATE, 2, false, 0, 0, false},
    {"silu gate backward", DEVICE_SILU_GATE_BACKWARD, 2, true, 0, 2, false},
    {"gelu gate", DEVICE_GELU_GATE, 2, false, 0, 0, false},
    {"gelu gate, exact", DEVICE_GELU_GATE, 2, false, 1, 0, false},
    {"gelu gate backward", DEVICE_GELU_GATE_BACKWARD, 2, true, 0, 2, false},
    {"gelu gate backward, exact", DEVICE_GELU_GATE_BACKWARD, 2, true, 1, 2, false},
    {"add", DEVICE_ADD, 2, false, 0, 0, false},
    {"add in place", DEVICE_ADD, 2, false, 0, 0, true},
    {"multiply", DEVICE_MULTIPLY, 2, false, 0, 0, false},
    {"multiply backward", DEVICE_MULTIPLY_BACKWARD, 2, true, 0, 2, false},
    {"scale", DEVICE_SCALE, 1, false, 0, 0, false},
    {"scale in place, rounded", DEVICE_SCALE, 1, false, 1, 0, true},
    {"scale backward", DEVICE_SCALE_BACKWARD, 0, true, 0, 1, false},
    {"scale by a weight", DEVICE_SCALE_BY, 1, false, 0, 0, false},
    {"scale by a weight, in place", DEVICE_SCALE_BY, 1, false, 0, 0, true},
    {"scale by a weight, backward", DEVICE_SCALE_BY_BACKWARD, 0, true, 0, 1, false},
    {"dropout", DEVICE_DROPOUT, 1, false, 0, 0, false},
    {"dropout, element 5", DEVICE_DROPOUT, 1, false, 5, 0, false},
    {"dropout, element 6", DEVICE_DROPOUT, 1, false, 6, 0, true},
    {"dropout, element 7", DEVICE_DROPOUT, 1, false, 7, 0, false},
    {"dropout backward", DEVICE_DROPOUT_BACKWARD, 0, true, 0, 1, false},
    {"accumulate", DEVICE_ACCUMULATE, 1, false, 0, 0, false},
};

static void set_attributes(const element_case *c, device_attributes *a) {
    a->op = 11;
    a->micro_batch = 5;
    switch (c->kernel) {
    case DEVICE_RELU:
    case DEVICE_RELU_BACKWARD:
        a->relu.squared = c->variant;
        return;
    case DEVICE_SWISH:
    case DEVICE_SWISH_BACKWARD:
        a->swish.slope = 1.702f;
        return;
    case DEVICE_CLIP:
    case DEVICE_CLIP_BACKWARD:
        a->clip.limit = 0.4375f;
        return;
    case DEVICE_SCALE:
    case DEVICE_SCALE_BACKWARD:
        a->scale.factor = 33.9558537f;
        a->scale.round_factor = c->variant;
        return;
    case DEVICE_DROPOUT:
    case DEVICE_DROPOUT_BACKWARD:
        a->element = c->variant;
        a->dropout.probability = 0.25f;
        return;
    default:
        a->gelu.exact = c->variant;
    }
}

/* `skipped`: a gradient that is not wanted, or -1. */
static void run_element_case(const element_case *c, int64_t rows, int64_t columns, int64_t gap,
                             base_dtype type, bool add, int skipped, bool training) {
    device_step step = the_step;
    device_call call = {.kernel = c->kernel, .step = &step};
    operands o = {0};
    step.training = training;
    set_attributes(c, &call.attributes);
    for (int i = 0; i < c->inputs; i++) make_operand(&o, &call.x[i], rows, columns, gap, type);
    if (c->kernel == DEVICE_SCALE_BY || c->kernel == DEVICE_SCALE_BY_BACKWARD)
        make_operand(&o, &call.w[0], 1, 1, 0, type);
    if (c->backward) make_operand(&o, &call.dy, rows, columns, gap, type);
    for (int i = 0; i < c->results; i++) {
        call.accumulate[i] = add;
        if (i != skipped) make_operand(&o, &call.dx[i], rows, columns, gap, type);
    }
    if (!c->backward && !c->in_place) make_operand(&o, &call.y, rows, columns, gap, type);
    if (!c->backward && c->in_place) call.y = call.x[0];
    same_bits(&call, &o, c->name);
    free_operands(&o);
}

static void test_elements(void **state) {
    static const int64_t shapes[][3] = {{1, 1, 0},  {3, 15, 0}, {3, 17, 3},   {2, 24, 8},
                                        {5, 64, 0}, {4, 67, 5}, {1, 9001, 0}, {3, 2053, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof element_cases / sizeof *element_cases; i++) {
        const element_case *c = &element_cases[i];
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const int64_t *shape = shapes[s];
            base_dtype type = types[(i + s) % TYPES]; /* the long ones in all types, below */
            run_element_case(c, shape[0], shape[1], shape[2], type, false, -1, true);
            if (c->backward)
                run_element_case(c, shape[0], shape[1], shape[2], type, true, -1, true);
        }
        for (int t = 0; t < TYPES; t++)
            run_element_case(c, 3, 1111, t == 0 ? 1 : 0, types[t], false, -1, t == 0);
        if (c->results < 2) continue;
        for (int skipped = 0; skipped < 2; skipped++)
            run_element_case(c, 3, 40, 0, types[skipped], skipped, skipped, true);
    }
}

static void test_vectors(void **state) {
    static const int64_t counts[] = {1, 7, 8, 1023, 4099};
    (void)state;
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        for (int i = 0; i < TYPES; i++) {
            device_call add = {.kernel = DEVICE_ADD_INTO}, clear = {.kernel = DEVICE_CLEAR};
            operands o = {0};
            make_operand(&o, &add.x[0], 1, counts[n], 0, types[i]);
            make_operand(&o, &add.y, 1, counts[n], 0, types[i]);
            same_bits(&add, &o, "add into");
            free_operands(&o);
            o = (operands){0};
            make_operand(&o, &clear.y, 3, counts[n], i, types[i]);
            same_bits(&clear, &o, "clear");
            free_operands(&o);
            for (int j = 0; j < TYPES; j++) {
                device_call convert = {.kernel = DEVICE_CONVERT};
                o = (operands){0};
                make_operand(&o, &convert.x[0], 1, counts[n], 0, types[i]);
                make_operand(&o, &convert.y, 1, counts[n], 0, types[j]);
                same_bits(&convert, &o, "convert");
                free_operands(&o);
            }
        }
    }
}

/* Each number of 16 bits, as it is and as it comes back from the other types. */
static void test_every_half(void **state) {
    (void)state;
    for (int i = 1; i < TYPES; i++) {
        for (int j = 0; j < TYPES; j++) {
            device_call call = {.kernel = DEVICE_CONVERT};
            operands o = {0};
            make_operand(&o, &call.x[0], 1, 0x10000, 0, types[i]);
            make_operand(&o, &call.y, 1, 0x10000, 0, types[j]);
            for (int b = 0; b < 0x10000; b++) ((uint16_t *)call.x[0].data)[b] = (uint16_t)b;
            same_bits(&call, &o, "every number");
            free_operands(&o);
        }
    }
}

/* Around every number of 16 bits: the ties, and what lies a bit beside them. */
static void test_rounding(void **state) {
    enum { EACH = 3, COUNT = 0x10000 * EACH };
    (void)state;
    for (int j = 1; j < TYPES; j++) {
        device_call call = {.kernel = DEVICE_CONVERT};
        operands o = {0};
        make_operand(&o, &call.x[0], 1, COUNT, 0, BASE_FP32);
        make_operand(&o, &call.y, 1, COUNT, 0, types[j]);
        for (uint32_t b = 0; b < COUNT; b++) {
            uint32_t half = b / EACH, beside = b % EACH - 1u;
            float next = j == 1 ? 0 : base_half_to_float((uint16_t)half);
            uint32_t tie = j == 1 ? half << 16 | 0x8000 : base_float_to_bits(next) + 0x1000;
            ((float *)call.x[0].data)[b] = base_float_from_bits(tie + beside);
        }
        same_bits(&call, &o, "rounding");
        free_operands(&o);
    }
}

static bool is_tiny(int64_t scale) {
    return scale % 4 == 1;
}

/* Codes of all values, scales that are not negative, and, but for every third scale, gradients that
 * leave it finite. Some scales are so small that their inverse is no number, or nearly so. */
static void make_codes(operands *o, device_call *call, int64_t count) {
    int64_t scales = (count + DEVICE_CODED - 1) / DEVICE_CODED;
    for (int k = 0; k < 2; k++) {
        device_matrix *scale = &call->saved[2 + k];
        make_operand(o, &call->saved[k], 1, count, 0, BASE_UINT8);
        make_operand(o, scale, 1, scales, 0, BASE_FP32);
        for (int64_t i = 0; i < scales; i++) {
            float value = fabsf(some_value(23 + (uint64_t)k, (uint64_t)i));
            if (i % 3 && !(value < 1e20f)) value = 0.5f;
            if (is_tiny(i)) value = i % 8 == 1 ? 0x1p-122f : 0x1p-126f;
            set_value(scale, i, value);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        base_random4 r = base_philox(29, (uint64_t)i, 0);
        float value = ldexpf(base_uniform(r.v[0]) * 2.0f - 1.0f, -(int)(r.v[1] % 12));
        if (i / DEVICE_CODED % 3 == 0) continue;
        bool tiny = is_tiny(i / DEVICE_CODED);
        set_value(&call->x[0], i, tiny ? 0.0f : value);
        set_value(&call->w[0], i, tiny ? 0.0f : base_uniform(r.v[2]));
    }
}

/* `form`: the bits choose the types and the kind of decay, or of momentum. */
static void run_update(device_kernel kernel, unsigned form, int64_t count, int64_t element,
                       bool update) {
    static const base_dtype copy_types[] = {BASE_NONE, BASE_FP32, BASE_BF16, BASE_FP16};
    base_dtype gradient = types[form % 3], copy = copy_types[form / 3 % 4];
    base_dtype master = types[form / 12 % 2], states = types[form / 24 % 2];
    device_step step = {.seed = 77,
                        .step = 12,
                        .update_scale = 0.37f,
                        .learning_rate = 1e-2f,
                        .beta1 = 0.9f,
                        .beta2 = 0.999f,
                        .correction1 = 0.5f,
                        .correction2 = 0.3f,
                        .share = 0.7f,
                        .update = update};
    device_call call = {.kernel = kernel, .step = &step};
    operands o = {0};
    call.attributes.element = element;
    call.attributes.update.epsilon = 1e-8f;
    call.attributes.update.lr_scale = 0.7f;
    call.attributes.update.weight_decay = 0.1f;
    call.attributes.update.decoupled = call.attributes.update.nesterov = form / 48 % 2;
    make_operand(&o, &call.x[0], 1, count, 0, gradient);
    make_operand(&o, &call.w[0], 1, count, 0, master);
    bool coded = kernel == DEVICE_ADAM_8BIT;
    if (coded) make_codes(&o, &call, count);
    for (int s = 0; !coded && s < device_update_states(kernel); s++) {
        make_operand(&o, &call.saved[s], 1, count, 0, states);
        bool root = s > 0 || kernel == DEVICE_ADAGRAD;
        for (int64_t i = 0; root && i < count; i++) { /* that of a negative number is a NaN */
            float value = fabsf(some_value(19 + (uint64_t)s, (uint64_t)i));
            set_value(&call.saved[s], i, isnan(value) ? 0.5f : value);
        }
    }
    if (copy != BASE_NONE) make_operand(&o, &call.w[1], 1, count, 0, copy);
    int averaged = device_update_states(kernel);
    call.attributes.update.averages = form / 96 % 2 && kernel != DEVICE_SCHEDULE_FREE && !coded;
    step.average_share = form % 2 ? 0.1f : 0.7f;
    if (call.attributes.update.averages)
        make_operand(&o, &call.saved[averaged], 1, count, 0, BASE_FP32);
    same_bits(&call, &o, device_kernel_name(kernel));
    free_operands(&o);
}

static void run_adam(unsigned form, int64_t count, int64_t element, bool update) {
    run_update(DEVICE_ADAM, form, count, element, update);
}

static void test_updates(void **state) {
    enum { FORMS = 3 * 4 * 2 * 2 * 2 * 2 };
    (void)state;
    for (int k = 0; k <= DEVICE_UPDATE_NUMBER(DEVICE_ADAM_8BIT); k++) { /* LAMB: test_cuda_tuning */
        device_kernel kernel = (device_kernel)(DEVICE_ADAM + k);
        for (unsigned form = 0; form < FORMS; form++)
            run_update(kernel, form, form % 2 ? 1000 : 77, 4096 + form % 8, true);
        run_update(kernel, 36, 20000, (int64_t)1 << 35, true);
        run_update(kernel, 0, 100, 0, false); /* without a copy nothing happens */
    }
}

static void test_adam(void **state) {
    enum { FORMS = 3 * 4 * 2 * 2 * 2 };
    (void)state;
    for (unsigned form = 0; form < FORMS; form++) {
        run_adam(form, 1000, 4096, true);
        run_adam(form, 77, 4096 + form % 8, true);
    }
    for (int64_t element = 0; element < 8; element++) run_adam(36, 33, element, true);
    run_adam(36, 20000, (int64_t)1 << 35, true);
    run_adam(0, 100, 0, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),   cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_every_half), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_updates),    cmocka_unit_test(test_adam),
    };
    if (shim_skipped()) return 77;
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
