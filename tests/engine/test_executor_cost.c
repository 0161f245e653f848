/* not under sanitizers (it measures time)
 * What the executor adds to an instruction, with kernels that do nothing: less than a microsecond.
 * bench/bench_schedule.c has the figure. */
#include "engine/small_model.h"

#include <time.h>

#include "engine/engine_private.h"

enum { LENGTH = 8, STEPS = 100 };

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static sifr_status count_kernel(void *user, size_t instruction, const device_call *call,
                                sifr_error *error) {
    (void)error, (void)instruction;
    *(int64_t *)user += call->kernel < DEVICE_KERNELS;
    return SIFR_OK;
}

static void an_instruction(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_TIED);
    sifr_settings options = sifr_settings_defaults();
    options.threads = 1;
    options.seq_length = LENGTH;
    options.gradient_accumulation_steps = 8;
    sifr_engine *engine = small_engine(model, &options);
    int32_t tokens[8 * LENGTH], labels[8 * LENGTH];
    int64_t kernels = 0;
    double best = 1e9;
    small_batch(0, 8 * LENGTH, tokens, labels);
    engine_replace_kernels(engine->trainer, count_kernel, &kernels);
    for (int s = 0; s < STEPS; s++) {
        sifr_step_result result;
        sifr_error error;
        double start = cpu_seconds();
        assert_int_equal(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels},
                                          1e-3, &result, &error),
                         SIFR_OK);
        double seconds = cpu_seconds() - start;
        if (seconds < best) best = seconds;
    }
    double count = (double)engine->training->instruction_count;
    print_message("%.0f instructions, %.0f ns each\n", count, 1e9 * best / count);
    assert_true((double)kernels > 0.9 * STEPS * count); /* the others are few */
    assert_true(best / count < 1e-6);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_instruction)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
