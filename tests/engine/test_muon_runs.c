/* Muon: the same bits at every stage and rank count, where each rank has a part of a matrix and
 * updates it by the whole. Its steps: test_golden_optimizers.
 * label: full, timeout: 300 */
#include "support/optimizer_runs.h"

static const sifr_optimizer_group some_groups[] = {{"*mlp*", 2, -1}, {"*embed*", 3, 0}};

#define MUON                                                                                       \
    .type = SIFR_MUON, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-10, .bias_correction = true,         \
    .decoupled = true, .momentum = 0.95, .weight_decay = 0.01

static optimizer_pair pair = {.plain = {MUON},
                              .rich = {MUON, .ns_method = SIFR_NS_STANDARD, .muon_scale = 2,
                                       .adam_scale = 0.1, .no_decay = SIFR_NO_DECAY_TRANSFORMERS,
                                       .groups = some_groups, .group_count = 2}};

/* The two forms give other updates, and so do other rates of the two halves. */
static void settings_act(void **state) {
    (void)state;
    sifr_optimizer one = pair.plain, changed[3] = {one, one, one};
    zero_variant v = optimizer_variant(&one, SIFR_FP32);
    zero_outcome want = zero_run(v);
    changed[0].ns_method = SIFR_NS_STANDARD;
    changed[1].muon_scale = 2;
    changed[2].adam_scale = 2;
    for (int i = 0; i < 3; i++) {
        v.optimizer = &changed[i];
        zero_outcome have = zero_run(v);
        assert_false(zero_is_same(&want, &have));
        free(have.weights);
    }
    free(want.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(optimizer_stages_and_ranks, &pair),
        cmocka_unit_test_prestate(optimizer_narrow_states, &pair),
        cmocka_unit_test_prestate(optimizer_copies_of_the_state, &pair),
        cmocka_unit_test_prestate(optimizer_on_queues, &pair),
        cmocka_unit_test_prestate(optimizer_tiers, &pair),
        cmocka_unit_test(settings_act)};
    return cmocka_run_group_tests(tests, optimizer_setup, optimizer_teardown);
}
