/* Runs a finished plan without kernels, and follows what the bytes of weights, gradients and states
 * are (docs/schedule.md, "Verification"). */
#ifndef PLAN_CONTENT_CHECK_H
#define PLAN_CONTENT_CHECK_H

#include "plan/schedule.h"

/* Kernels read the weights that they are of, of this step. A gather brings the parts of the vector
 * that its ranks own, a reduction leaves this rank's part. An update moves the elements that it is
 * of, with their gradient over all ranks. At the end of the step all weights and states are one
 * update further. */
sifr_status plan_check_content(const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

#endif
