/* Adapters on two tensor ranks, as threads: five steps of training from adapter folders that PEFT
 * wrote, with its losses, norms and updates, and its folder afterwards (tests/golden/README.md:
 * make_lora.py, and with magnitudes make_dora.py). All kinds of matrices are among them: fused
 * ones, and those cut by outputs, by inputs and not at all. */
#include "support/golden_adapters.h"
#include "support/scratch.h"

static void steps(void **state) {
    (void)state;
    golden_adapters_divide("lora", 5, scratch, 2);
}

/* Magnitudes are cut with the outputs of their matrix; where its inputs are cut, the squares of the
 * norms are sums over the ranks. */
static void steps_with_magnitudes(void **state) {
    (void)state;
    golden_adapters_divide("dora", 2, scratch, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps),
                                       cmocka_unit_test(steps_with_magnitudes)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
