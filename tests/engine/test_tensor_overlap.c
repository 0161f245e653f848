/* Tensor ranks whose sums travel beside computing (tp_overlap_comm): the bits and the bytes of a
 * run without it, at each ZeRO stage, in both step orders, in each type, with recomputation,
 * stages, tp_exact and contexts; that tiles are under way while the next ones are computed; and
 * what it does not go with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "plan/queries.h"
#include "support/zero_run.h"

/* Of ZERO_LENGTH tokens each, which make 3 tiles of 256, 256 and 128 rows. */
enum { SEQUENCES = 40, GLOBAL = 2 };

static zero_variant base(const char *type, int32_t tensors) {
    return (zero_variant){.ranks = tensors,
                          .tensors = tensors,
                          .type = type,
                          .sequences = SEQUENCES,
                          .global = GLOBAL,
                          .evaluate = true};
}

/* The variant without and with it. */
static void expect_same(zero_variant v, const char *what) {
    v.overlaps = false;
    zero_outcome want = zero_run(v);
    v.overlaps = true;
    zero_outcome have = zero_run(v);
    if (!zero_is_same(&want, &have)) fail_msg("%s, %s: other bits", v.type, what);
    if (v.evaluate && want.evaluated != have.evaluated) fail_msg("%s: other evaluations", v.type);
    if (have.gathered != want.gathered || have.reduced != want.reduced)
        fail_msg("%s, %s: %lld and %lld bytes instead of %lld and %lld", v.type, what,
                 (long long)have.gathered, (long long)have.reduced, (long long)want.gathered,
                 (long long)want.reduced);
    if (have.reductions <= want.reductions) fail_msg("%s, %s: there are no tiles", v.type, what);
    free(want.weights);
    free(have.weights);
}

/* Fused and separate products, biases, norms of heads, and blocks in which the norm is behind the
 * sum; three ranks, whose tiles are other ones, leave attention whole but for encoders. */
static void each_block(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2", "qwen3", "bert", "deberta-v2", "olmo2"};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        expect_same(base(types[t], strstr(types[t], "bert") ? 3 : 2), "kept");
    expect_same(base("llama", 4), "four ranks");
}

static void each_stage_and_type(void **state) {
    (void)state;
    size_t turn = 0;
    for (int precision = SIFR_FP32; precision <= SIFR_FP16; precision++) {
        zero_variant v = base(precision == SIFR_FP16 ? "gpt2" : "llama", 2);
        v.precision = (sifr_precision)precision;
        v.evaluate = false;
        v.global = 4;
        zero_outcome want = zero_run(v);
        v.overlaps = true;
        v.ranks = 4;
        zero_expect_each_stage(&want, v, &turn);
        free(want.weights);
    }
}

static void beside(void **state) {
    (void)state;
    for (int s = SIFR_SCHEDULE_GPIPE; s <= SIFR_SCHEDULE_ZB_H1; s++) {
        zero_variant v = base("llama", 2);
        v.stages = 2;
        v.schedule = (sifr_pipeline_schedule)s;
        v.chunks = s == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
        v.layers = 4;
        v.recompute = s % 2;
        expect_same(v, "stages");
    }
    zero_variant v = base("gpt2", 2);
    v.freeze[0] = "*wte*", v.freeze[1] = "*attn*";
    expect_same(v, "frozen");
    v = base("llama", 2);
    v.recompute = v.partitions = true;
    expect_same(v, "partitioned");
    v = base("llama", 4);
    v.precision = SIFR_BF16;
    expect_same(v, "bf16, four ranks");
    v = base("llama", 2);
    v.ranks = 4;
    v.contexts = 2;
    v.sequences = 20;
    v.length = 64;
    expect_same(v, "contexts");
    v = base("llama", 2);
    v.vocabulary = 600;
    v.words = SIFR_VOCAB_SPLIT;
    expect_same(v, "words");
}

static void exact(void **state) {
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        zero_variant v = base(turn == 2 ? "gpt2" : "llama", turn == 3 ? 4 : 2);
        v.exact = 4;
        v.precision = turn == 1 ? SIFR_BF16 : SIFR_FP32;
        v.recompute = turn == 1;
        v.stage = turn;
        expect_same(v, "tp_exact");
    }
    zero_variant v = base("llama", 2);
    v.exact = 2;
    v.precision = SIFR_BF16;
    v.stages = 2;
    v.schedule = SIFR_SCHEDULE_ZB_H1;
    expect_same(v, "tp_exact, zb-h1");
}

/* Of a micro batch of one tile the sums of gradients alone have gradients of weights beside them.
 */
static void one_tile(void **state) {
    (void)state;
    zero_variant v = base("llama", 2);
    v.sequences = 2;
    zero_outcome want = zero_run(v);
    v.overlaps = true;
    zero_expect_same(&want, v);
    free(want.weights);
}

/* How many calls are run while a tile is under way. */
typedef struct seen {
    int forward, backward;
} seen;

static void look(void *user, const sifr_engine *engine, int step, bool updated) {
    const plan_schedule *s = engine->training;
    seen *out = user;
    (void)updated;
    if (step > 0 || plan_mesh_place(&s->settings.mesh, PLAN_WORLD) > 0) return;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *tile = &s->instructions[i], *in = tile + 1;
        if (tile->action != PLAN_REDUCE || tile->segment >= 0) continue;
        for (; in->action != PLAN_WAIT || in->wait != (int32_t)i; in++) {
            out->forward += in->action == PLAN_FORWARD;
            out->backward += in->action == PLAN_BACKWARD;
        }
    }
}

/* A block has 2 sums each way: o, down, before q, k, v and before gate, up. Of 3 tiles the first
 * two have the next one beside them; of the sums of gradients the third one has gradients of
 * weights. */
static void computing_beside(void **state) {
    (void)state;
    for (int overlap = 0; overlap < 2; overlap++) {
        sifr_zero without = sifr_settings_defaults().zero;
        without.overlap_comm = false;
        seen beside = {0};
        zero_variant v = base("llama", 2);
        v.overlaps = true;
        v.global = 1;
        v.stepped = look;
        v.user = &beside;
        if (!overlap) v.keys = &without;
        zero_outcome out = zero_run(v);
        assert_int_equal(beside.forward, 2 * 2 * 2);
        assert_int_equal(beside.backward, 2 * 2 * 3);
        free(out.weights);
    }
}

static void refused(void **state) {
    (void)state;
    zero_outcome out;
    char why[SIFR_ERROR_LENGTH];
    zero_variant v = base("llama", 2);
    v.overlaps = v.rows = true;
    v.sequences = 16;
    assert_false(zero_try(v, &out, why));
    assert_non_null(strstr(why, "tensor_parallel.tp_overlap_comm: sifr.sequence_parallel is not"));
    v.rows = false;
    v.tile_tokens = 1024;
    assert_false(zero_try(v, &out, why));
    assert_non_null(strstr(why, "tensor_parallel.tp_overlap_comm: sifr.tile_tokens is not"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_block), cmocka_unit_test(each_stage_and_type),
        cmocka_unit_test(beside),     cmocka_unit_test(exact),
        cmocka_unit_test(one_tile),   cmocka_unit_test(computing_beside),
        cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
