/* Lists of context ranks that gather keys and values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/pass/passes.h"
#include "support/search_case.h"

/* They do not grow with the number of short sequences, or a search for the largest micro batch
 * would take minutes and gigabytes. */
static void many_sequences(void **state) {
    (void)state;
    enum { RANKS = 2 };
    search_case c;
    sifr_error error;
    size_t instructions[2];
    search_case_begin(&c, RANKS);
    c.settings.step.mesh.context_size = RANKS;
    c.settings.step.mesh.context_kind = SIFR_CONTEXT_GATHER;
    assert_int_equal(plan_mesh_of(&c.settings.step, RANKS, 0, &c.settings.mesh, &error), SIFR_OK);
    for (int i = 0; i < 2; i++) {
        plan_schedule *s;
        c.settings.step.micro_batch_size = i ? 40 : 400;
        assert_int_equal(plan_lower(c.model, c.dev, &c.settings, &s, &error), SIFR_OK);
        instructions[i] = s->instruction_count;
        plan_free(s);
    }
    assert_int_equal(instructions[0], instructions[1]);
    search_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
