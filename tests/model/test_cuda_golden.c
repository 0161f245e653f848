/* Golden models and adapters on a GPU that a fake driver plays: the device's own code, and the
 * kernels of GPUs over the shim, beside PyTorch, transformers and PEFT. timeout: 900, label: full
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/cuda/fake_gpu.h"
#include "support/cuda/shim_run.h"
#include "support/golden_adapters.h"
#include "support/golden_run.h"
#include "support/scratch.h"

static int start(void **state) {
    golden_run_on(fake_gpu_open);
    return scratch_setup(state) || fake_gpu_start(state);
}

static int stop(void **state) {
    int result = fake_gpu_stop(state);
    return scratch_teardown(state) || result;
}

static void run(const char *place, const char *name, golden_precision precision, bool steps) {
    golden_list list;
    golden g;
    golden_list_open_at(&list, place);
    golden_open(&list, golden_list_find(&list, name), &g);
    golden_run_gradients(&g, precision);
    fake_gpu_check_returned();
    if (steps) golden_run_steps(&g, precision);
    golden_run_evaluation(&g, precision);
    if (steps) golden_run_logits(&g, precision);
    if (steps && g.eval_windows) golden_run_eval(&g, precision);
    fake_gpu_check_returned();
    golden_close(&g);
    golden_list_close(&list);
}

static void gpt2(void **state) {
    (void)state;
    run("", "gpt2", GOLDEN_FP32, true);
    run("", "gpt2", GOLDEN_BF16, true);
}

static void llama(void **state) {
    (void)state;
    run("", "llama3", GOLDEN_FP32, false);
    run("", "llama3", GOLDEN_BF16, true);
    run("", "llama3", GOLDEN_FP16, true);
}

/* Products by cuBLASLt. */
static void by_cublaslt(void **state) {
    (void)state;
    if (!fake_gpu_has_lt()) skip();
    golden_run_on(fake_gpu_open_lt);
    run("", "gpt2", GOLDEN_BF16, true);
    run("", "llama3", GOLDEN_FP16, false);
    golden_run_on(fake_gpu_open);
    fake_gpu_check_lt();
}

/* What scripts/gpu-check.sh tries on the played driver: the least there is. */
static void least(void **state) {
    (void)state;
    run("", "llama-bias", GOLDEN_BF16, false);
}

/* What kernels have beside the two: caps, windows, partial and interleaved rotations, joined
 * weights, multipliers, norms of other kinds. In turns in one type or the other. */
static void families(void **state) {
    (void)state;
    static const char *const names[] = {"gemma2",  "gemma3_text", "glm4",    "gpt_neox",
                                        "granite", "mistral",     "olmo2",   "olmo3",
                                        "phi3",    "qwen3",       "smollm3", "starcoder2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        run("families/", names[i], i % 2 ? GOLDEN_BF16 : GOLDEN_FP32, false);
    run("gemma4/", "gemma4_text", GOLDEN_FP32, false); /* norms without a weight */
    run("gemma4/", "gemma4_text", GOLDEN_BF16, false);
}

/* A bias of the logits, clipped values, norms of each head, rotation the other way. */
static void dense(void **state) {
    (void)state;
    run("dense/", "phi", GOLDEN_FP32, false);
    run("dense/", "olmo", GOLDEN_BF16, false);
    run("dense/", "nanochat", GOLDEN_FP32, false);
    run("dense/", "cohere-norms", GOLDEN_FP32, false);
}

static void encoders(void **state) {
    (void)state;
    static const char *const names[] = {"bert-sequence", "distilbert-multilabel", "modernbert",
                                        "roberta-tokens", "deberta-tokens"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        run("encoders/", names[i], i % 2 ? GOLDEN_BF16 : GOLDEN_FP32, false);
}

/* Over weights in 4 bits, and with magnitudes. */
static void adapters(void **state) {
    (void)state;
    golden_adapters_run("qlora", 2, scratch);
    golden_adapters_run("dora", 2, scratch);
    fake_gpu_check_returned();
}

/* One argument: the test to run, else all. */
int main(int count, char **arguments) {
    if (shim_skipped()) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpt2),     cmocka_unit_test(llama),
                                       cmocka_unit_test(least),    cmocka_unit_test(by_cublaslt),
                                       cmocka_unit_test(families), cmocka_unit_test(dense),
                                       cmocka_unit_test(encoders), cmocka_unit_test(adapters)};
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, start, stop);
}
