/* Shared by the checks. */
#ifndef PLAN_VERIFY_PRIVATE_H
#define PLAN_VERIFY_PRIVATE_H

#include "plan/verify/verify.h"

/* Names for messages: "#12 forward of blocks.0", "buffer 7 (activations)". The index itself must be
 * valid; indices stored in the instruction or buffer need not be. */
enum { VERIFY_NAME_LENGTH = 160 };
const char *verify_name_instruction(const plan_schedule *schedule, size_t index,
                                    char out[VERIFY_NAME_LENGTH]);
const char *verify_name_buffer(const plan_schedule *schedule, int32_t buffer,
                               char out[VERIFY_NAME_LENGTH]);

#define VERIFY_FAULT(text) "plan: " text " (this is a bug in the planner, please report it)"

/* Past the end of the step. */
static inline bool verify_lives_on(const plan_buffer *buffer) {
    return buffer->first >= 0 && buffer->last >= 0 && buffer->last < buffer->first;
}

sifr_status verify_memory(const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

#endif
