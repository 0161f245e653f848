/* Training on a GPU that a fake driver plays: the same bits at every stage, order, with
 * recomputation, tiles and state on the host or on disk; and what crosses. timeout: 600,
 * label: full */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cuda/fake_driver.h"
#include "support/cuda/fake_gpu.h"
#include "support/cuda/fake_lt.h"
#include "support/cuda/shim_run.h"
#include "support/scratch.h"
#include "support/zero_run.h"

static const zero_variant plain = {.ranks = 1,
                                   .type = "llama",
                                   .precision = SIFR_BF16,
                                   .sequences = 2,
                                   .global = 4,
                                   .evaluate = true,
                                   .open = fake_gpu_open};

static void same(const zero_outcome *want, const zero_variant *v, const char *what) {
    zero_outcome have = zero_run(*v);
    if (!zero_is_same(want, &have)) fail_msg("%s: other bits", what);
    free(have.weights);
    fake_gpu_check_returned();
}

static void same_bits(void **state) {
    (void)state;
    zero_outcome want = zero_run(plain);
    zero_variant v = plain;
    same(&want, &v, "again");
    v.stage = 3, v.unit_order = true;
    same(&want, &v, "stage 3, unit order");
    v = plain, v.recompute = true;
    same(&want, &v, "recomputed");
    free(want.weights);
}

/* Several documents in a sequence: the losses of the CPU, and the same bits again. */
static void packed(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    for (int t = 0; t < 2; t++) {
        zero_variant v = plain, cpu;
        v.type = types[t], v.precision = SIFR_FP32;
        v.length = 80, v.steps = 1; /* longer than a block of attention */
        zero_outcome one = zero_run(v);
        v.packed = true;
        cpu = v, cpu.open = NULL;
        zero_outcome want = zero_run(v), host = zero_run(cpu);
        assert_true(fabs(want.loss[0] - host.loss[0]) < 1e-5 * host.loss[0]);
        assert_true(fabs(want.loss[0] - one.loss[0]) > 1e-3);
        v.stage = 3, v.unit_order = true, v.recompute = true;
        same(&want, &v, "packed: stage 3, unit order, recomputed");
        free(host.weights);
        free(want.weights);
        free(one.weights);
    }
}

static void on_the_host(void **state) {
    (void)state;
    sifr_offload offload = sifr_settings_defaults().offload;
    zero_outcome want = zero_run(plain);
    zero_variant v = plain;
    v.offload = &offload;
    offload.optimizer.device = SIFR_TIER_CPU;
    same(&want, &v, "optimizer state on the host");
    offload.param.device = offload.activations = SIFR_TIER_CPU;
    v.stage = 3;
    same(&want, &v, "state, parameters and activations on the host");
    free(want.weights);
}

/* A step gives all its work, and then waits once; it takes nothing and copies from pinned memory
 * alone. With cuBLASLt it makes nothing, and asks for algorithms in the first step alone. */
static void expect_one_wait(sifr_status (*open)(device **out, sifr_error *error)) {
    sifr_error error = {0};
    char path[BASE_PATH_LENGTH];
    engine_folder folder;
    sifr_engine *engine;
    device *dev;
    comm_group *group;
    sifr_step_result result;
    int32_t ids[2 * 16];
    snprintf(path, sizeof path, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    assert_int_equal(engine_folder_open(path, &folder, &error), SIFR_OK);
    assert_int_equal(comm_open_self(&group, &error), SIFR_OK);
    assert_int_equal(open(&dev, &error), SIFR_OK);
    sifr_settings settings = sifr_settings_defaults();
    settings.precision = SIFR_BF16;
    settings.seq_length = 16, settings.micro_batch_size = 1;
    settings.gradient_accumulation_steps = 2;
    settings.offload.optimizer.device = SIFR_TIER_CPU;
    assert_int_equal(engine_create_on(dev, folder.model, &settings, group, &engine, &error),
                     SIFR_OK);
    for (int i = 0; i < 2 * 16; i++) ids[i] = i;
    sifr_batch batch = {.tokens = ids, .labels = ids};
    assert_int_equal(sifr_engine_step(engine, &batch, 1e-3, &result, &error), SIFR_OK);
    for (int step = 0; step < 2; step++) {
        fake_driver_counts before = fake_driver_count();
        fake_lt_counts made = fake_lt_count();
        assert_int_equal(sifr_engine_step(engine, &batch, 1e-3, &result, &error), SIFR_OK);
        fake_driver_counts after = fake_driver_count();
        assert_int_equal(after.waits - before.waits, 1);
        assert_int_equal(after.pageable_copies - before.pageable_copies, 0);
        assert_int_equal(after.blocks - before.blocks, 0);
        assert_int_equal(after.host_blocks - before.host_blocks, 0);
        assert_int_equal(after.events - before.events, 0);
        assert_int_equal(after.streams - before.streams, 0);
        assert_true(after.launches > before.launches);
        assert_int_equal(fake_lt_count().made, made.made);
        assert_int_equal(fake_lt_count().asked, made.asked);
    }
    sifr_engine_free(engine);
    comm_close(group);
    engine_folder_close(&folder);
    fake_gpu_check_returned();
}

/* A micro batch of one chunk and a part, whole and in tiles; gradients and the head add chunks. */
static void in_chunks(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        zero_variant v = plain;
        v.open = fake_gpu_open_short;
        v.sequences = 20, v.global = 1, v.steps = 1;
        if (i) v.type = "gpt2", v.precision = SIFR_FP32;
        zero_outcome want = zero_run(v);
        v.tile_tokens = FAKE_GPU_SHORT_CHUNK, v.recompute = true;
        same(&want, &v, v.type);
        free(want.weights);
    }
}

static void one_wait(void **state) {
    (void)state;
    if (fake_gpu_is_real()) skip();
    expect_one_wait(fake_gpu_open);
    expect_one_wait(fake_gpu_open_lt);
}

/* The same with products by cuBLASLt, whose bits are its own. */
static void by_cublaslt(void **state) {
    (void)state;
    zero_variant v = plain;
    if (!fake_gpu_has_lt()) skip();
    zero_outcome own = zero_run(plain);
    v.open = fake_gpu_open_lt;
    zero_outcome want = zero_run(v);
    if (!fake_gpu_is_real()) assert_true(fake_lt_count().products > 0);
    assert_true(fabs(want.loss[ZERO_STEPS - 1] - own.loss[ZERO_STEPS - 1]) < 0.02);
    same(&want, &v, "cuBLASLt: again");
    v.stage = 3, v.unit_order = true, v.recompute = true;
    same(&want, &v, "cuBLASLt: stage 3, unit order, recomputed");
    free(want.weights);
    free(own.weights);
}

/* Through pinned memory, with the driver's own queues. */
static void on_disk(void **state) {
    (void)state;
    sifr_offload offload = sifr_settings_defaults().offload;
    zero_outcome want = zero_run(plain);
    zero_variant v = plain;
    v.offload = &offload;
    offload.nvme_path = scratch;
    offload.sub_group_size = 3000;
    offload.optimizer.device = SIFR_TIER_NVME;
    same(&want, &v, "optimizer state on disk");
    offload.param.device = offload.activations = SIFR_TIER_NVME;
    v.stage = 3;
    same(&want, &v, "state, parameters and activations on disk");
    free(want.weights);
    scratch_expect_empty();
}

static int begin(void **state) {
    return scratch_setup(state) || fake_gpu_start(state);
}

static int end(void **state) {
    int result = fake_gpu_stop(state);
    return scratch_teardown(state) || result;
}

/* One argument: the test to run, else all. */
int main(int count, char **arguments) {
    if (shim_skipped()) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),   cmocka_unit_test(packed),
                                       cmocka_unit_test(on_the_host), cmocka_unit_test(one_wait),
                                       cmocka_unit_test(in_chunks),   cmocka_unit_test(by_cublaslt),
                                       cmocka_unit_test(on_disk)};
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, begin, end);
}
