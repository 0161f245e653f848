/* Gemma 4, the text model and folders with a tower, against transformers: logits, loss, all
 * gradients, three steps of AdamW, evaluation and greedy tokens of what tests/golden/make_gemma4.py
 * makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/handle.h"
#include "support/golden_run.h"

static const char *const expected[] = {
    "gemma4_text",    "gemma4_text-published", "gemma4_unified_text", "gemma4",
    "gemma4_unified", "gemma4_text-shared",    "gemma4-shared"};

static void every_folder(golden_run_check check) {
    golden_run_each("gemma4/", expected, sizeof expected / sizeof *expected, check);
}

static void logits(void **state) {
    (void)state;
    every_folder(golden_run_logits);
}

static void gradients(void **state) {
    (void)state;
    every_folder(golden_run_gradients);
}

static void steps(void **state) {
    (void)state;
    every_folder(golden_run_steps);
}

static void evaluation(void **state) {
    (void)state;
    every_folder(golden_run_eval);
}

/* Pieces of 1 and of 3 tokens: caches of layers with other heads, with a window and without. */
static void generate(const golden *g, golden_precision precision) {
    if (precision != GOLDEN_FP32) return;
    golden_run_generation(g, &g->generation, 1);
    golden_run_generation(g, &g->generation, 3);
}

static void generation(void **state) {
    (void)state;
    every_folder(generate);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits), cmocka_unit_test(gradients),
                                       cmocka_unit_test(steps), cmocka_unit_test(evaluation),
                                       cmocka_unit_test(generation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
