/* Adafactor: the same bits at every stage and rank count, where each rank has a part of a weight
 * and reads the gradient of the whole. Its steps: test_golden_optimizers.
 * label: full, timeout: 300 */
#include "support/optimizer_runs.h"

static const sifr_optimizer_group some_groups[] = {{"*mlp*", 2, -1}, {"*embed*", 3, 0}};

#define ADAFACTOR                                                                                  \
    .type = SIFR_ADAFACTOR, .eps = 1e-30, .least_scale = 1e-3, .decay_rate = -0.8,                 \
    .clip_threshold = 1, .weight_decay = 0.1

static optimizer_pair pair = {.plain = {ADAFACTOR},
                              .rich = {ADAFACTOR, .beta1 = 0.9, .has_momentum = true,
                                       .scale_parameter = true, .ema_decay = 0.5,
                                       .no_decay = SIFR_NO_DECAY_TRANSFORMERS,
                                       .groups = some_groups, .group_count = 2},
                              .wide_states = true};

/* Sums of 16 bits are gathered as they are; they depend on the number of ranks. */
static void narrow_gradients(void **state) {
    (void)state;
    zero_variant v = optimizer_variant(&pair.rich, SIFR_BF16);
    v.gradients = SIFR_BF16;
    v.ranks = 2;
    zero_outcome want = zero_run(v);
    for (v.stage = 1; v.stage < 4; v.stage++) zero_expect_same(&want, v);
    free(want.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(optimizer_stages_and_ranks, &pair),
        cmocka_unit_test_prestate(optimizer_narrow_states, &pair),
        cmocka_unit_test(narrow_gradients),
        cmocka_unit_test_prestate(optimizer_copies_of_the_state, &pair),
        cmocka_unit_test_prestate(optimizer_on_queues, &pair),
        cmocka_unit_test_prestate(optimizer_tiers, &pair)};
    return cmocka_run_group_tests(tests, optimizer_setup, optimizer_teardown);
}
