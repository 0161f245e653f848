/* Schedules as queues and events, as an accelerator runs them: on the executor's rule alone nothing
 * is unordered, without each half of it something is. What plan_check_order, which every plan of
 * every test in C passes, takes for granted is compared with clocks that take nothing for granted.
 */
#include <stdio.h>

#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/verify/order_check.h"
#include "support/disk_plan.h"
#include "support/queue_order.h"

/* What is offloaded, in letters: optimizer, parameters, gradients, activations. */
typedef struct order_case {
    int stage;
    int32_t ranks;
    const char *offloaded;
    sifr_tier tier;
} order_case;

static const order_case cases[] = {
    {0, 2, "", SIFR_TIER_NONE},    {1, 2, "", SIFR_TIER_NONE},    {2, 3, "", SIFR_TIER_NONE},
    {3, 2, "", SIFR_TIER_NONE},    {3, 8, "", SIFR_TIER_NONE},    {0, 1, "o", SIFR_TIER_CPU},
    {1, 4, "o", SIFR_TIER_CPU},    {2, 8, "o", SIFR_TIER_NVME},   {3, 1, "p", SIFR_TIER_CPU},
    {3, 2, "p", SIFR_TIER_CPU},    {3, 4, "p", SIFR_TIER_NVME},   {0, 1, "g", SIFR_TIER_CPU},
    {2, 2, "g", SIFR_TIER_CPU},    {3, 3, "g", SIFR_TIER_NVME},   {0, 1, "a", SIFR_TIER_CPU},
    {1, 8, "a", SIFR_TIER_CPU},    {2, 2, "a", SIFR_TIER_NVME},   {0, 1, "oga", SIFR_TIER_CPU},
    {3, 1, "opga", SIFR_TIER_CPU}, {3, 2, "opga", SIFR_TIER_CPU}, {3, 8, "opga", SIFR_TIER_NVME},
};

static plan_settings settings_of(const order_case *c, bool unit_order, bool recompute) {
    sifr_offload offloaded = {
        .sub_group_size = 2048,
        .optimizer = {.ratio = 1, .pipeline_read = true, .pipeline_write = true}};
    if (strchr(c->offloaded, 'o')) offloaded.optimizer.device = c->tier;
    if (strchr(c->offloaded, 'p')) offloaded.param.device = c->tier;
    if (strchr(c->offloaded, 'g')) offloaded.gradients = c->tier;
    if (strchr(c->offloaded, 'a')) offloaded.activations = c->tier;
    plan_settings settings = disk_plan_settings(c->ranks, c->stage, SIFR_BF16, offloaded);
    settings.step.seq_length = 128;
    settings.step.step_order = unit_order ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
    settings.step.recompute = recompute ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
    return settings;
}

static void describe(const plan_schedule *s, int32_t index, char *out, size_t size) {
    const plan_instruction *in = &s->instructions[index];
    snprintf(out, size, "#%d %s on the %s queue", index, plan_action_name((plan_action)in->action),
             plan_queue_name((plan_queue)in->queue));
}

static void expect_ordered(queue_order *order, const plan_schedule *s) {
    char earlier[96], later[96];
    int32_t pair[2];
    queue_mistake none = {.left_out = QUEUE_NO_WAIT};
    int64_t faults = queue_order_run(order, QUEUE_STEPS, &none, pair);
    if (faults == 0) return;
    describe(s, pair[0], earlier, sizeof earlier);
    describe(s, pair[1], later, sizeof later);
    fail_msg("%lld accesses are not ordered; first: %s, then %s", (long long)faults, earlier,
             later);
}

/* plan_check_order with the wait gone. */
static bool verifier_finds(plan_schedule *s, int32_t wait) {
    plan_instruction *in = &s->instructions[wait], kept = *in;
    sifr_error error = {0};
    in->action = PLAN_COUNT;
    in->wait = -1;
    in->operands = 0;
    sifr_status status = plan_check_order(s, &error);
    *in = kept;
    if (status != SIFR_OK) assert_non_null(strstr(error.message, "no wait orders them"));
    return status != SIFR_OK;
}

/* Each wait left out in turn. plan_check_order takes reads and writes of a disk or of host memory
 * for unordered among themselves, so it may find more. It runs a second step only for a deferred
 * update: others end with all transfers waited for, or plan_verify says so. */
static int leave_out_waits(queue_order *order, plan_schedule *s) {
    int found = 0, steps = s->spread > 0 ? 2 : 1;
    for (int32_t w = 0; w < (int32_t)s->instruction_count; w++) {
        queue_mistake mistake = {.left_out = w};
        if (s->instructions[w].action != PLAN_WAIT) continue;
        bool fault = queue_order_run(order, QUEUE_STEPS, &mistake, NULL) > 0;
        if (fault != queue_order_needs(order, w))
            fail_msg("wait #%d: left out, %s", w, fault ? "found, yet covered" : "not found");
        if (queue_order_run(order, steps, &mistake, NULL) > 0 && !verifier_finds(s, w))
            fail_msg("wait #%d: left out, plan_check_order does not find it", w);
        found += fault;
    }
    return found;
}

/* Returns whether the update is deferred. */
static bool check(const order_case *c, int variant) {
    queue_mistake early = {.left_out = QUEUE_NO_WAIT, .early = true};
    plan_settings settings = settings_of(c, variant & 1, variant & 2);
    plan_schedule *s = disk_plan_lower(&settings);
    bool deferred = s->spread > 0;
    queue_order *order = queue_order_open(s);
    expect_ordered(order, s);
    assert_true(queue_order_run(order, QUEUE_STEPS, &early, NULL) > 0);
    assert_true(leave_out_waits(order, s) > 0);
    queue_order_close(order);
    plan_free(s);
    return deferred;
}

static void check_model(const model_config *config) {
    sifr_error error = {0};
    sifr_model *kept = model;
    device *cpu = dev;
    int deferred = 0;
    assert_int_equal(model_from_config(config, &model, &error), SIFR_OK);
    assert_int_equal(device_open_separate(1, NULL, &dev, &error), SIFR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int variant = 0; variant < 4; variant++) deferred += check(&cases[i], variant);
    }
    assert_true(deferred > 0);
    device_close(dev);
    sifr_model_free(model);
    dev = cpu;
    model = kept;
}

static void llama(void **state) {
    (void)state;
    model_config config = model_case_llama();
    config.num_hidden_layers = 3;
    config.max_position_embeddings = 128;
    check_model(&config);
}

static void gpt2(void **state) {
    (void)state;
    model_config config = model_case_llama();
    strcpy(config.model_type, "gpt2");
    config.num_key_value_heads = config.num_attention_heads;
    config.activation = MODEL_GELU_TANH;
    config.tie_word_embeddings = true;
    config.num_hidden_layers = 3;
    config.max_position_embeddings = 128;
    check_model(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(llama), cmocka_unit_test(gpt2)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
