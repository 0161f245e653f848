/* The gated delta rule row by row in double precision, and its gradients, which test_delta compares
 * with central differences of the first. */
#ifndef TESTS_SUPPORT_DELTA_REFERENCE_H
#define TESTS_SUPPORT_DELTA_REFERENCE_H

#include <stdint.h>

enum { DELTA_X = 5, DELTA_W = 2 };

typedef struct delta_problem {
    int64_t sequences, length, key_heads, value_heads, key_dim, value_dim;
    const int32_t *segments; /* of each row; NULL: one in each sequence */
} delta_problem;

/* q, k, v, time and share, dense; rate and bias. */
typedef struct delta_values {
    double *x[DELTA_X], *w[DELTA_W];
} delta_values;

/* Columns of x[i], and elements of w. */
int64_t delta_columns(const delta_problem *p, int i);

void delta_reference(const delta_problem *p, const delta_values *v, double *y);
/* Writes all of *d, which has the shapes of *v. */
void delta_reference_gradients(const delta_problem *p, const delta_values *v, const double *dy,
                               const delta_values *d);

#endif
