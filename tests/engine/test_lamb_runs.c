/* LAMB: the same bits at every stage and rank count, where each rank has a part of a weight and its
 * ratio is that of the whole. Its steps: test_golden_optimizers.
 * label: full, timeout: 300 */
#include "support/optimizer_runs.h"

static const sifr_optimizer_group some_groups[] = {{"*mlp*", 2, -1}, {"*embed*", 3, 0}};

#define LAMB                                                                                       \
    .type = SIFR_LAMB, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .bias_correction = true,          \
    .min_coeff = 0.01, .max_coeff = 10

static optimizer_pair pair = {.plain = {LAMB},
                              .rich = {LAMB, .ema_decay = 0.5,
                                       .no_decay = SIFR_NO_DECAY_TRANSFORMERS,
                                       .groups = some_groups, .group_count = 2}};

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(optimizer_stages_and_ranks, &pair),
        cmocka_unit_test_prestate(optimizer_narrow_states, &pair),
        cmocka_unit_test_prestate(optimizer_copies_of_the_state, &pair),
        cmocka_unit_test_prestate(optimizer_on_queues, &pair),
        cmocka_unit_test_prestate(optimizer_tiers, &pair)};
    return cmocka_run_group_tests(tests, optimizer_setup, optimizer_teardown);
}
