/* Operands and results of a head with a loss, as its tests (test_head_*.c) have them. */
#ifndef TESTS_DEVICE_HEAD_MATRICES_H
#define TESTS_DEVICE_HEAD_MATRICES_H

#include "device/matrix_case.h"

typedef struct head_matrices {
    device_matrix x, labels, w, bias; /* labels: or targets; without bias its dtype is BASE_NONE */
    device_matrix dx_before, dw_before, db_before; /* what gradients begin with */
    device_matrix y, dx, dw, db;                   /* results; y: losses */
    bool accumulate;
} head_matrices;

/* Takes y. */
static inline void head_begin(head_matrices *m, device_matrix y) {
    m->y = y;
    m->dx = case_copy(&m->dx_before);
    m->dw = case_copy(&m->dw_before);
    m->db = case_copy(&m->db_before);
}

static inline void head_end(head_matrices *m) {
    device_matrix *all[] = {&m->y, &m->dx, &m->dw, &m->db};
    for (int i = 0; i < 4; i++) free(all[i]->data);
}

static inline void head_free(head_matrices *m) {
    device_matrix *all[] = {&m->x,         &m->labels,    &m->w,        &m->bias,
                            &m->dx_before, &m->dw_before, &m->db_before};
    for (int i = 0; i < 7; i++) free(all[i]->data);
}

/* Makes a call for losses one for gradients, too. */
static inline void head_with_gradients(const head_matrices *m, device_call *call) {
    call->dx[0] = m->dx, call->dw[0] = m->dw, call->dw[1] = m->db;
    call->accumulate[0] = call->accumulate_dw = m->accumulate;
}

/* The same results, to the bit. */
static inline void head_expect_same(const head_matrices *have, const head_matrices *want) {
    assert_memory_equal(have->y.data, want->y.data, case_bytes(&want->y));
    assert_memory_equal(have->dx.data, want->dx.data, case_bytes(&want->dx));
    assert_memory_equal(have->dw.data, want->dw.data, case_bytes(&want->dw));
    assert_memory_equal(have->db.data, want->db.data, case_bytes(&want->db));
}

/* Operands in double. */
typedef struct head_doubles {
    double *x, *w, *bias; /* bias: NULL without */
} head_doubles;

static inline head_doubles head_in_double(const head_matrices *m) {
    bool biased = m->bias.dtype != BASE_NONE;
    return (head_doubles){case_doubles(&m->x), case_doubles(&m->w),
                          biased ? case_doubles(&m->bias) : NULL};
}

static inline void head_free_doubles(head_doubles *d) {
    free(d->x);
    free(d->w);
    free(d->bias);
}

static inline void head_expect_near(const char *what, const char *name, const device_matrix *m,
                                    int64_t r, int64_t c, double want, double allowed) {
    double got = case_get(m, r, c);
    if (!(fabs(got - want) <= allowed))
        fail_msg("%s: %s[%lld,%lld] is %.9g, expected %.9g within %.3g", what, name, (long long)r,
                 (long long)c, got, want, allowed);
}

#endif
