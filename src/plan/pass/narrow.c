#include <string.h>

#include "plan/list.h"
#include "plan/pass/passes.h"

sifr_status plan_add_narrow(plan_schedule *s, int32_t buffer, int64_t offset, int64_t elements,
                            int32_t micro_batch, int32_t *out, sifr_error *error) {
    base_dtype dtype = device_dtype_of(s->settings.step.communication_data_type);
    int32_t segment = s->buffers[buffer].segment;
    plan_instruction in = {.action = PLAN_ADD,
                           .queue = PLAN_COMPUTE,
                           .unit = (int16_t)s->buffers[buffer].unit,
                           .micro_batch = micro_batch,
                           .node = -1,
                           .wait = -1};
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CONVERT;
    call.x[0] =
        (device_matrix){.rows = 1, .columns = elements, .stride = elements, .dtype = BASE_FP32};
    call.y = (device_matrix){.rows = 1, .columns = elements, .stride = elements, .dtype = dtype};
    BASE_TRY(plan_add_segment_buffer(s, PLAN_GRADIENTS, elements * base_dtype_bytes(dtype), segment,
                                     -1, false, out, error));
    BASE_TRY(plan_add_operand(s, PLAN_X0, buffer, offset, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, *out, 0, error));
    BASE_TRY(plan_add_call(s, call, &in.call, error));
    return plan_add_instruction(s, in, error);
}
