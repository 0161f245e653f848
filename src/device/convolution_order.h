/* The order in which the gradients of a short convolution's weights add tokens. Every device keeps
 * it, so that they have the same bits on all of them. */
#ifndef DEVICE_CONVOLUTION_ORDER_H
#define DEVICE_CONVOLUTION_ORDER_H

/* In FP32: so many tokens in order, then these sums in order. */
enum { CONVOLUTION_PART = 64 };

#endif
