/* A step gives this rank's losses by micro batch: the sums that an evaluation of each micro batch
 * gives before the step, to the bit, on the CPU and where the host does not reach the device's
 * memory; together they are the step's loss. */
#include <math.h>

#include "engine/engine_private.h"
#include "engine/small_model.h"
#include "support/on_queues.h"

enum { MICRO = 3, SEQUENCES = 2, LENGTH = 16, TOKENS = SEQUENCES * LENGTH };

static sifr_error error;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static sifr_engine *open_on_queues(const sifr_model *model, const sifr_settings *settings) {
    sifr_engine *engine;
    device *dev;
    comm_group *group;
    OK(on_queues_open(&dev, &error));
    OK(comm_open_self(&group, &error));
    OK(engine_create_on(dev, model, settings, group, &engine, &error));
    engine->own_group = group;
    OK(sifr_engine_initialise(engine, 7, &error));
    return engine;
}

static void check(bool queued, sifr_precision precision) {
    int32_t tokens[MICRO * TOKENS], labels[MICRO * TOKENS];
    double want[MICRO], sum = 0;
    sifr_model *model = small_model(SMALL_LLAMA);
    sifr_settings settings = sifr_settings_defaults();
    settings.micro_batch_size = SEQUENCES;
    settings.seq_length = LENGTH;
    settings.gradient_accumulation_steps = MICRO;
    settings.precision = precision;
    sifr_engine *engine =
        queued ? open_on_queues(model, &settings) : small_engine(model, &settings);
    for (int64_t step = 0; step < 2; step++) {
        sifr_step_result result;
        int64_t labelled;
        small_batch(step, MICRO * TOKENS, tokens, labels);
        for (int i = 0; i < TOKENS; i++) labels[TOKENS + i] = -100; /* nothing to learn in one */
        sum = 0;
        for (int j = 0; j < MICRO; j++) {
            const sifr_batch micro = {.tokens = tokens + j * TOKENS, .labels = labels + j * TOKENS};
            OK(sifr_engine_evaluate(engine, &micro, &want[j], &labelled, &error));
        }
        const sifr_batch batch = {.tokens = tokens, .labels = labels};
        OK(sifr_engine_step(engine, &batch, 1e-2, &result, &error));
        assert_int_equal(result.micro_batches, MICRO);
        for (int j = 0; j < MICRO; j++) {
            assert_true(result.micro_losses[j] == want[j]);
            sum += want[j];
        }
        assert_true(want[1] == 0 && want[0] > 0);
        assert_true(fabs(sum / (double)result.labelled - result.loss) < 1e-12 * result.loss);
    }
    sifr_engine_free(engine);
    sifr_model_free(model);
}

static void on_the_cpu(void **state) {
    (void)state;
    check(false, SIFR_FP32);
    check(false, SIFR_FP16);
}

static void on_a_hidden_device(void **state) {
    (void)state;
    check(true, SIFR_FP32);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_the_cpu),
                                       cmocka_unit_test(on_a_hidden_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
