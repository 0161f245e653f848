#include <stdio.h>

#include "plan/verify/verify_private.h"

static const char *unit_name(const plan_schedule *s, int32_t unit) {
    bool known = unit >= 0 && (size_t)unit < s->model->unit_count;
    return known ? s->model->units[unit].name : NULL;
}

const char *verify_name_instruction(const plan_schedule *s, size_t index,
                                    char out[VERIFY_NAME_LENGTH]) {
    const plan_instruction *in = &s->instructions[index];
    const char *unit = unit_name(s, in->unit);
    const char *action =
        in->action < PLAN_ACTIONS ? plan_action_name((plan_action)in->action) : "unknown action";
    snprintf(out, VERIFY_NAME_LENGTH, "#%zu %s%s%s", index, action, unit ? " of " : "",
             unit ? unit : "");
    return out;
}

const char *verify_name_buffer(const plan_schedule *s, int32_t buffer,
                               char out[VERIFY_NAME_LENGTH]) {
    const plan_buffer *b = &s->buffers[buffer];
    const char *unit = unit_name(s, b->unit);
    snprintf(out, VERIFY_NAME_LENGTH, "buffer %d (%s%s%s)", buffer, plan_class_name(b->class),
             unit ? " of " : "", unit ? unit : "");
    return out;
}
