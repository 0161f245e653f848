/* Whether two calls are the same. Their bytes do not tell: padding has any value. */
#ifndef DEVICE_SAME_CALL_H
#define DEVICE_SAME_CALL_H

#include "device/call.h"

bool device_same_matrix(const device_matrix *a, const device_matrix *b);

/* Of two calls of one kernel. */
bool device_same_attributes(const device_call *a, const device_call *b);

/* All that device_prepare does not set. */
bool device_same_call(const device_call *a, const device_call *b);

#endif
