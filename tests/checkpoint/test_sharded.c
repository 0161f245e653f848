/* label: full; timeout: 300
 * Checkpoints of several ranks (threads of this process): what any stage and rank count saved, any
 * other goes on from to the same bits. Their files are tested in test_sharded_files.c. */
#include "support/scratch.h"
#include "support/sharded_run.h"

static const sifr_precision precisions[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};

/* 1, 2, 4 and 8 ranks at each stage, then copies of the state: 2 x 2, 4 x 2 and 2 x 4. */
static sharded_shape shape_of(int number, sifr_precision precision) {
    static const int32_t meshes[][2] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {4, 2}, {8, 2}, {8, 4}};
    const int32_t *mesh = meshes[number / 4];
    return (sharded_shape){mesh[0], number % 4, precision, mesh[1]};
}

/* Each of 28 shapes saves, and others, together all, go on from there. */
static void any_shape_to_any(void **state) {
    (void)state;
    enum { SHAPES = 28 };
    for (int p = 0; p < 3; p++) {
        sifr_precision precision = precisions[p];
        int partners = precision == SIFR_BF16 ? 3 : 1;
        uint64_t wanted[SHARDED_MOST_STEPS];
        sharded_reference(precision, 4, wanted);
        for (int i = 0; i < SHAPES; i++) {
            const char *output = scratch_fresh("any");
            sharded_succeeds(
                (sharded_task){.shape = shape_of(i, precision), .to = output, .steps = 2});
            assert_int_equal(sharded_last()->hash, wanted[2]);
            for (int k = 0; k < partners; k++) {
                int other = (i * 3 + k * 5 + p) % SHAPES;
                sharded_succeeds((sharded_task){
                    .shape = shape_of(other, precision), .from = output, .steps = 2});
                assert_int_equal(sharded_last()->step, 4);
                if (sharded_last()->hash != wanted[4])
                    fail_msg("saved by shape %d, other bits at shape %d", i, other);
            }
        }
    }
}

/* Frozen weights, of units frozen in part and as a whole: a checkpoint holds them in the training
 * type, or not at all where they are in the folder that they came from. */
static void frozen_weights(void **state) {
    (void)state;
    static const char *const patterns[] = {"*proj*", "*layers.0.*"};
    for (int n = 0; n < 12; n++) {
        sifr_precision precision = precisions[n % 3];
        int first = (n * 5 + 3) % 16, second = (n * 7 + 2) % 16;
        sharded_task t = {.shape = {1, 0, precision, 0},
                          .steps = 4,
                          .freeze = patterns[n / 3 % 2],
                          .based = n / 6};
        sharded_succeeds(t);
        uint64_t middle = sharded_last()->steps[2], end = sharded_last()->steps[4];
        t.steps = 2;
        t.shape = shape_of(first, precision);
        t.to = scratch_fresh("frozen");
        sharded_succeeds(t);
        assert_int_equal(sharded_last()->hash, middle);
        t.from = t.to, t.to = NULL;
        t.shape = shape_of(second, precision);
        sharded_succeeds(t);
        assert_int_equal(sharded_last()->step, 4);
        if (sharded_last()->hash != end)
            fail_msg("%s: saved by shape %d, other bits at shape %d", t.freeze, first, second);
    }
}

/* 3 and 5 ranks train to other bits, so they only hand on: 4 ranks save, they load and save again,
 * and one rank goes on. */
static void odd_counts_hand_on(void **state) {
    (void)state;
    static const int32_t counts[] = {3, 5, 7};
    for (int p = 0; p < 3; p++) {
        sifr_precision precision = precisions[p];
        uint64_t wanted[SHARDED_MOST_STEPS];
        sharded_reference(precision, 4, wanted);
        const char *first = scratch_fresh("first");
        sharded_succeeds((sharded_task){.shape = {4, 3, precision, 0}, .to = first, .steps = 2});
        for (int c = 0; c < 3; c++) {
            for (int stage = 0; stage < 4; stage++) {
                const char *second = scratch_fresh("second");
                sharded_succeeds((sharded_task){
                    .shape = {counts[c], stage, precision, 0}, .from = first, .to = second});
                assert_int_equal(sharded_last()->hash, wanted[2]);
                sharded_succeeds(
                    (sharded_task){.shape = {1, 0, precision, 0}, .from = second, .steps = 2});
                assert_int_equal(sharded_last()->hash, wanted[4]);
            }
        }
    }
}

/* With other states than AdamW's, and with what an optimizer remembers beside them. */
static void optimizers_go_on(void **state) {
    static const sifr_optimizer optimizers[] = {
        {.type = SIFR_SGD},
        {.type = SIFR_SGD, .momentum = 0.9, .dampening = 0.5},
        {.type = SIFR_ADAGRAD, .eps = 1e-10, .lr_decay = 0.5},
        {.type = SIFR_ADAMW, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8, .amsgrad = true},
        {.type = SIFR_LION, .beta1 = 0.9, .beta2 = 0.99},
        {.type = SIFR_SCHEDULE_FREE_ADAMW,
         .beta1 = 0.9,
         .beta2 = 0.99,
         .eps = 1e-8,
         .warmup_steps = 3,
         .r = 1,
         .weight_lr_power = 2},
        {.type = SIFR_ADAMW_8BIT, .beta1 = 0.9, .beta2 = 0.9, .eps = 1e-8, .min_8bit_size = 1000},
        {.type = SIFR_ADAMW,
         .beta1 = 0.9,
         .beta2 = 0.5,
         .eps = 1e-8,
         .ema_decay = 0.5,
         .no_decay = SIFR_NO_DECAY_TRANSFORMERS,
         .layer_decay = 0.7},
        {.type = SIFR_ADAGRAD, .eps = 1e-10, .ema_decay = 0.5},
        {.type = SIFR_LAMB,
         .beta1 = 0.9,
         .beta2 = 0.9,
         .eps = 1e-6,
         .min_coeff = 0.01,
         .max_coeff = 10,
         .ema_decay = 0.3},
        {.type = SIFR_MUON, .beta1 = 0.9, .beta2 = 0.9, .eps = 1e-8, .momentum = 0.9},
        {.type = SIFR_ADAFACTOR,
         .eps = 1e-30,
         .least_scale = 1e-3,
         .decay_rate = -0.8,
         .clip_threshold = 1,
         .scale_parameter = true},
        {.type = SIFR_ADAFACTOR,
         .eps = 1e-30,
         .decay_rate = -0.5,
         .clip_threshold = 1,
         .beta1 = 0.9,
         .has_momentum = true,
         .ema_decay = 0.3}};
    enum { COUNT = sizeof optimizers / sizeof *optimizers };
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        const sifr_optimizer *o = &optimizers[i];
        uint64_t wanted[SHARDED_MOST_STEPS];
        sifr_precision precision = i % 2 ? SIFR_BF16 : SIFR_FP32;
        const char *output = scratch_fresh("optimizer");
        sharded_succeeds((sharded_task){.shape = {1, 0, precision, 0}, .optimizer = o, .steps = 4});
        memcpy(wanted, sharded_last()->steps, sizeof wanted);
        sharded_succeeds((sharded_task){
            .shape = {4, 3, precision, 0}, .optimizer = o, .to = output, .steps = 2});
        assert_int_equal(sharded_last()->hash, wanted[2]);
        for (int32_t ranks = 1; ranks <= 2; ranks++) {
            sharded_succeeds((sharded_task){
                .shape = {ranks, ranks, precision, 0}, .optimizer = o, .from = output, .steps = 2});
            if (sharded_last()->hash != wanted[4])
                fail_msg("optimizer %d at %d ranks goes on to other bits", i, ranks);
        }
        sharded_task other = {.shape = {2, 2, precision, 0},
                              .optimizer = &optimizers[(i + 1) % COUNT],
                              .from = output};
        if (sharded_run(other) != SIFR_USAGE)
            fail_msg("optimizer %d: %s", i, sharded_last()->error.message);
        assert_message(&sharded_last()->error, "has the state of another optimizer (");
        other.optimizer = NULL;
        assert_int_equal(sharded_run(other), SIFR_USAGE);
        assert_message(&sharded_last()->error,
                       ") than AdamW, which this run has; set optimizer as it was");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape_to_any), cmocka_unit_test(frozen_weights),
        cmocka_unit_test(odd_counts_hand_on), cmocka_unit_test(optimizers_go_on)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
