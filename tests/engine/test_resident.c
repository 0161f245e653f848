/* Bytes of each class that are in memory: those of the plan's peak while all is there, and less of
 * the one class whose pages the system is told to drop. In test_asan. */
#include "engine/small_model.h"

#include <sys/mman.h>

#include "base/checked.h"
#include "base/process.h"
#include "engine/handle.h"
#include "plan/queries.h"

enum { TOKENS = 2 * 64 };

static sifr_error error;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static sifr_engine *train(const sifr_model *model, sifr_precision precision, int32_t accumulate,
                          sifr_step_order order) {
    int32_t tokens[2 * TOKENS], labels[2 * TOKENS];
    sifr_step_result result;
    sifr_settings settings = sifr_settings_defaults();
    settings.micro_batch_size = 2;
    settings.gradient_accumulation_steps = accumulate;
    settings.seq_length = 64;
    settings.precision = precision;
    settings.step_order = order;
    sifr_engine *engine = small_engine(model, &settings);
    small_batch(0, accumulate * TOKENS, tokens, labels);
    const sifr_batch batch = {.tokens = tokens, .labels = labels};
    OK(sifr_engine_step(engine, &batch, 1e-3, &result, &error));
    return engine;
}

static void all_classes_are_counted(void **state) {
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        sifr_model *model = small_model((small_kind)kind);
        sifr_engine *engine = train(model, kind == SMALL_TIED ? SIFR_BF16 : SIFR_FP32, 1 + kind % 2,
                                    kind == SMALL_GPT2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH);
        const plan_schedule *s = engine_schedule(engine);
        engine_resident resident;
        OK(engine_count_resident(engine_trainer(engine), &resident, &error));
        int64_t sum = 0;
        for (int c = 0; c < PLAN_CLASSES; c++) {
            assert_int_equal(resident.classes[c], s->peak_bytes[c]);
            sum += resident.classes[c];
        }
        assert_int_equal(resident.block, s->total_bytes);
        assert_int_equal(resident.block - sum, plan_gap_bytes(s));
        assert_true(resident.classes[PLAN_MOMENTS] > 0 && resident.classes[PLAN_GRADIENTS] > 0);
        assert_false(resident.shared);
        sifr_engine_free(engine);
        sifr_model_free(model);
    }
}

/* Whole pages of the class alone; returns their bytes. */
static int64_t drop(sifr_engine *engine, plan_class class) {
    const plan_schedule *s = engine_schedule(engine);
    int64_t dropped = 0, page = 4096;
    for (int32_t b = 0; b < (int32_t)s->buffer_count; b++) {
        if (s->buffers[b].class != class || !plan_lives_at(s, b, s->peak_instruction)) continue;
        uintptr_t at = (uintptr_t)engine_buffer(engine_trainer(engine), b);
        uintptr_t end = at + (uintptr_t)s->buffers[b].bytes;
        at = (at + (uintptr_t)page - 1) / (uintptr_t)page * (uintptr_t)page;
        end -= end % (uintptr_t)page;
        if (end <= at) continue;
        assert_int_equal(madvise((void *)at, end - at, MADV_DONTNEED), 0);
        dropped += (int64_t)(end - at);
    }
    return dropped;
}

static void what_is_dropped_is_missed(void **state) {
    (void)state;
    static const plan_class classes[] = {PLAN_PARAMETERS, PLAN_MOMENTS, PLAN_SCRATCH};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        sifr_model *model = small_model(SMALL_LLAMA);
        sifr_engine *engine = train(model, SIFR_FP32, 1, SIFR_STEP_BATCH);
        const plan_schedule *s = engine_schedule(engine);
        engine_resident resident;
        int64_t dropped = drop(engine, classes[i]);
        assert_true(dropped > 0);
        OK(engine_count_resident(engine_trainer(engine), &resident, &error));
        for (int c = 0; c < PLAN_CLASSES; c++)
            assert_int_equal(resident.classes[c],
                             s->peak_bytes[c] - (c == (int)classes[i] ? dropped : 0));
        assert_int_equal(resident.block, s->total_bytes - dropped);
        sifr_engine_free(engine);
        sifr_model_free(model);
    }
}

/* Who lives when is what the peak was added up of, at each instruction. */
static void the_largest_sum_is_at_the_peak(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_GPT2);
    sifr_engine *engine = train(model, SIFR_BF16, 2, SIFR_STEP_BATCH);
    const plan_schedule *s = engine_schedule(engine);
    int64_t planned = s->total_bytes - plan_gap_bytes(s), largest = 0;
    for (int32_t i = -1; i < (int32_t)s->instruction_count; i++) {
        int64_t sum = 0;
        for (int32_t b = 0; b < (int32_t)s->buffer_count; b++)
            if (plan_lives_at(s, b, i)) sum += plan_capacity(s->buffers[b].bytes);
        largest = base_max_i64(largest, sum);
        if (i == s->peak_instruction) assert_int_equal(sum, planned);
    }
    assert_int_equal(largest, planned);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

int main(void) {
    if (base_process_tells_pages(&error) != SIFR_OK) {
        printf("skipped: %s\n", error.message);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_classes_are_counted),
                                       cmocka_unit_test(what_is_dropped_is_missed),
                                       cmocka_unit_test(the_largest_sum_is_at_the_peak)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
