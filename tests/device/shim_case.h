/* A call of the CPU and over the shim, in several orders of threads: the same bits, or nearly. */
#ifndef TESTS_DEVICE_SHIM_CASE_H
#define TESTS_DEVICE_SHIM_CASE_H

#include "base/exact_sum.h"
#include "device/matrix_case.h"

enum { SHIM_ORDERS = 4, SHIM_RESULTS = 9 };

/* What calls write, and weights, which most of them leave. */
static inline device_matrix *shim_case_result(device_call *call, int i) {
    device_matrix *all[SHIM_RESULTS] = {&call->y,        &call->w[0],     &call->w[1],
                                        &call->saved[0], &call->saved[1], &call->saved[2],
                                        &call->dx[0],    &call->dw[0],    &call->dw[1]};
    return all[i];
}

static inline void shim_case_check_same(const char *what, const device_matrix *got,
                                        const device_matrix *want) {
    if (memcmp(got->data, want->data, case_bytes(want)) == 0) return;
    for (int64_t r = 0; r < want->rows; r++)
        for (int64_t c = 0; c < want->columns; c++)
            if (!(case_get(got, r, c) == case_get(want, r, c)))
                fail_msg("%s: [%lld,%lld] is %.9g, expected %.9g", what, (long long)r, (long long)c,
                         case_get(got, r, c), case_get(want, r, c));
    fail_msg("%s: other bits", what);
}

/* The distance of the whole matrix, relative to its size, and of each element. A result of 16 bits
 * may be rounded to the next number. */
static inline void shim_case_check_near(const char *what, const device_matrix *got,
                                        const device_matrix *want) {
    double apart = 0, size = 0, largest = 0, whole = want->dtype == BASE_FP32 ? 3e-7 : 1e-3;
    double each = want->dtype == BASE_FP32 ? 0 : 0x1p-7;
    for (int64_t r = 0; r < want->rows; r++)
        for (int64_t c = 0; c < want->columns; c++)
            largest = fmax(largest, fabs(case_get(want, r, c)));
    for (int64_t r = 0; r < want->rows; r++) {
        for (int64_t c = 0; c < want->columns; c++) {
            double a = case_get(got, r, c), b = case_get(want, r, c);
            if (!(fabs(a - b) <= each * fabs(b) + 1e-6 * largest))
                fail_msg("%s: [%lld,%lld] is %.9g, expected %.9g", what, (long long)r, (long long)c,
                         a, b);
            apart += (a - b) * (a - b), size += b * b;
        }
    }
    if (!(sqrt(apart / size) <= whole)) fail_msg("%s: %.3g apart", what, sqrt(apart / size));
}

static inline void shim_case_keep(device_call *call, device_matrix out[SHIM_RESULTS]) {
    for (int i = 0; i < SHIM_RESULTS; i++) {
        out[i] = (device_matrix){0};
        if (shim_case_result(call, i)->dtype != BASE_NONE)
            out[i] = case_copy(shim_case_result(call, i));
    }
}

static inline void shim_case_put_back(device_call *call, const device_matrix kept[SHIM_RESULTS]) {
    for (int i = 0; i < SHIM_RESULTS; i++)
        if (kept[i].data)
            memcpy(shim_case_result(call, i)->data, kept[i].data, case_bytes(&kept[i]));
}

static inline void shim_case_drop(device_matrix kept[SHIM_RESULTS]) {
    for (int i = 0; i < SHIM_RESULTS; i++) free(kept[i].data);
}

/* Sums are equal if they are once they are settled. */
static inline void shim_case_settle(device_call *call) {
    base_exact_sum *sums = call->y.data;
    for (int64_t s = 0; call->y.dtype == BASE_INT64 && s < call->y.columns / EXACT_WORDS; s++)
        base_exact_settle(&sums[s]);
}

/* Runs on the CPU, then on the shim in several orders, each time from the same results. */
static inline void shim_case_compare(const char *what, device_call *call,
                                     device *const shims[SHIM_ORDERS], bool near) {
    device_matrix before[SHIM_RESULTS], want[SHIM_RESULTS], first[SHIM_RESULTS];
    device *cpu = case_device(1, NULL);
    assert_non_null(cpu);
    shim_case_keep(call, before);
    case_run(cpu, call);
    shim_case_settle(call);
    shim_case_keep(call, want);
    for (int order = 0; order < SHIM_ORDERS; order++) {
        shim_case_put_back(call, before);
        case_run(shims[order], call);
        shim_case_settle(call);
        if (order == 0) shim_case_keep(call, first);
        for (int i = 0; i < SHIM_RESULTS; i++) {
            if (!want[i].data) continue;
            if (near) shim_case_check_near(what, shim_case_result(call, i), &want[i]);
            shim_case_check_same(what, shim_case_result(call, i), near ? &first[i] : &want[i]);
        }
    }
    shim_case_drop(before);
    shim_case_drop(want);
    shim_case_drop(first);
    device_close(cpu);
}

/* The first one is over the shim also where a GPU is tested: so that has its bits. */
static inline void shim_case_open(device *shims[SHIM_ORDERS]) {
    sifr_error error = {0};
    assert_int_equal(device_open_shim(SHIM_UP, &shims[0], &error), SIFR_OK);
    for (int order = 1; order < SHIM_ORDERS; order++)
        if (op_gpu_open(order, &shims[order], &error) != SIFR_OK) fail_msg("%s", error.message);
}

static inline void shim_case_close(device *const shims[SHIM_ORDERS]) {
    for (int order = 0; order < SHIM_ORDERS; order++) device_close(shims[order]);
}

static inline void shim_case_free(device_call *call) {
    for (int i = 0; i < DEVICE_INPUTS; i++) free(call->x[i].data);
    free(call->dy.data);
    for (int i = 0; i < SHIM_RESULTS; i++) free(shim_case_result(call, i)->data);
}

#endif
