/* Lists that a test writes by hand, of the model and the device of disk_plan.h. */
#ifndef SUPPORT_LIST_CASE_H
#define SUPPORT_LIST_CASE_H

#include "plan/list.h"
#include "support/disk_plan.h"

static inline plan_schedule *list_case_empty(void) {
    plan_schedule *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->model = model;
    s->dev = dev;
    return s;
}

/* Of unit 3, and there with index 5. */
static inline int32_t list_case_buffer(plan_schedule *s, plan_class class, int64_t bytes,
                                       bool permanent) {
    int32_t buffer;
    assert_int_equal(plan_add_buffer(s, class, bytes, 3, 5, permanent, &buffer, NULL), SIFR_OK);
    return buffer;
}

static inline void list_case_operand(plan_schedule *s, plan_role role, int32_t buffer,
                                     int64_t offset) {
    assert_int_equal(plan_add_operand(s, role, buffer, offset, NULL), SIFR_OK);
}

static inline void list_case_instruction(plan_schedule *s, plan_instruction in) {
    assert_int_equal(plan_add_instruction(s, in, NULL), SIFR_OK);
}

#endif
