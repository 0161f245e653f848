/* The order in which DEVICE_MAGNITUDE adds. Every device keeps it, so results have the same bits on
 * all of them. It leaves GPUs enough sums to add at a time. */
#ifndef DEVICE_MAGNITUDE_ORDER_H
#define DEVICE_MAGNITUDE_ORDER_H

enum {
    /* Squares of a row, in double: column i in lane i / RUN % LANES, in order; then lanes l and
     * l + LANES / 2, l and l + LANES / 4, and so on. */
    MAGNITUDE_LANES = 32,
    MAGNITUDE_RUN = 8,
    /* Gradients of magnitudes, in FP32: so many tokens in order, then these sums in order. */
    MAGNITUDE_PART = 64
};

#endif
