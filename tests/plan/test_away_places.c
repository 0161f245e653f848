/* Where in a file things lie that are there. */
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "support/list_case.h"

/* What is offloaded lies in its file page after page, whenever it lives, and takes nothing here. */
static void what_is_away(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    static const int64_t bytes[] = {1, 4096, 4097, 0, 12288};
    static const int64_t offsets[] = {0, 4096, 8192, 16384, 16384};
    int64_t classes[PLAN_CLASSES];
    const plan_instruction use = {.unit = -1, .call = -1, .wait = -1};
    for (int i = 0; i < 5; i++) {
        int32_t buffer = list_case_buffer(s, i % 2 ? PLAN_MOMENTS : PLAN_MASTERS, bytes[i], i % 2);
        s->buffers[buffer].tier = PLAN_NVME;
        list_case_operand(s, PLAN_X0, buffer, 0);
        list_case_instruction(s, use);
    }
    assert_int_equal(plan_memory(s, NULL), SIFR_OK);
    for (int i = 0; i < 5; i++) assert_int_equal(s->buffers[i].offset, offsets[i]);
    assert_int_equal(s->nvme_bytes, 28672);
    assert_int_equal(s->total_bytes, 0);
    assert_int_equal(s->host_bytes, 0);
    plan_offloaded_classes(s, PLAN_NVME, classes);
    assert_int_equal(classes[PLAN_MASTERS], 4096 + 8192 + 12288);
    assert_int_equal(classes[PLAN_MOMENTS], 4096);
    plan_offloaded_classes(s, PLAN_HOST, classes);
    assert_int_equal(classes[PLAN_MASTERS] + classes[PLAN_MOMENTS], 0);
    plan_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_away)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
