/* The same bits with every micro batch at once and a tile of it at a time: whatever is kept, in
 * both orders, on 1, 2 and 4 ranks, with tiles that end in the middle of a sequence and last ones
 * of a few rows and of one, in stages of a pipeline; and tiles take less.
 * label: full */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/thinned.h"
#include "support/zero_run.h"

/* Tokens of a micro batch and how they are cut: rows of products are cut otherwise below 2,048. */
typedef struct tile_shape {
    int64_t sequences, length, tile;
} tile_shape;

static const tile_shape shapes[] = {
    {33, 70, 1024}, /* 2310: a last tile of 262 */
    {3, 683, 1024}, /* 2049: a last tile of 1 */
    {19, 67, 1024}, /* 1273 */
    {49, 64, 2048}, /* 3136 */
};

enum { SHAPES = sizeof shapes / sizeof *shapes, GLOBAL = 4 };

static zero_outcome expect(const zero_outcome *want, zero_variant v) {
    zero_outcome have = zero_run(v);
    if (!zero_is_same(want, &have) || have.evaluated != want->evaluated) {
        fail_msg("%s, %d ranks, stage %d, order %d, precision %d, recompute %d, at most %lld, "
                 "%lld x %lld in tiles of %lld: other bits",
                 v.type, v.ranks, v.stage, v.unit_order, v.precision, v.recompute,
                 (long long)v.activation_bytes, (long long)v.sequences, (long long)v.length,
                 (long long)v.tile_tokens);
    }
    free(have.weights);
    return have;
}

/* Nothing, everything and half of it computed again. */
static void tiled(const zero_outcome *want, zero_variant v) {
    zero_outcome all = expect(want, v);
    v.recompute = true;
    int64_t tile = v.tile_tokens;
    v.tile_tokens = 0;
    zero_outcome whole = expect(want, v);
    v.tile_tokens = tile;
    zero_outcome none = expect(want, v);
    assert_true(none.activations < whole.activations);
    v.activation_bytes = (all.activations + none.activations) / 2;
    zero_outcome half = expect(want, v);
    assert_true(half.activations <= v.activation_bytes);
    assert_true(half.again > 0);
    v.activation_bytes = 0;
    v.checkpoints = 1;
    expect(want, v);
}

static void same_bits(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    size_t turn = 0;
    for (int t = 0; t < 4; t++) {
        const tile_shape *shape = &shapes[t % SHAPES];
        zero_variant v = {.ranks = 1,
                          .type = types[t % 2],
                          .precision = t / 2 ? SIFR_BF16 : SIFR_FP32,
                          .global = GLOBAL,
                          .steps = 1,
                          .evaluate = true,
                          .sequences = shape->sequences,
                          .length = shape->length};
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
            v.stage = v.ranks - 1;
            v.unit_order = false;
            v.tile_tokens = 0;
            zero_outcome want = zero_run(v); /* evaluation depends on the rank count */
            v.tile_tokens = shape->tile;
            for (int order = 0; order < 2; order++) {
                v.unit_order = order;
                if (v.ranks > 1 && order == t % 2) continue;
                if (!thinned_out(turn++)) tiled(&want, v);
            }
            free(want.weights);
        }
    }
}

/* Stages whose units are tiled: what crosses from one to the next is whole. */
static void stages(void **state) {
    (void)state;
    for (int s = SIFR_SCHEDULE_GPIPE; s <= SIFR_SCHEDULE_INTERLEAVED; s++) {
        const tile_shape *shape = &shapes[s];
        zero_variant v = {.ranks = 1,
                          .type = s % 2 ? "gpt2" : "llama",
                          .precision = s ? SIFR_FP32 : SIFR_BF16,
                          .global = GLOBAL,
                          .steps = 1,
                          .evaluate = true,
                          .sequences = shape->sequences,
                          .length = shape->length};
        zero_outcome want = zero_run(v);
        v.stages = 2;
        v.schedule = (sifr_pipeline_schedule)s;
        v.chunks = s == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
        v.stage = s;
        v.tile_tokens = shape->tile;
        if (!thinned_out((size_t)s)) tiled(&want, v);
        free(want.weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(stages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
