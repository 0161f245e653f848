/* A list by hand whose collectives move values of no segment: sums over tensor ranks and, in
 * 16 bits, over contexts, an exchange of parts that differ in size, a gather among neighbours.
 * Included by one test file each; of the model and the device of disk_plan.h. */
#ifndef SUPPORT_VALUE_CASE_H
#define SUPPORT_VALUE_CASE_H

#include "base/checked.h"
#include "plan/list.h"
#include "support/disk_plan.h"

enum { VALUE_TENSORS = 4, VALUE_CONTEXTS = 2, VALUE_RANKS = 8, VALUES = 24 };

typedef struct value_case {
    plan_schedule *s;
    int32_t given, part, whole, narrow, taken, gathered; /* buffers */
} value_case;

static inline plan_mesh value_case_mesh(int32_t rank) {
    plan_mesh mesh = {.ranks = {1, 1, 1, VALUE_CONTEXTS, VALUE_TENSORS}, .near = VALUE_CONTEXTS};
    return plan_mesh_at(&mesh, rank);
}

/* Bytes that context rank `from` sends to `to`. */
static inline int64_t value_case_part(int32_t from, int32_t to) {
    return 4 * (1 + from + 2 * to);
}

static inline int32_t value_case_buffer(plan_schedule *s, plan_class class, int64_t bytes) {
    int32_t out;
    assert_int_equal(plan_add_buffer(s, class, bytes, -1, -1, true, &out, NULL), SIFR_OK);
    return out;
}

static inline void value_case_operands(plan_schedule *s, int32_t x, int32_t y) {
    if (x >= 0) assert_int_equal(plan_add_operand(s, PLAN_X0, x, 0, NULL), SIFR_OK);
    assert_int_equal(plan_add_operand(s, PLAN_Y, y, 0, NULL), SIFR_OK);
}

/* y = 0, y += x or y = x, of all values. */
static inline void value_case_kernel(plan_schedule *s, device_kernel kernel, int32_t x, int32_t y,
                                     base_dtype to) {
    plan_instruction in = {
        .action = PLAN_ADD, .unit = -1, .micro_batch = -1, .node = -1, .segment = -1, .wait = -1};
    device_call call = {.kernel = kernel};
    if (x >= 0) call.x[0] = (device_matrix){NULL, 1, VALUES, VALUES, BASE_FP32};
    call.y = (device_matrix){NULL, 1, VALUES, VALUES, to};
    value_case_operands(s, x, y);
    assert_int_equal(plan_add_call(s, call, &in.call, NULL), SIFR_OK);
    assert_int_equal(plan_add_instruction(s, in, NULL), SIFR_OK);
}

static inline void value_case_collective(plan_schedule *s, plan_collective c, int32_t x,
                                         int32_t y) {
    c.segment = c.unit = c.micro_batch = -1;
    value_case_operands(s, x, y);
    assert_int_equal(plan_add_collective(s, &c, NULL), SIFR_OK);
}

static inline void value_case_sum(plan_schedule *s, plan_span span, base_dtype type, int32_t x,
                                  int32_t y) {
    int64_t slice = VALUES / plan_mesh_ranks(&s->settings.mesh, span);
    plan_code code = plan_code_of(type);
    value_case_collective(s,
                          (plan_collective){.action = PLAN_SUM,
                                            .span = span,
                                            .encoding = code,
                                            .sum = type,
                                            .bytes = plan_encoded_bytes(code, slice)},
                          x, y);
}

static inline void value_case_exchange(plan_schedule *s, int32_t x, int32_t y) {
    comm_run sent[VALUE_CONTEXTS], received[VALUE_CONTEXTS];
    int32_t own = plan_mesh_place(&s->settings.mesh, PLAN_CONTEXTS);
    int64_t in = 0, out = 0;
    for (int32_t r = 0; r < VALUE_CONTEXTS; r++) {
        sent[r] = (comm_run){out, value_case_part(own, r)};
        received[r] = (comm_run){in, value_case_part(r, own)};
        out += sent[r].bytes;
        in += received[r].bytes;
    }
    value_case_collective(s,
                          (plan_collective){.action = PLAN_EXCHANGE,
                                            .span = PLAN_CONTEXTS,
                                            .encoding = PLAN_CODE_FP32,
                                            .sent = sent,
                                            .received = received},
                          x, y);
}

static inline void value_case_gather(plan_schedule *s, int32_t x, int32_t y) {
    value_case_collective(s,
                          (plan_collective){.action = PLAN_GATHER,
                                            .span = PLAN_HOSTS,
                                            .encoding = PLAN_CODE_FP32,
                                            .bytes = VALUES * 4},
                          x, y);
}

/* The schedule of an evaluation, whose own list is left out, with these buffers. */
static inline value_case value_case_begin(const sifr_model *of, device *on, int32_t rank) {
    plan_settings settings = disk_plan_settings(1, 0, SIFR_FP32, (sifr_offload){0});
    value_case c;
    settings.mode = PLAN_EVALUATE;
    settings.step.gradient_accumulation_steps = 1;
    settings.mesh = value_case_mesh(rank); /* of a model that is not cut */
    settings.mesh.ranks[PLAN_AXIS_TENSOR] = settings.mesh.ranks[PLAN_AXIS_CONTEXT] = 1;
    settings.mesh.place[PLAN_AXIS_TENSOR] = settings.mesh.place[PLAN_AXIS_CONTEXT] = 0;
    assert_int_equal(plan_lower(of, on, &settings, &c.s, NULL), SIFR_OK);
    c.s->settings.mesh = value_case_mesh(rank);
    plan_empty_list(c.s);
    c.given = value_case_buffer(c.s, PLAN_INPUTS, VALUES * 4);
    c.part = value_case_buffer(c.s, PLAN_ACTIVATIONS, VALUES * 4);
    c.whole = value_case_buffer(c.s, PLAN_ACTIVATIONS, VALUES * 4);
    c.narrow = value_case_buffer(c.s, PLAN_ACTIVATIONS, VALUES * 2);
    c.taken = value_case_buffer(c.s, PLAN_ACTIVATIONS, VALUES * 4);
    c.gathered = value_case_buffer(c.s, PLAN_ACTIVATIONS, VALUE_CONTEXTS * VALUES * 4);
    return c;
}

static inline void value_case_make_part(const value_case *c) {
    value_case_kernel(c->s, DEVICE_CLEAR, -1, c->part, BASE_FP32);
    value_case_kernel(c->s, DEVICE_ADD_INTO, c->given, c->part, BASE_FP32);
}

/* All of it, with its waits and places. */
static inline value_case value_case_whole(const sifr_model *of, device *on, int32_t rank) {
    value_case c = value_case_begin(of, on, rank);
    value_case_make_part(&c);
    value_case_sum(c.s, PLAN_TENSORS, BASE_FP32, c.part, c.whole);
    value_case_kernel(c.s, DEVICE_CONVERT, c.given, c.narrow, BASE_BF16);
    value_case_sum(c.s, PLAN_CONTEXTS, BASE_BF16, c.narrow, c.narrow);
    value_case_exchange(c.s, c.whole, c.taken);
    value_case_gather(c.s, c.whole, c.gathered);
    assert_int_equal(plan_pass_overlap(c.s, NULL), SIFR_OK);
    int64_t before = c.s->total_bytes; /* buffers of the list that is left out lie there still */
    assert_int_equal(plan_memory(c.s, NULL), SIFR_OK);
    c.s->total_bytes = base_max_i64(c.s->total_bytes, before);
    return c;
}

#endif
