/* Decoders with heads for labels against transformers: logits, loss, all gradients, five steps of
 * AdamW and evaluation, in fp32 and bf16, of the tiny models that tests/golden/make_decoder_heads.py
 * makes. Their sequences are padded, and a sequence's label stands at its last token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/handle.h"
#include "support/golden_run.h"

static const char *const expected[] = {"llama-sequence", "gpt2-sequence", "gemma2-sequence",
                                       "qwen3-tokens", "gpt_neox-tokens"};

static void every_head(void (*check)(const golden *g, golden_precision precision)) {
    golden_list list;
    golden_list_open_at(&list, "decoder_heads/");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        golden g;
        golden_open(&list, golden_list_find(&list, expected[i]), &g);
        check(&g, GOLDEN_FP32);
        check(&g, GOLDEN_BF16);
        golden_close(&g);
    }
    golden_list_close(&list);
}

static void logits(void **state) {
    (void)state;
    every_head(golden_run_logits);
}

static void gradients(void **state) {
    (void)state;
    every_head(golden_run_gradients);
}

static void steps(void **state) {
    (void)state;
    every_head(golden_run_steps);
}

static void evaluation(void **state) {
    (void)state;
    every_head(golden_run_evaluation);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits), cmocka_unit_test(gradients),
                                       cmocka_unit_test(steps), cmocka_unit_test(evaluation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
