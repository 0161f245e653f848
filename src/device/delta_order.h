/* The order in which the gated delta rule adds rows. Every device keeps it. */
#ifndef DEVICE_DELTA_ORDER_H
#define DEVICE_DELTA_ORDER_H

/* Rows that are worked on together, counted from the start of a segment. Gradients of weights add
 * rows of a head from the last one of each segment to its first, segment by segment, in FP64; then
 * these sums of the sequences, in order. */
enum { DELTA_CHUNK = 64 };

#endif
