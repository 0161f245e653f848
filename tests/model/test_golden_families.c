/* Every decoder family against transformers: logits, loss, all gradients, five steps of AdamW,
 * evaluation in fp32 and bf16, and greedy tokens, of the tiny models that
 * tests/golden/make_families.py makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "infer/inference.h"
#include "support/golden_run.h"

/* The folders that must open; the results of the others wait for their architecture. */
static const char *const expected[] = {
    "gemma",      "gemma2",    "gemma3_text",  "glm4",
    "gpt_neox",   "granite",   "llama",        "llama-dynamic",
    "llama-yarn", "ministral", "ministral3",   "mistral",
    "olmo2",      "olmo3",     "phi3",         "phi3-longrope",
    "qwen2",      "qwen3",     "smollm3",      "starcoder2",
    "lfm2",       "lfm2-four", "qwen3_5_text", "qwen3_5_text-three",
};

enum { EXPECTED = sizeof expected / sizeof *expected };

static bool opens(const golden *g) {
    engine_folder folder;
    sifr_error error = {0};
    if (engine_folder_open(g->folder, &folder, &error) == SIFR_OK) {
        engine_folder_close(&folder);
        return true;
    }
    for (size_t i = 0; i < EXPECTED; i++) {
        if (!strcmp(expected[i], g->name)) fail_msg("%s", error.message);
    }
    print_message("%s waits: %s\n", g->name, error.message);
    return false;
}

static void every_family(void (*check)(const golden *g, golden_precision precision)) {
    golden_list list;
    golden_list_open_at(&list, "families/");
    for (size_t i = 0; i < EXPECTED; i++) golden_list_find(&list, expected[i]);
    for (size_t i = 0; i < list.count; i++) {
        golden g;
        golden_open(&list, i, &g);
        if (opens(&g)) {
            check(&g, GOLDEN_FP32);
            check(&g, GOLDEN_BF16);
        }
        golden_close(&g);
    }
    golden_list_close(&list);
}

static void logits(void **state) {
    (void)state;
    every_family(golden_run_logits);
}

static void gradients(void **state) {
    (void)state;
    every_family(golden_run_gradients);
}

static void steps(void **state) {
    (void)state;
    every_family(golden_run_steps);
}

static void evaluation(void **state) {
    (void)state;
    every_family(golden_run_eval);
}

static void generate(const golden *g, golden_precision precision) {
    if (precision != GOLDEN_FP32) return;
    golden_run_generation(g, &g->generation, 1);
    golden_run_generation(g, &g->generation, 3);
}

static void generation(void **state) {
    (void)state;
    every_family(generate);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits), cmocka_unit_test(gradients),
                                       cmocka_unit_test(steps), cmocka_unit_test(evaluation),
                                       cmocka_unit_test(generation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
