#include <string.h>

#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"

sifr_status plan_add_narrow(plan_schedule *s, int32_t buffer, int64_t offset, int64_t elements,
                            int32_t micro_batch, int32_t *out, sifr_error *error) {
    const plan_encoding *narrow = plan_encoding_of(plan_sent_sums(&s->settings));
    int32_t segment = s->buffers[buffer].segment;
    plan_instruction in = {.action = PLAN_ADD,
                           .queue = PLAN_COMPUTE,
                           .unit = (int16_t)s->buffers[buffer].unit,
                           .micro_batch = micro_batch,
                           .node = -1,
                           .wait = -1};
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = narrow->encode;
    call.x[0] =
        (device_matrix){.rows = 1, .columns = elements, .stride = elements, .dtype = BASE_FP32};
    call.y =
        (device_matrix){.rows = 1, .columns = elements, .stride = elements, .dtype = narrow->type};
    BASE_TRY(plan_add_segment_buffer(s, PLAN_GRADIENTS, elements * narrow->bytes, segment, -1,
                                     false, out, error));
    BASE_TRY(plan_add_operand(s, PLAN_X0, buffer, offset, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, *out, 0, error));
    BASE_TRY(plan_add_call(s, call, &in.call, error));
    return plan_add_instruction(s, in, error);
}
