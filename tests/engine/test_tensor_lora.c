/* Adapters on two tensor ranks, as threads: five steps of training from adapter folders that PEFT
 * wrote, with its losses, norms and updates, and its folder afterwards (tests/golden/README.md:
 * make_lora.py). All kinds of matrices are among them: fused ones, and those cut by outputs, by
 * inputs and not at all. */
#include "support/golden_adapters.h"
#include "support/scratch.h"

static void steps(void **state) {
    (void)state;
    golden_adapters_divide("lora", 5, scratch, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
