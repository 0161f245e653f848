/* Every family of encoders and each of its heads against transformers: logits, loss, all gradients,
 * five steps of AdamW and evaluation, in fp32 and bf16, of the tiny models that
 * tests/golden/make_encoders.py makes. Their sequences are padded, and their tokens have types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/handle.h"
#include "support/golden_run.h"

static const char *const expected[] = {
    "bert",
    "bert-untied",
    "bert-sequence",
    "bert-tokens",
    "bert-regression",
    "distilbert",
    "distilbert-sequence",
    "distilbert-tokens",
    "distilbert-multilabel",
    "modernbert",
    "modernbert-biases",
    "modernbert-sequence",
    "modernbert-mean",
    "modernbert-tokens",
    "roberta",
    "roberta-sequence",
    "roberta-tokens",
    "xlm-roberta",
    "xlm-roberta-sequence",
    "xlm-roberta-tokens",
    "deberta",
    "deberta-tables",
    "deberta-c2p",
    "deberta-p2c",
    "deberta-plain",
    "deberta-sequence",
    "deberta-tokens",
};

static void every_encoder(golden_run_check check) {
    golden_run_each("encoders/", expected, sizeof expected / sizeof *expected, check);
}

static void logits(void **state) {
    (void)state;
    every_encoder(golden_run_logits);
}

static void gradients(void **state) {
    (void)state;
    every_encoder(golden_run_gradients);
}

static void steps(void **state) {
    (void)state;
    every_encoder(golden_run_steps);
}

static void evaluation(void **state) {
    (void)state;
    every_encoder(golden_run_evaluation);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits), cmocka_unit_test(gradients),
                                       cmocka_unit_test(steps), cmocka_unit_test(evaluation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
