/* Decoders with heads for labels against transformers: logits, loss, all gradients, five steps of
 * AdamW and evaluation, in fp32 and bf16, of the tiny models that
 * tests/golden/make_decoder_heads.py makes. Their sequences are padded, and a sequence's label
 * stands at its last token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/handle.h"
#include "support/golden_run.h"

static const char *const expected[] = {"llama-sequence",  "gpt2-sequence",   "gemma2-sequence",
                                       "qwen3-tokens",    "gpt_neox-tokens", "mistral-regression",
                                       "qwen3-multilabel"};

static void every_head(golden_run_check check) {
    golden_run_each("decoder_heads/", expected, sizeof expected / sizeof *expected, check);
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
