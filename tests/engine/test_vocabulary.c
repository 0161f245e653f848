/* Tensor ranks that divide the words of the vocabulary, as threads: the first loss has the bits of
 * the same ranks with whole words, since the hidden states are theirs; the run is near that of one
 * rank; the same bits at every ZeRO stage, in both step orders, over data ranks, copies, stages and
 * context ranks beside them; a rank takes less memory, all as planned (zero_run checks what moves).
 * in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "model/shard.h"
#include "model/shard_words.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4 };

/* As in test_tensors.c. */
static void expect_near(const char *what, const zero_outcome *want, const zero_outcome *have) {
    double difference = 0, size = 0;
    for (int s = 0; s < ZERO_STEPS; s++)
        if (!(fabs(have->loss[s] - want->loss[s]) < 1e-5 * want->loss[s] &&
              fabs(have->norm[s] - want->norm[s]) < 1e-4 * want->norm[s]))
            fail_msg("%s, step %d: %.9g and %.9g, not %.9g and %.9g", what, s, have->loss[s],
                     have->norm[s], want->loss[s], want->norm[s]);
    assert_int_equal(have->count, want->count);
    for (size_t i = 0; i < want->count; i++) {
        difference += fabs(have->weights[i] - want->weights[i]);
        size += fabs(want->weights[i]);
    }
    if (!(difference < 1e-4 * size)) fail_msg("%s: weights by %g of %g", what, difference, size);
    if (!(fabs(have->evaluated - want->evaluated) <= 1e-5 * want->evaluated))
        fail_msg("%s: an evaluation is %.9g, not %.9g", what, have->evaluated, want->evaluated);
}

/* 300 words are two blocks, which 4 ranks have two of; 1,500 are six, unevenly on 4; 17,000 are 17
 * of 1,024, the last one short. BERT's head has a bias, and its table is the head's, as GPT-2's. */
static void one_loss(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2", "bert", "llama", "qwen3"};
    static const int64_t words[] = {300, 1500, 1500, 17000, 700};
    for (int t = 0; t < 5; t++) {
        for (int32_t ranks = 2; ranks <= 4; ranks *= 2) {
            char what[64];
            if (ranks == 4 && t > 2) continue;
            snprintf(what, sizeof what, "%s, %d words, %d ranks", types[t], (int)words[t],
                     (int)ranks);
            zero_variant v = {.ranks = 1,
                              .type = types[t],
                              .global = GLOBAL,
                              .vocabulary = words[t],
                              .distinct = false,
                              .evaluate = true};
            zero_outcome one = zero_run(v);
            v.ranks = v.tensors = ranks;
            v.words = SIFR_VOCAB_WHOLE;
            zero_outcome whole = zero_run(v);
            v.words = SIFR_VOCAB_SPLIT;
            zero_outcome split = zero_run(v);
            if (memcmp(&whole.loss[0], &split.loss[0], sizeof split.loss[0]) != 0)
                fail_msg("%s: %.17g, not %.17g", what, split.loss[0], whole.loss[0]);
            expect_near(what, &one, &split);
            assert_true(split.peak[PLAN_PARAMETERS] < whole.peak[PLAN_PARAMETERS]);
            free(one.weights);
            free(whole.weights);
            free(split.weights);
        }
    }
}

static void same_bits_whatever_else(void **state) {
    (void)state;
    size_t turn = 0;
    for (int precision = SIFR_FP32; precision <= SIFR_FP16; precision++) {
        zero_variant v = {.ranks = 2,
                          .tensors = 2,
                          .type = precision == SIFR_BF16 ? "llama" : "gpt2",
                          .precision = (sifr_precision)precision,
                          .vocabulary = 700,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        zero_expect_same(&want, v); /* twice */
        v.ranks = 4;
        zero_expect_each_stage(&want, v, &turn);
        free(want.weights);
    }
}

/* A tied table is the first stage's, whose tensor ranks send each its words to the last one. */
static void beside_others(void **state) {
    (void)state;
    zero_variant v = {
        .ranks = 2, .tensors = 2, .type = "llama", .vocabulary = 700, .global = GLOBAL};
    zero_outcome want = zero_run(v);
    zero_variant copies = v, stages = v, frozen = v;
    copies.ranks = 8, copies.shard_size = 2, copies.stage = 3;
    zero_expect_same(&want, copies);
    stages.stages = 2, stages.ranks = 4, stages.stage = 2;
    zero_expect_same(&want, stages);
    stages.recompute = true, stages.stage = 3;
    zero_expect_same(&want, stages);
    free(want.weights);
    frozen.freeze[0] = "*embed*", frozen.distinct = false;
    want = zero_run(frozen);
    frozen.ranks = 4, frozen.stage = 3;
    zero_expect_same(&want, frozen);
    free(want.weights);
}

/* Words are divided where each rank has a block, and never with tp_exact, which refuses that they
 * must be. */
static void who_divides(void **state) {
    (void)state;
    static const struct {
        int64_t words;
        int32_t ranks, exact;
        sifr_vocab_parallel how;
        bool divided;
    } rows[] = {
        {700, 3, 0, SIFR_VOCAB_BY_BLOCKS, true},    {700, 4, 0, SIFR_VOCAB_BY_BLOCKS, false},
        {700, 4, 0, SIFR_VOCAB_SPLIT, true},        {700, 2, 0, SIFR_VOCAB_WHOLE, false},
        {20000, 2, 2, SIFR_VOCAB_BY_BLOCKS, false}, {20000, 8, 0, SIFR_VOCAB_SPLIT, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        model_config config = zero_config("llama");
        sifr_model *model = NULL, *part = NULL;
        sifr_error error = {0};
        config.vocab_size = rows[i].words;
        config.num_attention_heads = config.num_key_value_heads = 24;
        config.head_dim = 8;
        config.intermediate_size = 48;
        if (model_from_config(&config, &model, &error)) fail_msg("%s", error.message);
        int64_t words = 0;
        for (int32_t place = 0; place < rows[i].ranks; place++) {
            model_shard_args args = {rows[i].ranks, place, rows[i].exact, rows[i].how};
            if (model_shard_by(model, args, &part, &error)) fail_msg("%s", error.message);
            const model_node *head = &part->nodes[part->node_count - 1];
            const model_weight *w = &part->weights[head->w[0]];
            assert_int_equal(w->cut.count, rows[i].divided);
            assert_int_equal(model_words_of(head).all, rows[i].divided ? rows[i].words : 0);
            words += model_words_of(head).count;
            assert_true(model_words_of(head).count <= w->rows);
            sifr_model_free(part);
        }
        assert_int_equal(words, rows[i].divided ? rows[i].words : 0);
        sifr_model_free(model);
    }
}

static void refused(void **state) {
    (void)state;
    model_config config = zero_config("llama");
    sifr_model *model = NULL, *part = NULL;
    sifr_error error = {0};
    if (model_from_config(&config, &model, &error)) fail_msg("%s", error.message);
    model_shard_args args = {2, 0, 2, SIFR_VOCAB_SPLIT};
    assert_int_equal(model_shard_by(model, args, &part, &error), SIFR_USAGE);
    assert_string_equal(error.message,
                        "tensor_parallel.vocab_parallel_lm_head is true, but with sifr.tp_exact "
                        "each rank has the whole vocabulary; give false, or leave it out");
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_loss), cmocka_unit_test(same_bits_whatever_else),
        cmocka_unit_test(beside_others), cmocka_unit_test(who_divides), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
