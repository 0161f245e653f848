#include "support/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "device/cuda/cuda_dispatch.h"
#include "support/cuda/mirror.h"
#include "support/cuda/op_gpu.h"
#include "support/cuda/shim_run.h"
#include "support/thinned.h"

const device_step op_step = {.seed = 7, .step = 3, .gradient_scale = 1.0f, .training = true};

enum {
    GUARD = 128,
    FILL = 0x5a,
    SAMPLES = 48,
    OPERANDS = 16,
    TYPES = 3,
    TURNS = 4,
    SHIM_ELEMENTS = 1 << 13
};

/* An operand's memory: guards around it, and how it was before the run. */
typedef struct op_buffer {
    device_matrix *matrix;
    uint8_t *memory, *before;
    size_t size;
    bool written;
} op_buffer;

/* Slopes of the reference at the samples of each operand: values, and so slopes, depend on the case
 * and the type alone, and each is a run of the whole reference, twice. */
typedef struct op_slopes {
    double of[6][SAMPLES];
    unsigned known; /* bit i: of operand i */
} op_slopes;

typedef struct op_run {
    const op_case *c;
    op_slopes *slopes;
    base_dtype type;
    bool sliced, in_place, accumulate;
    const char *isa;
    op_buffer buffers[OPERANDS];
    int count;
} op_run;

static float from_half(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : ldexp(1024 + fraction, exponent - 25);
    return (float)(bits >> 15 ? -value : value);
}

/* Cut off to 8 bits, which every format has. */
static uint16_t to_half(double value) {
    int exponent;
    if (isnan(value)) return 0x7e00;
    double fraction = frexp(fabs(value), &exponent);
    if (exponent < -12) return 0;
    uint32_t bits = (uint32_t)(fraction * 256) * 8;
    return (uint16_t)((signbit(value) ? 0x8000 : 0) | (uint32_t)(exponent + 14) << 10 |
                      (bits & 1023));
}

static double get(const device_matrix *m, int64_t row, int64_t column) {
    int64_t at = row * m->stride + column;
    uint32_t bits;
    float value;
    switch (m->dtype) {
    case BASE_BF16:
        bits = (uint32_t)((const uint16_t *)m->data)[at] << 16;
        memcpy(&value, &bits, 4);
        return value;
    case BASE_FP16:
        return from_half(((const uint16_t *)m->data)[at]);
    case BASE_FP64:
        return ((const double *)m->data)[at];
    case BASE_INT32:
        return ((const int32_t *)m->data)[at];
    default:
        return ((const float *)m->data)[at];
    }
}

static void set(const device_matrix *m, int64_t row, int64_t column, double value) {
    int64_t at = row * m->stride + column;
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    switch (m->dtype) {
    case BASE_BF16:
        ((uint16_t *)m->data)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        return;
    case BASE_FP16:
        ((uint16_t *)m->data)[at] = to_half(value);
        return;
    case BASE_FP64:
        ((double *)m->data)[at] = value;
        return;
    case BASE_INT32:
        ((int32_t *)m->data)[at] = (int32_t)value;
        return;
    default:
        ((float *)m->data)[at] = single;
    }
}

/* The operands of a call, in a fixed order. */
static device_matrix *operand(device_call *call, int i) {
    if (i < 4) return &call->x[i];
    if (i < 6) return &call->w[i - 4];
    if (i < 8) return &call->saved[i - 6];
    if (i == 8) return &call->y;
    if (i == 9) return &call->dy;
    if (i < 14) return &call->dx[i - 10];
    return &call->dw[i - 14];
}

static double random_value(const op_case *c, uint64_t key, uint64_t element) {
    double low = c->low == c->high ? -2 : c->low, high = c->low == c->high ? 2 : c->high;
    return low + (high - low) * base_uniform(base_philox(key, element, 0).v[0]);
}

/* Memory for operand i, with values; a slice where the run asks for it. */
static void make_operand(op_run *run, device_call *call, int i, bool written) {
    device_matrix *m = operand(call, i);
    if (m->dtype == BASE_NONE) return;
    bool slice = run->sliced && m->rows > 1 && m->dtype == run->type &&
                 (i < 4 || (i >= 8 && i < 14)); /* weights and statistics are never slices */
    int64_t size = base_dtype_bytes(m->dtype);
    m->stride = m->columns + (slice ? 3 : 0);
    size_t bytes = 2 * GUARD + (size_t)((m->rows * m->stride + 1) * size + 63) / 64 * 64;
    op_buffer *buffer = &run->buffers[run->count++];
    *buffer = (op_buffer){m, aligned_alloc(64, bytes), malloc(bytes), bytes, written};
    assert_non_null(buffer->memory);
    assert_non_null(buffer->before);
    memset(buffer->memory, FILL, bytes);
    m->data = buffer->memory + GUARD + (slice ? size : 0);
    uint64_t key = (uint64_t)(i + 1) * 1000003;
    bool fill = !written || (i == 8 ? run->c->adds : run->accumulate);
    for (int64_t r = 0; r < m->rows; r++) {
        for (int64_t k = 0; k < m->columns; k++) {
            uint64_t element = (uint64_t)(r * m->columns + k);
            double value = fill ? random_value(run->c, key, element) : NAN;
            if (m->dtype == BASE_INT32)
                value = base_philox(key, element, 0).v[1] % (uint32_t)run->c->words;
            set(m, r, k, value);
        }
    }
}

static void remember(op_run *run) {
    for (int i = 0; i < run->count; i++)
        memcpy(run->buffers[i].before, run->buffers[i].memory, run->buffers[i].size);
}

static void restore(op_run *run) {
    for (int i = 0; i < run->count; i++)
        memcpy(run->buffers[i].memory, run->buffers[i].before, run->buffers[i].size);
}

static void drop(op_run *run) {
    for (int i = 0; i < run->count; i++) {
        free(run->buffers[i].memory);
        free(run->buffers[i].before);
    }
    run->count = 0;
}

static void fail_run(const op_run *run, const char *kernel, const char *what) {
    fail_msg("%s (%s): %lld x %lld, %s, %s%s%s%s: %s", run->c->name, kernel,
             (long long)run->c->rows, (long long)run->c->columns, base_dtype_name(run->type),
             run->isa, run->sliced ? ", slices" : "", run->in_place ? ", in place" : "",
             run->accumulate ? ", added" : "", what);
}

/* Every byte that belongs to no result is as it was. */
static void check_guards(const op_run *run, const char *kernel) {
    for (int b = 0; b < run->count; b++) {
        const op_buffer *buffer = &run->buffers[b];
        const device_matrix *m = buffer->matrix;
        size_t size = (size_t)base_dtype_bytes(m->dtype), from = 0;
        if (buffer->written) {
            for (int64_t r = 0; r < m->rows; r++) {
                size_t to =
                    (size_t)((uint8_t *)m->data - buffer->memory) + (size_t)(r * m->stride) * size;
                if (memcmp(buffer->memory + from, buffer->before + from, to - from) != 0)
                    fail_run(run, kernel, "wrote between or before rows");
                from = to + (size_t)m->columns * size;
            }
        }
        if (memcmp(buffer->memory + from, buffer->before + from, buffer->size - from) != 0)
            fail_run(run, kernel, "wrote behind a result, or into an input");
    }
}

static void run_call(const op_run *run, device *dev, device_call *call) {
    sifr_error error = {0};
    call->step = &op_step;
    if (device_prepare(dev, call, &error) != SIFR_OK)
        fail_run(run, device_kernel_name(call->kernel), error.message);
    size_t bytes = ((size_t)call->scratch_bytes + 63) / 64 * 64;
    uint8_t *scratch = aligned_alloc(64, bytes + 64);
    assert_non_null(scratch);
    memset(scratch, 0xff, bytes + 64);
    call->scratch = scratch;
    if (device_run(dev, call, &error) != SIFR_OK)
        fail_run(run, device_kernel_name(call->kernel), error.message);
    for (size_t i = 0; i < 64; i++) assert_int_equal(scratch[bytes + i], 0xff);
    free(scratch);
    call->scratch = NULL;
}

/* Runs with 1, 2, 3 and 8 threads from the same memory; the results of the last stay. */
static void run_threads(op_run *run, device *const devices[TURNS], device_call *call) {
    uint8_t *first[OPERANDS];
    remember(run);
    for (int t = 0; t < TURNS; t++) {
        if (t > 0) restore(run);
        run_call(run, devices[t], call);
        check_guards(run, device_kernel_name(call->kernel));
        for (int i = 0; i < run->count; i++) {
            const op_buffer *buffer = &run->buffers[i];
            if (t == 0) {
                first[i] = malloc(buffer->size);
                assert_non_null(first[i]);
                memcpy(first[i], buffer->memory, buffer->size);
            } else if (memcmp(first[i], buffer->memory, buffer->size) != 0) {
                fail_run(run, device_kernel_name(call->kernel),
                         "bits depend on the threads or their order");
            }
        }
    }
    for (int i = 0; i < run->count; i++) free(first[i]);
}

static double *dense(const device_matrix *m) {
    if (m->dtype == BASE_NONE) return NULL;
    double *values = calloc((size_t)(m->rows * m->columns), sizeof *values);
    assert_non_null(values);
    if (m->data) {
        for (int64_t r = 0; r < m->rows; r++)
            for (int64_t k = 0; k < m->columns; k++) values[r * m->columns + k] = get(m, r, k);
    }
    return values;
}

static op_values make_values(const device_call *call) {
    op_values v = {.y = dense(&call->y)};
    for (int i = 0; i < DEVICE_INPUTS; i++) v.x[i] = dense(&call->x[i]);
    for (int i = 0; i < DEVICE_WEIGHTS; i++) v.w[i] = dense(&call->w[i]);
    for (int i = 0; i < DEVICE_SAVED; i++) v.saved[i] = dense(&call->saved[i]);
    return v;
}

static void free_values(op_values *v) {
    free(v->y);
    for (int i = 0; i < DEVICE_INPUTS; i++) free(v->x[i]);
    for (int i = 0; i < DEVICE_WEIGHTS; i++) free(v->w[i]);
    for (int i = 0; i < DEVICE_SAVED; i++) free(v->saved[i]);
}

/* Half a unit in the last place of the result's type, and of fp32 for what is added inside it. */
static void check_value(const op_run *run, const char *kernel, const char *name,
                        const device_matrix *m, int64_t r, int64_t k, double want,
                        double magnitude) {
    double unit = ldexp(1, -24), got = get(m, r, k);
    double sums = 8 + 4 * sqrt((double)run->c->length) + run->c->error_fp32;
    double allowed = unit * sums * magnitude;
    if (m->dtype == BASE_BF16) allowed += ldexp(fabs(want), -8) + ldexp(1, -133);
    if (m->dtype == BASE_FP16) allowed += ldexp(fabs(want), -11) + ldexp(1, -25);
    if (!(fabs(got - want) <= allowed)) {
        char what[256];
        snprintf(what, sizeof what, "%s[%lld,%lld] is %.9g, expected %.9g within %.3g", name,
                 (long long)r, (long long)k, got, want, allowed);
        fail_run(run, kernel, what);
    }
}

static double largest(const double *values, int64_t count) {
    double most = 1;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(values[i]));
    return most;
}

static void check_matrix(const op_run *run, const char *kernel, const char *name,
                         const device_matrix *m, const double *want) {
    double magnitude = largest(want, m->rows * m->columns);
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t k = 0; k < m->columns; k++)
            check_value(run, kernel, name, m, r, k, want[r * m->columns + k], magnitude);
}

static void test_forward(op_run *run, device *const devices[TURNS]) {
    const op_case *c = run->c;
    const char *kernel = device_kernel_name(c->forward);
    device_call call = {.kernel = c->forward};
    c->shape(c, run->type, &call);
    for (int i = 0; i < 6; i++) make_operand(run, &call, i, false);
    for (int i = 6; i < 9; i++) make_operand(run, &call, i, true);
    if (run->in_place) {
        run->buffers[0].written = true;
        call.y = call.x[0];
        run->count--; /* y was the last one made */
        free(run->buffers[run->count].memory);
        free(run->buffers[run->count].before);
    }
    op_values want = make_values(&call);
    call.step = &op_step;
    c->reference(&call, &want);
    run_threads(run, devices, &call);
    check_matrix(run, kernel, "y", &call.y, want.y);
    for (int i = 0; i < DEVICE_SAVED; i++)
        if (want.saved[i]) check_matrix(run, kernel, "saved", &call.saved[i], want.saved[i]);
    free_values(&want);
    drop(run);
}

/* Derivative of sum(dy y) by central differences, for operand values[at]. */
static double slope(const op_case *c, const device_call *call, op_values *v, double *values,
                    int64_t at, const double *dy, int64_t count) {
    double kept = values[at], step = 1e-5 * fmax(1, fabs(kept)), sums[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        values[at] = kept + (side ? step : -step);
        c->reference(call, v);
        for (int64_t i = 0; i < count; i++) sums[side] += dy[i] * v->y[i];
    }
    values[at] = kept;
    return (sums[1] - sums[0]) / (2 * step);
}

/* Compares samples of the gradient in operand i with the reference's differences. */
static void check_gradient(const op_run *run, const device_call *forward, op_values *v, int i,
                           const device_matrix *got, const double *dy, const double *before) {
    double *values = i < 4 ? v->x[i] : v->w[i - 4], *slopes = run->slopes->of[i], want[SAMPLES];
    int64_t count = got->rows * got->columns, at[SAMPLES];
    int64_t samples = count < SAMPLES ? count : count > 4096 ? SAMPLES / 8 : SAMPLES;
    for (int64_t s = 0; s < samples; s++) {
        at[s] = samples == count ? s : s * (count - 1) / (samples - 1);
        if (!(run->slopes->known & 1u << i))
            slopes[s] =
                slope(run->c, forward, v, values, at[s], dy, forward->y.rows * forward->y.columns);
        want[s] = slopes[s] + (run->accumulate ? before[at[s]] : 0);
    }
    run->slopes->known |= 1u << i;
    double magnitude = largest(want, samples);
    for (int64_t s = 0; s < samples; s++)
        check_value(run, device_kernel_name(run->c->backward), i < 4 ? "dx" : "dw", got,
                    at[s] / got->columns, at[s] % got->columns, want[s], magnitude);
    for (int64_t r = 0; r < got->rows; r++)
        for (int64_t k = 0; k < got->columns; k++)
            if (isnan(get(got, r, k)))
                fail_run(run, device_kernel_name(run->c->backward), "left a result unwritten");
}

/* `wants`: the gradients to ask for. */
static void test_backward(op_run *run, device *const devices[TURNS], unsigned wants) {
    const op_case *c = run->c;
    device_call forward = {.kernel = c->forward}, call;
    c->shape(c, run->type, &forward);
    call = forward;
    call.kernel = c->backward;
    call.dy = call.y;
    call.accumulate_dw = run->accumulate;
    for (int i = 0; i < 6; i++) {
        if (!(wants & 1u << i)) continue;
        *operand(&call, i + 10) = *operand(&call, i);
        if (i < 4) call.accumulate[i] = run->accumulate;
        if (i >= 4) call.dw[i - 4].dtype = BASE_FP32;
    }
    for (int i = 0; i < 8; i++) make_operand(run, &call, i, false);
    call.y = (device_matrix){0};
    make_operand(run, &call, 9, false);
    op_buffer *dy_buffer = &run->buffers[run->count - 1];
    op_values v = make_values(&call);
    v.y = calloc((size_t)(call.dy.rows * call.dy.columns), sizeof *v.y);
    assert_non_null(v.y);
    double *dy = dense(&call.dy), *before[6] = {0};
    forward.step = &op_step;
    c->reference(&forward, &v);
    for (int i = 0; i < DEVICE_SAVED; i++) {
        device_matrix *m = &call.saved[i];
        for (int64_t r = 0; r < m->rows && m->dtype; r++)
            for (int64_t k = 0; k < m->columns; k++) set(m, r, k, v.saved[i][r * m->columns + k]);
    }
    if (run->in_place) {
        call.dx[0] = call.dy;
        dy_buffer->written = true;
    }
    for (int i = 0; i < 6; i++) {
        if (!(wants & 1u << i) || (i == 0 && run->in_place)) continue;
        make_operand(run, &call, i + 10, true);
        before[i] = dense(operand(&call, i + 10));
    }
    for (int i = 0; i < 8; i++)
        if (!(c->reads & 1u << i)) operand(&call, i)->dtype = BASE_NONE;
    for (int b = 0; b < run->count; b++) { /* operands that are not handed over */
        op_buffer *buffer = &run->buffers[b];
        if (buffer->matrix->dtype == BASE_NONE) {
            free(buffer->memory);
            free(buffer->before);
            run->buffers[b--] = run->buffers[--run->count];
        }
    }
    run_threads(run, devices, &call);
    for (int i = 0; i < 6; i++)
        if (wants & 1u << i)
            check_gradient(run, &forward, &v, i, operand(&call, i + 10), dy, before[i]);
    for (int i = 0; i < 6; i++) free(before[i]);
    free(dy);
    free_values(&v);
    drop(run);
}

static void run_case(const op_case *c, size_t turn, const char *isa, device *const devices[TURNS],
                     op_slopes slopes[TYPES]) {
    static const base_dtype types[TYPES] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (int type = 0; type < (c->fp32_only ? 1 : TYPES); type++) {
        if (!c->fp32_only && thinned_out(turn + (size_t)type)) continue;
        for (int sliced = 0; sliced < (c->rows > 1 && !c->fp32_only ? 2 : 1); sliced++) {
            op_run run = {
                .c = c, .slopes = &slopes[type], .type = types[type], .isa = isa, .sliced = sliced};
            test_forward(&run, devices);
            if (c->in_place) {
                run.in_place = true;
                test_forward(&run, devices);
                run.in_place = false;
            }
            if (c->backward == c->forward) continue;
            test_backward(&run, devices, c->wants);
            if (c->in_place) {
                run.in_place = true;
                test_backward(&run, devices, c->wants);
                run.in_place = false;
            }
            run.accumulate = true;
            test_backward(&run, devices, c->wants);
            run.accumulate = false;
            for (int i = 0; i < 6; i++) /* each gradient alone */
                if (c->wants & 1u << i && c->wants != 1u << i)
                    test_backward(&run, devices, 1u << i);
        }
    }
}

typedef struct op_kind op_kind;

/* A kind of device, opened once for each of TURNS: with other threads, or in another order. */
struct op_kind {
    const char *name;
    sifr_status (*open)(const op_kind *kind, int turn, device **out, sifr_error *error);
    op_gpu gpu;   /* for kernels of GPUs */
    bool is_gpu;  /* those that GPUs have, and no others */
    bool slow;    /* fibres take their time: small cases alone */
    size_t share; /* of the cases, where other kinds run as well: one in so many */
};

static sifr_status open_set(const op_kind *kind, int turn, device **out, sifr_error *error) {
    static const int threads[TURNS] = {1, 2, 3, 8};
    return device_open_cpu(threads[turn], kind->name, out, error);
}

static device *inner[TURNS];

/* The CPU's kernels, with operands in memory of the device. */
static sifr_status open_separate(const op_kind *kind, int turn, device **out, sifr_error *error) {
    (void)kind;
    BASE_TRY(device_open_separate(turn + 1, NULL, &inner[turn], error));
    return device_open_mirror(inner[turn], out, error);
}

static sifr_status open_queued(const op_kind *kind, int turn, device **out, sifr_error *error) {
    (void)kind;
    BASE_TRY(device_open_queued(turn + 1, NULL, 0, 0, &inner[turn], error));
    return device_open_mirror(inner[turn], out, error);
}

static sifr_status open_gpu(const op_kind *kind, int turn, device **out, sifr_error *error) {
    return op_gpu_open_kind(kind->gpu, turn, out, error);
}

static const op_kind kinds[] = {
    {.name = "plain", .open = open_set, .share = 1},
    {.name = "avx2", .open = open_set, .share = 1},
    {.name = "avx512", .open = open_set, .share = 1},
    {.name = "avx512_bf16", .open = open_set, .share = 1},
    {.name = "separate memory", .open = open_separate, .share = 8},
    {.name = "hidden memory", .open = open_queued, .share = 8},
    {"cuda over the shim", open_gpu, OP_GPU_SHIM, true, true, 1},
    {"cuda on the fake driver", open_gpu, OP_GPU_FAKE, true, true, 16},
    {"cuda on a GPU", open_gpu, OP_GPU_REAL, true, false, 1},
};

/* A GPU that the environment asks for is tested alone, and without being asked there is none. */
static bool is_wanted(const op_kind *kind) {
    op_gpu gpu = op_gpu_kind();
    if (kind->is_gpu && shim_skipped()) return false;
    if (gpu != OP_GPU_SHIM) return kind->is_gpu && kind->gpu == gpu;
    return kind->gpu != OP_GPU_REAL && !thinned_set(kind->name);
}

static bool is_in(const op_kind *kind, const op_case *c, size_t turn) {
    if (op_gpu_kind() == OP_GPU_SHIM && turn % kind->share != 0) return false;
    if (kind->is_gpu && !(cuda_has(c->forward) && cuda_has(c->backward))) return false;
    return !kind->slow || c->rows * c->columns <= SHIM_ELEMENTS;
}

static void run_kind(const op_kind *kind, const op_case *cases, int count, op_slopes *slopes) {
    device *devices[TURNS] = {0};
    sifr_error error = {0};
    for (int turn = 0; turn < TURNS; turn++) {
        if (kind->open(kind, turn, &devices[turn], &error) == SIFR_OK) continue;
        if (kind->is_gpu || turn > 0) fail_msg("%s: %s", kind->name, error.message);
        print_message("%s: skipped, this processor lacks it\n", kind->name);
        return;
    }
    for (int i = 0; i < count; i++)
        if (is_in(kind, &cases[i], (size_t)i))
            run_case(&cases[i], (size_t)i, kind->name, devices, slopes + i * TYPES);
    for (int turn = 0; turn < TURNS; turn++) {
        device_close(devices[turn]);
        device_close(inner[turn]);
        inner[turn] = NULL;
    }
}

void op_cases_run(const op_case *cases, int count) {
    op_slopes *slopes = calloc((size_t)count * TYPES, sizeof *slopes);
    assert_non_null(slopes);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (is_wanted(&kinds[k])) run_kind(&kinds[k], cases, count, slopes);
    free(slopes);
}
