/* Decoder families without an op of their own against transformers: logits, loss, all gradients,
 * two steps of AdamW, evaluation and greedy tokens of what tests/golden/make_dense.py makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/handle.h"
#include "support/golden_run.h"

static const char *const expected[] = {
    "arcee",
    "seed_oss",
    "exaone4",
    "exaone4-full",
    "cohere",
    "cohere-norms",
    "cohere2",
    "ernie4_5",
    "hunyuan_v1_dense",
    "helium",
    "internlm3",
    "cwm",
    "phi",
    "phi-norms",
    "stablelm",
    "stablelm-parallel",
    "vaultgemma",
    "glm",
    "nemotron",
    "olmo",
    "nanochat",
    "apertus",
    "stablelm-norms",
    "opt",
    "opt-behind",
    "falcon",
    "falcon-grouped",
    "falcon-each",
    "bloom",
};

static void every_folder(golden_run_check check) {
    golden_run_each("dense/", expected, sizeof expected / sizeof *expected, check);
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

static void generate(const golden *g, golden_precision precision) {
    if (precision == GOLDEN_FP32) golden_run_generation(g, &g->generation, 3);
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
