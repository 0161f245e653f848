/* Pipelines of many micro batches: the first stage of GPipe sends all of them on before it receives
 * a gradient, and none of its transfers may keep a place in line meanwhile. The bits of 1F1B. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/zero_run.h"

enum { MICRO_BATCHES = 100 }; /* more than a line has places (comm/worker.h) */

static void as_1f1b(void **state) {
    (void)state;
    for (int32_t stages = 2; stages <= 4; stages += 2) {
        zero_variant v = {.ranks = 1,
                          .stages = stages,
                          .type = "llama",
                          .layers = 4,
                          .global = MICRO_BATCHES,
                          .steps = 2,
                          .schedule = SIFR_SCHEDULE_1F1B};
        zero_outcome want = zero_run(v);
        v.schedule = SIFR_SCHEDULE_GPIPE;
        zero_expect_same(&want, v);
        v.schedule = SIFR_SCHEDULE_INTERLEAVED;
        v.chunks = stages == 2 ? 2 : 1;
        if (v.chunks > 1) zero_expect_same(&want, v);
        free(want.weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_1f1b)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
