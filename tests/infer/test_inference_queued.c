/* Evaluation on a device that has only begun its work and hides its memory, beside the CPU: the
 * same losses and logits to the last bit. Weights and logits go through more than one of the pieces
 * in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "infer/inference.h"
#include "model/registry.h"
#include "plan/queries.h"
#include "support/model_case.h"
#include "support/on_queues.h"

enum { WORDS = 220000, SEQUENCES = 3, LENGTH = 16, TOKENS = SEQUENCES * LENGTH, BATCHES = 3 };

static sifr_error error;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

/* Between -0.1 and 0.1. */
static void make_values(const void *user, size_t index, int64_t first, int64_t count, float *out) {
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        uint32_t mixed = (uint32_t)(first + i + (int64_t)index * 7919) * 2654435761u;
        out[i] = ((float)(mixed >> 8) / 8388608.0f - 1.0f) * 0.1f;
    }
}

typedef struct results {
    double sums[BATCHES];
    float losses[BATCHES][TOKENS];
    float *logits; /* of the last batch */
} results;

static void evaluate(const sifr_model *model, sifr_precision precision, bool queued, bool logits,
                     results *out) {
    infer_options options = {.mode = PLAN_EVALUATE,
                             .precision = precision,
                             .threads = 1,
                             .sequences = SEQUENCES,
                             .length = LENGTH,
                             .logits = logits};
    infer_inference *inference;
    device *dev;
    if (queued) {
        OK(on_queues_open(&dev, &error));
        OK(infer_create_on(dev, model, &options, &inference, &error));
        assert_true(device_is_hidden(infer_device(inference)));
    } else {
        OK(infer_create(model, &options, &inference, &error));
        assert_false(device_is_hidden(infer_device(inference)));
    }
    OK(infer_fill(inference, make_values, NULL, &error));
    for (int b = 0; b < BATCHES; b++) {
        int32_t tokens[TOKENS], labels[TOKENS];
        int64_t labelled;
        for (int t = 0; t < TOKENS; t++) {
            tokens[t] = (t * 7919 + b * 104729) % WORDS;
            labels[t] = t % 5 == 4 ? -100 : (t * 15485 + b) % WORDS;
        }
        sifr_batch batch = {.tokens = tokens, .labels = labels};
        OK(infer_loss(inference, &batch, &out->sums[b], &labelled, logits ? out->logits : NULL,
                      &error));
        OK(infer_losses(inference, out->losses[b], &error));
        assert_int_equal(labelled, TOKENS - TOKENS / 5);
    }
    infer_free(inference);
}

static void same_bits(void **state) {
    (void)state;
    static results cpu, queued;
    static const sifr_precision precisions[] = {SIFR_FP32, SIFR_BF16};
    model_config config = model_case_llama();
    sifr_model *model;
    size_t count = (size_t)TOKENS * WORDS;
    config.vocab_size = WORDS;
    config.tie_word_embeddings = true;
    OK(model_from_config(&config, &model, &error));
    assert_true(config.hidden_size * WORDS * 2 > PLAN_MOST_PIECE);
    assert_true((int64_t)count * 2 > PLAN_MOST_PIECE);
    cpu.logits = malloc(count * sizeof *cpu.logits);
    queued.logits = malloc(count * sizeof *cpu.logits);
    for (int i = 0; i < 4; i++) {
        evaluate(model, precisions[i / 2], false, i % 2, &cpu);
        evaluate(model, precisions[i / 2], true, i % 2, &queued);
        assert_memory_equal(cpu.sums, queued.sums, sizeof cpu.sums);
        assert_memory_equal(cpu.losses, queued.losses, sizeof cpu.losses);
        if (i % 2) assert_memory_equal(cpu.logits, queued.logits, count * sizeof *cpu.logits);
    }
    free(cpu.logits);
    free(queued.logits);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
