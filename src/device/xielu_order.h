/* The order in which the gradients of xIELU's weights add tokens, so that tiles of tokens give the
 * bits of the whole. */
#ifndef DEVICE_XIELU_ORDER_H
#define DEVICE_XIELU_ORDER_H

/* A sum for each so many tokens, then these sums in order, in FP32. */
enum { XIELU_PART = 128 };

#endif
