/* label: full; timeout: 200
 * Checkpoints of several ranks (threads of this process) whose weights lie in blocks
 * (model/weight_blocks.h), as if an axis cut them: what lies in one order goes on in another. */
#include "support/scratch.h"
#include "support/sharded_run.h"

/* 1, 2, 4 and 8 ranks at each stage, then copies of the state: 2 x 2. */
static sharded_shape shape_of(int number, sifr_precision precision) {
    static const int32_t meshes[][2] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {4, 2}};
    const int32_t *mesh = meshes[number / 4 % 5];
    return (sharded_shape){mesh[0], number % 4, precision, mesh[1]};
}

/* Halves lie as in the whole, so with them training has the same bits. Other cuts hand on. */
static void any_cut_to_any(void **state) {
    (void)state;
    static const sifr_precision precisions[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    for (int n = 0; n < 2 * SHARDED_CUTS; n++) {
        sifr_precision precision = precisions[n % 3];
        uint64_t wanted[SHARDED_MOST_STEPS];
        const char *output = scratch_fresh("cut"), *again = scratch_fresh("again");
        sharded_cut first = n % 2 ? SHARDED_HALVES : SHARDED_WHOLE;
        sharded_cut hops[] = {(sharded_cut)(n / 2), (sharded_cut)((n + 1) % SHARDED_CUTS),
                              SHARDED_TURNED, SHARDED_ROTATED, SHARDED_HALVES};
        sharded_reference(precision, 4, wanted);
        sharded_succeeds((sharded_task){
            .shape = shape_of(n * 5 + 1, precision), .cut = first, .to = output, .steps = 2});
        assert_int_equal(sharded_last()->hash, wanted[2]);
        for (int i = 0; i < 5; i++) {
            sharded_succeeds((sharded_task){.shape = shape_of(n * 3 + i * 5, precision),
                                            .cut = hops[i],
                                            .from = i % 2 ? again : output,
                                            .to = i % 2 ? output : again});
            if (sharded_last()->hash != wanted[2])
                fail_msg("case %d: other state after hop %d", n, i);
            scratch_fresh(i % 2 ? "again" : "cut");
        }
        sharded_succeeds(
            (sharded_task){.shape = shape_of(n + 1, precision), .from = again, .steps = 2});
        assert_int_equal(sharded_last()->step, 4);
        assert_int_equal(sharded_last()->hash, wanted[4]);
    }
}

/* Frozen weights of a run in one type, taken by one in another, and of states that belong to
 * several elements, which lie in no block. */
static void types_and_refusals(void **state) {
    (void)state;
    static const sifr_optimizer coded = {
        .type = SIFR_ADAMW_8BIT, .beta1 = 0.9, .beta2 = 0.9, .eps = 1e-8, .min_8bit_size = 1000};
    const char *output = scratch_fresh("frozen");
    sharded_task t = {.shape = {2, 3, SIFR_BF16, 0}, .freeze = "*proj*", .to = output};
    sharded_succeeds(t);
    uint64_t before = sharded_last()->hash;
    t.from = output, t.to = scratch_fresh("turned"), t.cut = SHARDED_TURNED;
    sharded_succeeds(t);
    assert_int_equal(sharded_last()->hash, before);
    t.from = t.to, t.to = NULL, t.shape.precision = SIFR_FP32, t.cut = SHARDED_ROTATED;
    sharded_succeeds(t);
    t.from = output, t.shape = (sharded_shape){1, 0, SIFR_FP32, 0}, t.cut = SHARDED_WHOLE;
    before = sharded_last()->hash;
    sharded_succeeds(t);
    assert_int_equal(sharded_last()->hash, before);
    t = (sharded_task){
        .shape = {2, 1, SIFR_BF16, 0}, .optimizer = &coded, .to = output, .cut = SHARDED_TURNED};
    assert_int_equal(sharded_run(t), SIFR_USAGE);
    assert_message(&sharded_last()->error, "which is cut into blocks, has values for several");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_cut_to_any),
                                       cmocka_unit_test(types_and_refusals)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
