/* A loss of the caller's over ranks: the bits of one rank at every stage, in both orders, with
 * recomputation, packed, on pipeline stages, with the update a step late; at rounding from the
 * labels' cross entropy; where it fails on one rank all say so, and nothing has changed; what other
 * devices say. label: full, timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/comm_threads.h"
#include "support/model_case.h"
#include "support/on_queues.h"
#include "support/own_losses.h"
#include "support/zero_run.h"

enum { ROWS = 9, STUCK_S = 60 }; /* of a chunk: several in a micro batch */

static own_loss steady = {.kind = OWN_SMOOTHED};

static int64_t memory_of(void) {
    return 2 * ROWS * zero_config("llama").vocab_size * (int64_t)sizeof(float);
}

static zero_variant variant(const sifr_own_loss_args *args, sifr_precision precision) {
    return (zero_variant){.ranks = 1,
                          .precision = precision,
                          .type = "gpt2",
                          .global = 4,
                          .evaluate = true,
                          .own = args};
}

static void ranks_and_stages(void **state) {
    sifr_own_loss_args args = {own_compute, &steady, memory_of()};
    size_t turn = 0;
    (void)state;
    for (int p = SIFR_FP32; p <= SIFR_FP16; p++) {
        zero_variant v = variant(&args, (sifr_precision)p);
        zero_outcome want = zero_run(v);
        assert_true(steady.most_rows > 0 && steady.most_rows <= ROWS);
        for (v.ranks = 2; v.ranks <= 4; v.ranks *= 2) zero_expect_each_stage(&want, v, &turn);
        v.ranks = 1;
        v.stages = 2, v.schedule = SIFR_SCHEDULE_1F1B;
        zero_expect_same(&want, v);
        v.ranks = 2, v.stage = 1;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

static void packed_and_late(void **state) {
    sifr_own_loss_args args = {own_compute, &steady, memory_of()};
    zero_variant v = variant(&args, SIFR_FP32);
    sifr_offload disk = sifr_settings_defaults().offload;
    (void)state;
    disk.optimizer.device = SIFR_TIER_NVME, disk.nvme_path = "/tmp";
    v.type = "llama", v.packed = true;
    zero_outcome want = zero_run(v);
    v.ranks = 2, v.stage = 3;
    zero_expect_same(&want, v);
    v.offload = &disk;
    zero_expect_same(&want, v);
    free(want.weights);
}

/* Each of two tensor ranks has the whole of what the function reads, and so calls it alike: the
 * losses are one rank's but for the rounding of sums, with the same bits over data ranks. */
static void tensor_ranks(void **state) {
    sifr_own_loss_args args = {own_compute, &steady, memory_of()};
    zero_variant v = variant(&args, SIFR_FP32);
    (void)state;
    zero_outcome one = zero_run(v);
    v.ranks = v.tensors = 2;
    zero_outcome two = zero_run(v);
    assert_true(fabs(two.evaluated - one.evaluated) < 1e-5 * one.evaluated);
    for (int i = 0; i < ZERO_STEPS; i++) {
        assert_true(fabs(two.loss[i] - one.loss[i]) < 1e-5 * one.loss[i]);
        assert_true(fabs(two.norm[i] - one.norm[i]) < 1e-4 * one.norm[i]);
    }
    v.ranks = 4, v.stage = 3;
    zero_expect_same(&two, v);
    free(one.weights);
    free(two.weights);
}

static void near_the_built_in_one(void **state) {
    own_loss entropy = {.kind = OWN_CROSS_ENTROPY};
    sifr_own_loss_args args = {
        .loss = own_compute, .user = &entropy, .memory = SIFR_OWN_LOSS_MEMORY};
    (void)state;
    zero_outcome want = zero_run(variant(NULL, SIFR_FP32));
    zero_outcome have = zero_run(variant(&args, SIFR_FP32));
    assert_true(fabs(have.evaluated - want.evaluated) < 1e-4 * want.evaluated);
    for (int i = 0; i < ZERO_STEPS; i++) {
        assert_true(fabs(have.loss[i] - want.loss[i]) < 1e-4 * want.loss[i]);
        assert_true(fabs(have.norm[i] - want.norm[i]) < 1e-3 * want.norm[i]);
    }
    free(want.weights);
    free(have.weights);
}

/* --- a failure of one rank --- */

enum { LENGTH = 16, RANKS = 2 };

typedef struct failing {
    comm_threads *world;
    int32_t rank, stages;
    own_loss own;
    sifr_status step, evaluation;
    sifr_error step_error, error;
    bool same;
    double loss;
} failing;

static sifr_status try(failing *r, sifr_engine *engine, const char *name, size_t count) {
    int32_t tokens[LENGTH], labels[LENGTH];
    float *before = malloc(count * sizeof *before), *after = malloc(count * sizeof *after);
    double sum;
    int64_t labelled;
    sifr_step_result result = {0};
    sifr_status status = SIFR_OK;
    for (int i = 0; i < LENGTH; i++) tokens[i] = 3 * i + r->rank, labels[i] = 3 * i + 3;
    const sifr_batch batch = {.tokens = tokens, .labels = labels};
    BASE_TRY_GOTO(status, sifr_engine_read_weight(engine, name, before, count, &r->error), end);
    r->step = sifr_engine_step(engine, &batch, 1e-2, &result, &r->step_error);
    r->own.fails_at = r->own.fails_at ? r->own.calls + 1 : 0;
    r->evaluation = sifr_engine_evaluate(engine, &batch, &sum, &labelled, NULL);
    BASE_TRY_GOTO(status, sifr_engine_read_weight(engine, name, after, count, &r->error), end);
    r->same = memcmp(before, after, count * sizeof *before) == 0 && sifr_engine_steps(engine) == 0;
    BASE_TRY_GOTO(status, sifr_engine_step(engine, &batch, 1e-2, &result, &r->error), end);
    r->loss = result.loss;
end:
    free(before);
    free(after);
    return status;
}

static void *run_rank(void *argument) {
    failing *r = argument;
    sifr_settings settings = sifr_settings_defaults();
    model_config config = model_case_llama();
    sifr_own_loss_args args = {own_compute, &r->own, memory_of()};
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    comm_group *group = comm_threads_group(r->world, r->rank);
    settings.threads = 1, settings.seq_length = LENGTH;
    settings.zero.stage = r->stages > 1 ? 0 : 3;
    settings.pipeline.stages = r->stages, settings.pipeline.schedule = SIFR_SCHEDULE_1F1B;
    config.objective = (model_objective){.row = &model_objective_own, .own = args};
    sifr_status status = model_from_config(&config, &model, &r->error);
    if (status == SIFR_OK) status = engine_create(model, &settings, group, &engine, &r->error);
    if (status == SIFR_OK) status = sifr_engine_initialise(engine, 5, &r->error);
    if (status == SIFR_OK) {
        const model_weight *w = &model->weights[0];
        status = try(r, engine, w->name, (size_t)(w->rows * w->columns));
    }
    if (status == SIFR_OK) r->error.message[0] = '\0';
    sifr_engine_free(engine);
    comm_close(group);
    sifr_model_free(model);
    return NULL;
}

static void fail_on_the_second(int32_t stages) {
    failing runs[RANKS];
    pthread_t threads[RANKS];
    comm_threads *world = comm_threads_create(RANKS);
    alarm(STUCK_S); /* the test ends if ranks wait for each other */
    for (int32_t i = 0; i < RANKS; i++) {
        runs[i] = (failing){.world = world, .rank = i, .stages = stages};
        runs[i].own = (own_loss){.kind = OWN_FOCAL, .fails_at = i, .with = SIFR_USAGE};
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &runs[i]), 0);
    }
    for (int32_t i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
    alarm(0);
    comm_threads_free(world);
    for (int32_t i = 0; i < RANKS; i++) {
        assert_string_equal(runs[i].error.message, "");
        assert_int_equal(runs[i].step, SIFR_USAGE);
        assert_int_equal(runs[i].evaluation, SIFR_USAGE);
        assert_string_equal(runs[i].step_error.message, "rank 1: own_loss: too hot");
        assert_true(runs[i].same);
        assert_true(runs[i].loss > 0 && runs[i].loss == runs[0].loss);
    }
}

static void one_rank_fails(void **state) {
    (void)state;
    fail_on_the_second(1);
    fail_on_the_second(2); /* of stages, the last one has the loss */
}

/* --- refusals --- */

static void expect_refused(device *dev, sifr_loss_function *loss, const char *message) {
    sifr_settings settings = sifr_settings_defaults();
    model_config config = model_case_llama();
    sifr_model *model;
    sifr_engine *engine;
    comm_group *group;
    sifr_error error;
    settings.seq_length = LENGTH;
    config.objective = (model_objective){.row = &model_objective_own,
                                         .own = {.loss = loss, .memory = memory_of()}};
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(comm_open_self(&group, &error), SIFR_OK);
    assert_int_equal(engine_create_on(dev, model, &settings, group, &engine, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, message));
    comm_close(group);
    sifr_model_free(model);
}

static void other_devices_refuse(void **state) {
    device *dev;
    sifr_error error;
    (void)state;
    assert_int_equal(on_queues_open(&dev, &error), SIFR_OK);
    expect_refused(dev, own_compute, "device: sifr_own_loss computes on the CPU alone; set device");
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    expect_refused(dev, NULL,
                   "own_loss: the loss is a function of a program's, and none was given");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_and_stages), cmocka_unit_test(packed_and_late),
        cmocka_unit_test(tensor_ranks),     cmocka_unit_test(near_the_built_in_one),
        cmocka_unit_test(one_rank_fails),   cmocka_unit_test(other_devices_refuse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
