/* Adapters against PEFT: five steps of training from adapter folders that it wrote, in fp32, as
 * close as PEFT and torch come in fp32 (tests/golden/README.md: make_lora.py); the same over
 * weights in 4 bits (make_qlora.py), with magnitudes (make_dora.py), and with both (make_qdora.py);
 * and the folder that is written afterwards. */
#include "support/golden_adapters.h"
#include "support/scratch.h"

static void steps(void **state) {
    (void)state;
    golden_adapters_run("lora", 5, scratch);
}

static void steps_with_magnitudes(void **state) {
    (void)state;
    golden_adapters_run("dora", 2, scratch);
}

static void steps_in_4_bits(void **state) {
    (void)state;
    golden_adapters_run("qlora", 2, scratch);
}

static void steps_with_both(void **state) {
    (void)state;
    golden_adapters_run("qdora", 2, scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(steps_in_4_bits),
                                       cmocka_unit_test(steps_with_magnitudes),
                                       cmocka_unit_test(steps_with_both)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
