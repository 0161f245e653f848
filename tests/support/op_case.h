/* One table of kernel cases, run on every kind of device: the CPU's instruction sets, separate
 * memory, GPUs over the shim, on the fake driver or real ones. Against a reference in double
 * precision, gradients against central differences of that reference, the same bits for any number
 * of threads, adding into what is there, slices of columns, and no byte written beside the results.
 *
 * To add a kernel: write its forward in double (`reference`), a function that says which operands
 * it has (`shape`), and a row for each shape worth running in a table handed to op_cases_run().
 */
#ifndef TESTS_SUPPORT_OP_CASE_H
#define TESTS_SUPPORT_OP_CASE_H

#include "device/device.h"

/* Operands as dense matrices of doubles, NULL where the call has none. */
typedef struct op_values {
    double *x[DEVICE_INPUTS], *w[DEVICE_WEIGHTS], *y, *saved[DEVICE_SAVED];
} op_values;

enum {
    OP_X0 = 1,
    OP_X1 = 2,
    OP_X2 = 4,
    OP_X3 = 8,
    OP_W0 = 16,
    OP_W1 = 32,
    OP_SAVED0 = 64,
    OP_SAVED1 = 128,
    OP_Y = 256
};

typedef struct op_case {
    const char *name;
    device_kernel forward, backward; /* backward == forward: there is none */
    int64_t rows, columns;           /* for `shape` */
    int variant;                     /* likewise */
    /* Sets attributes, and rows, columns and dtype of x, w, y and saved, for activations of a type.
     */
    void (*shape)(const struct op_case *c, base_dtype type, device_call *call);
    /* Reads v->x and v->w (and v->y where the kernel adds to it), writes v->y and v->saved. */
    void (*reference)(const device_call *call, const op_values *v);
    int64_t length;    /* terms of the longest sum in a result */
    int64_t words;     /* INT32 operands hold numbers below this one */
    unsigned reads;    /* what the backward call gets beside dy: OP_... */
    unsigned wants;    /* the gradients there are: OP_X0 ... OP_W1 */
    bool in_place;     /* forward may write y over x0, backward dx0 over dy: tried as well */
    bool fp32_only;    /* not an operation on activations */
    bool adds;         /* forward reads y */
    double low, high;  /* range of the inputs; both 0: -2 to 2 */
    double error_fp32; /* error of functions inside, in units of 2^-24, beside that of sums */
} op_case;

/* An operand of a call that is dense and has no data yet. */
static inline device_matrix op_sized(int64_t rows, int64_t columns, base_dtype dtype) {
    return (device_matrix){NULL, rows, columns, columns, dtype};
}

/* Runs all cases; fails the cmocka test with the first difference. */
void op_cases_run(const op_case *cases, int count);

/* The step that calls are run with. */
extern const device_step op_step;

#endif
