/* An evaluation between the steps of a run works in the memory that is idle then, so that the
 * memory of a plan is that of a run with evaluations too: for stages, orders, tiers and the rest.
 */
#include <stdio.h>

#include "support/disk_plan.h"

enum { WORDS = 5003, TOKENS = 2048 }; /* the logits are more than all else */

static sifr_model *make(const char *type, bool tied) {
    model_config config = model_case_llama();
    sifr_error error = {0};
    sifr_model *made;
    snprintf(config.model_type, sizeof config.model_type, "%s", type);
    config.vocab_size = WORDS;
    config.max_position_embeddings = TOKENS;
    config.num_hidden_layers = 3;
    config.tie_word_embeddings = tied;
    if (strcmp(type, "gpt2") == 0) {
        config.activation = MODEL_GELU_TANH;
        config.num_key_value_heads = config.num_attention_heads;
    }
    if (model_from_config(&config, &made, &error) != SIFR_OK) fail_msg("%s", error.message);
    return made;
}

static int64_t idle(const plan_schedule *s) {
    return s->total_bytes - plan_idle_start(s);
}

static void check(const sifr_model *of, const plan_settings *training) {
    plan_settings settings = plan_evaluation_of(training, false);
    plan_schedule *step = NULL, *evaluation = NULL;
    sifr_error error = {0};
    if (plan_lower(of, dev, training, &step, &error) != SIFR_OK ||
        plan_lower(of, dev, &settings, &evaluation, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    if (idle(step) < evaluation->total_bytes)
        fail_msg("%d ranks, stage %d, type %d, k %d, order %d, recompute %d, tiles %lld, tier %d: "
                 "%lld bytes are idle, and an evaluation takes %lld",
                 plan_mesh_ranks(&training->mesh, PLAN_WORLD), training->step.zero.stage,
                 (int)training->step.precision, training->step.gradient_accumulation_steps,
                 (int)training->step.step_order, (int)training->step.recompute,
                 (long long)training->step.tile_tokens, (int)training->step.offload.param.device,
                 (long long)idle(step), (long long)evaluation->total_bytes);
    plan_free(step);
    plan_free(evaluation);
}

static plan_settings settings_of(int32_t ranks, int stage, sifr_precision precision, sifr_tier tier,
                                 int32_t sequences) {
    sifr_offload offload = {0};
    if (tier != SIFR_TIER_NONE) offload = disk_plan_all_on(tier);
    if (stage < 3) offload.param.device = SIFR_TIER_NONE;
    plan_settings settings = disk_plan_settings(ranks, stage, precision, offload);
    settings.step.micro_batch_size = sequences;
    settings.step.seq_length = TOKENS / sequences;
    return settings;
}

static void check_ways(const sifr_model *of, plan_settings settings) {
    for (int way = 0; way < 16; way++) {
        settings.step.gradient_accumulation_steps = way & 1 ? 3 : 1;
        settings.step.step_order = way & 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.recompute = way & 4 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        settings.step.tile_tokens = way & 8 ? 1024 : 0;
        check(of, &settings);
    }
}

static void takes_what_is_idle(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    static const sifr_tier tiers[] = {SIFR_TIER_NONE, SIFR_TIER_NVME};
    for (int t = 0; t < 4; t++) {
        sifr_model *of = make(types[t % 2], t < 2);
        for (int stage = 0; stage < 4; stage++) {
            for (int i = 0; i < 4; i++) {
                int32_t ranks = i % 2 ? 4 : 1;
                check_ways(of, settings_of(ranks, stage, t % 2 == i / 2 ? SIFR_FP32 : SIFR_BF16,
                                           tiers[i / 2], 2));
            }
        }
        sifr_model_free(of);
    }
}

/* One stage may do less in a step than in an evaluation: with frozen embeddings alone, and one
 * micro batch. If its plan had no room, all stages would take memory that no plan has. */
static void stage_case(const sifr_model *of, int i) {
    static const sifr_pipeline_schedule schedules[] = {
        SIFR_SCHEDULE_GPIPE, SIFR_SCHEDULE_1F1B, SIFR_SCHEDULE_INTERLEAVED, SIFR_SCHEDULE_ZB_H1};
    int32_t stages = i & 1 ? 4 : 2, ranks = i & 2 ? 2 : 1, way = i / 4 % 4;
    bool interleaved = schedules[way] == SIFR_SCHEDULE_INTERLEAVED;
    sifr_error error = {0};
    if (interleaved) stages = 2; /* five units */
    plan_settings settings =
        settings_of(1, i / 16 % 4, way % 2 ? SIFR_FP32 : SIFR_BF16, SIFR_TIER_NONE, 2);
    settings.step.gradient_accumulation_steps = interleaved ? 2 : i / 64 % 2 ? 4 : 1;
    settings.step.recompute = way / 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
    settings.step.pipeline = (sifr_pipeline){
        .stages = stages, .schedule = schedules[way], .chunks = 2, .partition = "parameters"};
    for (int32_t s = 0; s < stages; s++) {
        if (plan_mesh_of(&settings.step, stages * ranks, s * ranks, &settings.mesh, &error))
            fail_msg("%s", error.message);
        check(of, &settings);
    }
}

static void takes_what_is_idle_in_stages(void **state) {
    (void)state;
    static const char *const frozen[] = {NULL, "*embed_tokens*", "*layers*"};
    for (int t = 0; t < 6; t++) {
        sifr_model *of = make("llama", t % 2);
        sifr_error error = {0};
        if (frozen[t / 2] && sifr_model_freeze(of, frozen[t / 2], &error) != SIFR_OK)
            fail_msg("%s", error.message);
        for (int i = 0; i < 128; i++) stage_case(of, i);
        sifr_model_free(of);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_what_is_idle),
                                       cmocka_unit_test(takes_what_is_idle_in_stages)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
