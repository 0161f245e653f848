/* Lists of tensor ranks: clean on every rank and in one order on all, with as many sums as there
 * are products whose inputs or outputs are cut; and the squares of what all have alike on one. With
 * tp_exact each product has a sum of its own, in fp32 whatever the training type. */
#include "model/registry.h"
#include "plan/verify/order_check.h"
#include "plan/verify/verify.h"
#include "sifr/engine.h"
#include "support/disk_plan.h"

enum { TENSORS = 2, SHARDS = 2, RANKS = TENSORS * SHARDS };

static int64_t count(const plan_schedule *s, plan_action action) {
    int64_t found = 0;
    for (size_t i = 0; i < s->instruction_count; i++) found += s->instructions[i].action == action;
    return found;
}

static void check_sums(const plan_schedule *s) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action == PLAN_SUM) assert_int_equal(in->encoding, PLAN_CODE_FP32);
    }
}

static void check_lists(int stage, int32_t exact, sifr_precision precision) {
    sifr_error error = {0};
    plan_schedule *plans[RANKS];
    for (int32_t r = 0; r < RANKS; r++) {
        plan_settings settings = disk_plan_settings(1, stage, precision, (sifr_offload){0});
        settings.verify = true;
        settings.step.mesh.tensor_size = TENSORS;
        settings.step.mesh.tp_exact = exact;
        assert_int_equal(plan_mesh_of(&settings.step, RANKS, r, &settings.mesh, &error), SIFR_OK);
        plans[r] = disk_plan_lower(&settings);
        if (plan_check_order(plans[r], &error) != SIFR_OK) fail_msg("%s", error.message);
    }
    if (plan_verify_ranks((const plan_schedule *const *)plans, RANKS, &error))
        fail_msg("%s", error.message);
    assert_true(count(plans[0], PLAN_SUM) > 0);
    if (exact) check_sums(plans[0]);
    for (int32_t r = 0; r < RANKS; r++) {
        assert_int_equal(count(plans[r], PLAN_SUM), count(plans[0], PLAN_SUM));
        bool first = r % TENSORS == 0;
        int64_t squares = count(plans[r], PLAN_SQUARES);
        assert_true(first ? squares == (int64_t)plans[r]->model->segment_count
                          : squares < (int64_t)plans[r]->model->segment_count);
    }
    for (int32_t r = 0; r < RANKS; r++) plan_free(plans[r]);
}

static void lists_fit(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        check_lists(stage, 0, SIFR_FP32);
        check_lists(stage, TENSORS, stage % 2 ? SIFR_FP32 : SIFR_BF16);
    }
}

/* Of two stages: tensor neighbours make the same sums, and the stages of each place end together.
 */
static void stages_fit(void **state) {
    (void)state;
    enum { STAGES = 2, ALL = STAGES * RANKS };
    sifr_error error = {0};
    for (int zero = 0; zero < 4; zero++) {
        plan_schedule *plans[ALL];
        for (int32_t r = 0; r < ALL; r++) {
            plan_settings settings = disk_plan_settings(1, zero, SIFR_FP32, (sifr_offload){0});
            settings.verify = true;
            settings.step.mesh.tensor_size = TENSORS;
            settings.step.pipeline =
                (sifr_pipeline){.stages = STAGES, .chunks = 1, .schedule = SIFR_SCHEDULE_1F1B};
            settings.step.step_order = SIFR_STEP_BATCH;
            assert_int_equal(plan_mesh_of(&settings.step, ALL, r, &settings.mesh, &error), SIFR_OK);
            plans[r] = disk_plan_lower(&settings);
            assert_true(count(plans[r], PLAN_SUM) > 0);
        }
        for (int32_t r = 0; r < ALL; r++)
            assert_int_equal(count(plans[r], PLAN_SUM), count(plans[r ^ 1], PLAN_SUM));
        for (int32_t r = 0; r < RANKS; r++) {
            const plan_schedule *both[STAGES] = {plans[r], plans[RANKS + r]};
            if (plan_verify_stages(both, STAGES, &error)) fail_msg("%s", error.message);
        }
        for (int32_t r = 0; r < ALL; r++) plan_free(plans[r]);
    }
}

static plan_schedule *lower_parts(const sifr_model *norms, int zero, int32_t rank) {
    sifr_error error = {0};
    plan_schedule *s = NULL;
    plan_settings settings = disk_plan_settings(1, zero, SIFR_FP32, (sifr_offload){0});
    settings.verify = true;
    settings.step.mesh.tensor_size = TENSORS;
    settings.step.mesh.shard_size = SHARDS;
    assert_int_equal(plan_mesh_of(&settings.step, 2 * RANKS, rank, &settings.mesh, &error),
                     SIFR_OK);
    if (plan_lower(norms, dev, &settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
    return s;
}

/* Of norms of heads, whose gradients are sums over tensor ranks: before the squares, on slices that
 * copies have added up; and a list is refused that leaves the sums out, makes one twice, or adds up
 * what is the same on all. */
static void parts_are_added_up(void **state) {
    (void)state;
    sifr_error error = {0};
    model_config config = model_case_llama();
    sifr_model *norms = NULL;
    strcpy(config.model_type, "qwen3");
    assert_int_equal(model_from_config(&config, &norms, &error), SIFR_OK);
    for (int zero = 0; zero < 4; zero++) {
        plan_schedule *plans[2 * RANKS];
        for (int32_t r = 0; r < 2 * RANKS; r++) plans[r] = lower_parts(norms, zero, r);
        if (plan_verify_ranks((const plan_schedule *const *)plans, 2 * RANKS, &error))
            fail_msg("%s", error.message);
        plan_schedule *s = plans[0];
        int64_t parts = 0;
        for (size_t i = 0; i < s->instruction_count; i++) {
            plan_instruction *in = &s->instructions[i], kept = *in;
            if (in->action != PLAN_SUM || in->segment < 0) continue;
            assert_true(s->model->segments[in->segment].partial);
            parts++;
            in->segment--; /* the unit's other weights */
            assert_int_equal(plan_verify(s, &error), SIFR_FAILED);
            *in = kept;
            in->span = PLAN_STATE; /* over which it is added up already */
            assert_int_equal(plan_verify(s, &error), SIFR_FAILED);
            *in = kept;
            in->action = PLAN_GATHER;
            in->bytes *= TENSORS;
            assert_int_equal(plan_verify(s, &error), SIFR_FAILED);
            *in = kept;
        }
        assert_int_equal(parts, config.num_hidden_layers);
        assert_int_equal(plan_verify(s, &error), SIFR_OK);
        for (int32_t r = 0; r < 2 * RANKS; r++) plan_free(plans[r]);
    }
    sifr_model_free(norms);
}

/* The gathers that bring values of weights from the other tensor ranks. */
static int64_t count_joins(const plan_schedule *s) {
    int64_t found = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        found += in->action == PLAN_GATHER && in->span == PLAN_TENSORS && in->segment >= 0;
    }
    return found;
}

static plan_schedule *lower_muon(sifr_model *whole, int zero, int32_t rank) {
    sifr_error error = {0};
    plan_schedule *s = NULL;
    plan_settings settings = disk_plan_settings(1, zero, SIFR_FP32, (sifr_offload){0});
    settings.verify = true;
    settings.step.optimizer.type = SIFR_MUON;
    settings.step.mesh.tensor_size = TENSORS;
    assert_int_equal(sifr_model_group(whole, &settings.step.optimizer, &error), SIFR_OK);
    assert_int_equal(plan_mesh_of(&settings.step, 2 * RANKS, rank, &settings.mesh, &error),
                     SIFR_OK);
    if (plan_lower(whole, dev, &settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
    return s;
}

/* Where a matrix that is divided is updated: all tensor ranks at a place of PLAN_STATE take part,
 * and at ZeRO 1 to 3 those places alone that own some of it. A list is refused in which one of them
 * gathers other bytes. */
static void matrices_are_put_together(void **state) {
    (void)state;
    sifr_error error = {0};
    model_config config = model_case_llama();
    sifr_model *own = NULL;
    assert_int_equal(model_from_config(&config, &own, &error), SIFR_OK);
    for (int zero = 0; zero < 4; zero++) {
        plan_schedule *plans[2 * RANKS];
        int64_t all = 0, matrices = 7 * config.num_hidden_layers;
        for (int32_t r = 0; r < 2 * RANKS; r++) plans[r] = lower_muon(own, zero, r);
        for (int32_t r = 0; r < 2 * RANKS; r++) {
            int64_t joins = count_joins(plans[r]);
            assert_int_equal(joins, count_joins(plans[r ^ 1]));
            assert_true(zero ? joins < matrices : joins == matrices);
            all += joins;
        }
        assert_true(all >= TENSORS * matrices);
        if (plan_verify_ranks((const plan_schedule *const *)plans, 2 * RANKS, &error))
            fail_msg("%s", error.message);
        plan_schedule *last = plans[2 * RANKS - 1];
        size_t i = 0;
        while (last->instructions[i].action != PLAN_GATHER ||
               last->instructions[i].span != PLAN_TENSORS || last->instructions[i].segment < 0)
            i++;
        last->instructions[i].bytes *= 2;
        assert_int_equal(plan_verify_ranks((const plan_schedule *const *)plans, 2 * RANKS, &error),
                         SIFR_FAILED);
        for (int32_t r = 0; r < 2 * RANKS; r++) plan_free(plans[r]);
    }
    sifr_model_free(own);
}

/* The second half of a sum begins at its wait: ranks that wait in another order are found. */
static void waits_fit(void **state) {
    (void)state;
    sifr_error error = {0};
    model_config config = model_case_llama();
    sifr_model *norms = NULL;
    strcpy(config.model_type, "qwen3");
    assert_int_equal(model_from_config(&config, &norms, &error), SIFR_OK);
    plan_schedule *plans[2 * RANKS];
    for (int32_t r = 0; r < 2 * RANKS; r++) plans[r] = lower_parts(norms, 1, r);
    plan_schedule *s = plans[1];
    int32_t first = -1;
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_instruction *in = &s->instructions[i];
        bool part = in->action == PLAN_WAIT && s->instructions[in->wait].action == PLAN_SUM &&
                    s->instructions[in->wait].segment >= 0;
        if (!part) continue;
        if (first < 0) {
            first = (int32_t)i;
            continue;
        }
        int32_t wait = in->wait;
        in->wait = s->instructions[first].wait;
        s->instructions[first].wait = wait;
        break;
    }
    assert_true(first >= 0);
    assert_int_equal(plan_verify_ranks((const plan_schedule *const *)plans, 2 * RANKS, &error),
                     SIFR_FAILED);
    assert_non_null(strstr(error.message, "comes to"));
    for (int32_t r = 0; r < 2 * RANKS; r++) plan_free(plans[r]);
    sifr_model_free(norms);
}

/* Compressed steps have gradients in other buffers than those where parts are added up. */
static void parts_are_not_compressed(void **state) {
    (void)state;
    sifr_error error = {0};
    model_config config = model_case_llama();
    plan_settings settings = disk_plan_settings(1, 1, SIFR_FP32, (sifr_offload){0});
    sifr_model *norms = NULL;
    plan_schedule *s = NULL;
    strcpy(config.model_type, "qwen3");
    assert_int_equal(model_from_config(&config, &norms, &error), SIFR_OK);
    settings.step.compression = sifr_settings_defaults().compression;
    settings.step.compression.type = SIFR_POWER_SGD;
    settings.step.mesh.tensor_size = TENSORS;
    assert_int_equal(plan_mesh_of(&settings.step, RANKS, 0, &settings.mesh, &error), SIFR_OK);
    assert_int_equal(plan_lower(norms, dev, &settings, &s, &error), SIFR_USAGE);
    if (!strstr(error.message, "whose gradient tensor ranks add up")) fail_msg("%s", error.message);
    sifr_model_free(norms);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_fit),
                                       cmocka_unit_test(stages_fit),
                                       cmocka_unit_test(parts_are_added_up),
                                       cmocka_unit_test(matrices_are_put_together),
                                       cmocka_unit_test(parts_are_not_compressed),
                                       cmocka_unit_test(waits_fit)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
