/* Predicted time, on a list that is short enough to work out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/description.h"
#include "plan/price/price.h"

enum { KERNELS = 5, MOST = 16 };

/* Kernel n takes n seconds, a call 1 s and a byte 1 s. */
static const plan_machine machine = {.fp32_operations = 1,
                                     .memory_bytes = 4,
                                     .host = {1, 1},
                                     .network = {100, 0.5},
                                     .ranks_per_host = 2};

/* Calls of no op: the model behind them has one node that runs none of their kernels. */
static model_node node = {.op = &model_op_gelu};
static const sifr_model model = {.nodes = &node, .node_count = 1};

typedef struct short_list {
    plan_schedule schedule;
    plan_instruction instructions[MOST];
    device_call calls[KERNELS];
} short_list;

static void begin(short_list *list, int32_t ranks) {
    memset(list, 0, sizeof *list);
    list->schedule.model = &model;
    list->schedule.settings.mesh = plan_mesh_flat(ranks, 0);
    list->schedule.settings.step.precision = SIFR_FP32;
    list->schedule.instructions = list->instructions;
    list->schedule.calls = list->calls;
    list->schedule.call_count = KERNELS;
    for (int n = 0; n < KERNELS; n++) {
        list->calls[n].kernel = DEVICE_CLEAR;
        list->calls[n].y = (device_matrix){NULL, 1, n, n, BASE_FP32};
    }
}

static void add(short_list *list, plan_action action, int32_t call, int64_t bytes, int32_t wait) {
    list->instructions[list->schedule.instruction_count++] = (plan_instruction){
        .action = (uint8_t)action, .span = PLAN_STATE, .call = call, .bytes = bytes, .wait = wait};
}

static void kernel(short_list *list, int32_t seconds) {
    add(list, PLAN_FORWARD, seconds, 0, -1);
}

static void make(short_list *list, int32_t ranks) {
    begin(list, ranks);
    add(list, PLAN_GATHER, -1, 4, -1); /* on its way from 0 to 5 */
    kernel(list, 3);
    add(list, PLAN_GATHER, -1, 2, -1); /* behind the other: 5 to 8 */
    add(list, PLAN_WAIT, -1, 0, 0);    /* 3 to 5 */
    kernel(list, 1);
    add(list, PLAN_WAIT, -1, 0, 2); /* 6 to 8 */
    kernel(list, 2);
    add(list, PLAN_REDUCE, -1, 10, -1); /* 10 to 21 */
    kernel(list, 4);
    add(list, PLAN_COUNT, -1, 0, -1); /* in line, 21 to 30, and the kernels stand from 14 on */
    kernel(list, 1);
}

static void two_queues(void **state) {
    (void)state;
    static const float held[] = {0, 3, 0, 2, 1, 2, 2, 0, 4, 16, 1};
    short_list list;
    plan_prediction p;
    float seconds[MOST];
    sifr_error error;
    make(&list, 2);
    assert_int_equal(plan_predict(&list.schedule, &machine, &p, seconds, &error), SIFR_OK);
    assert_float_equal(p.step_seconds, 31, 1e-9);
    assert_float_equal(p.computing, 11, 1e-9);
    assert_float_equal(p.communication, 28, 1e-9);
    assert_float_equal(p.waiting, 20, 1e-9);
    for (size_t i = 0; i < list.schedule.instruction_count; i++)
        assert_float_equal(seconds[i], held[i], 1e-6);
    assert_float_equal(plan_price(&list.schedule, 0, &machine), 5, 1e-9);
    assert_float_equal(plan_price(&list.schedule, 3, &machine), 0, 1e-9);
    assert_float_equal(plan_price(&list.schedule, 8, &machine), 4, 1e-9);
}

/* What is still on its way at the end belongs to the step. */
static void an_open_end(void **state) {
    (void)state;
    short_list list;
    plan_prediction p;
    sifr_error error;
    begin(&list, 2);
    kernel(&list, 1);
    add(&list, PLAN_REDUCE, -1, 6, -1);
    assert_int_equal(plan_predict(&list.schedule, &machine, &p, NULL, &error), SIFR_OK);
    assert_float_equal(p.step_seconds, 8, 1e-9);
    assert_float_equal(p.waiting, 0, 1e-9);
}

/* Three ranks are on two hosts: twice the bytes, through the network. */
static void several_hosts(void **state) {
    (void)state;
    short_list list;
    plan_prediction p;
    sifr_error error;
    begin(&list, 3);
    add(&list, PLAN_GATHER, -1, 4, -1);
    assert_int_equal(plan_predict(&list.schedule, &machine, &p, NULL, &error), SIFR_OK);
    assert_float_equal(p.step_seconds, 100 + 2 * 4 / 0.5, 1e-9);
    begin(&list, 1);
    add(&list, PLAN_COUNT, -1, 0, -1); /* alone nobody is asked */
    kernel(&list, 2);
    assert_int_equal(plan_predict(&list.schedule, &machine, &p, NULL, &error), SIFR_OK);
    assert_float_equal(p.step_seconds, 2, 1e-9);
    assert_float_equal(p.communication, 0, 1e-9);
}

/* Two tensor ranks on each of two hosts: the other half comes once for each of them, so the link
 * has to bring two parts, in which time a gather among all four would deliver three. */
static void groups_share_a_link(void **state) {
    (void)state;
    short_list list;
    plan_prediction p;
    sifr_error error;
    begin(&list, 2);
    list.schedule.settings.mesh.ranks[PLAN_AXIS_TENSOR] = 2;
    add(&list, PLAN_GATHER, -1, 4, -1);
    assert_int_equal(plan_predict(&list.schedule, &machine, &p, NULL, &error), SIFR_OK);
    assert_float_equal(p.step_seconds, 100 + 3 * 4 / 0.5, 1e-9);
    begin(&list, 4); /* all of them in one group, which the figure is of */
    add(&list, PLAN_GATHER, -1, 4, -1);
    assert_int_equal(plan_predict(&list.schedule, &machine, &p, NULL, &error), SIFR_OK);
    assert_float_equal(p.step_seconds, 100 + 3 * 4 / 0.5, 1e-9);
}

static void move(short_list *list, plan_action action, int64_t bytes) {
    add(list, action, -1, bytes, -1);
    list->instructions[list->schedule.instruction_count - 1].queue = PLAN_COPY;
}

/* Copies in both directions share a queue, or on a GPU have one each. */
static void two_directions(void **state) {
    (void)state;
    for (int cuda = 0; cuda < 2; cuda++) {
        short_list list;
        plan_prediction p;
        sifr_error error;
        plan_machine copies = machine;
        copies.copy_bytes = 1;
        copies.device = cuda ? PLAN_MACHINE_CUDA : PLAN_MACHINE_CPU;
        begin(&list, 1);
        move(&list, PLAN_WRITE, 8); /* 0 to 8 */
        move(&list, PLAN_READ, 4);  /* 8 to 12, on a GPU 0 to 4 */
        move(&list, PLAN_READ, 2);  /* 12 to 14, on a GPU 4 to 6 */
        add(&list, PLAN_WAIT, -1, 0, 1);
        kernel(&list, 3); /* 12 to 15, on a GPU 4 to 7 */
        add(&list, PLAN_WAIT, -1, 0, 2);
        add(&list, PLAN_WAIT, -1, 0, 0); /* on a GPU 7 to 8 */
        kernel(&list, 1);
        move(&list, PLAN_WRITE, 5); /* on its way when the step ends */
        assert_int_equal(plan_predict(&list.schedule, &copies, &p, NULL, &error), SIFR_OK);
        assert_float_equal(p.step_seconds, (cuda ? 14 : 21), 1e-9);
        assert_float_equal(p.waiting, (cuda ? 5 : 12), 1e-9);
        assert_float_equal(p.copy, 19, 1e-9);
        assert_float_equal(p.copy_out, 13, 1e-9);
    }
}

static void an_assumption(void **state) {
    (void)state;
    plan_machine unknown = machine;
    unknown.host.bytes_per_second = unknown.network.bytes_per_second = 0;
    plan_link near = plan_link_of(&unknown, false), far = plan_link_of(&unknown, true);
    assert_true(near.bytes_per_second > far.bytes_per_second);
    assert_true(far.bytes_per_second > 0);
    assert_true(far.latency_seconds > near.latency_seconds);
    assert_true(near.latency_seconds > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_queues),     cmocka_unit_test(an_open_end),
        cmocka_unit_test(several_hosts),  cmocka_unit_test(groups_share_a_link),
        cmocka_unit_test(two_directions), cmocka_unit_test(an_assumption)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
