/* Parameters and gradients on disk: the same bits as in memory, on 1, 2 and 4 ranks, with or
 * without the optimizer's state there, whatever the buffers; frozen and kept weights; what is
 * refused. timeout: 120 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, PIN_SKIPPED = 77 };

static sifr_offload on_disk(bool optimizer) {
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    offload.optimizer.device = optimizer ? SIFR_TIER_NVME : SIFR_TIER_NONE;
    offload.param.device = SIFR_TIER_NVME;
    return offload;
}

/* Ranks, precisions and both orders; the optimizer's state in memory and on disk. */
static void same_bits(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) {
        zero_variant v = {.ranks = 1,
                          .type = t == 2 ? "gpt2" : "llama",
                          .precision = (sifr_precision)(t % 2 ? SIFR_BF16 : SIFR_FP32),
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        v.stage = 3;
        for (int n = 0; n < 12; n++) {
            static const int64_t groups[] = {1, 5000, 0, 2048, 1000000};
            sifr_offload offload = on_disk(n / 6);
            v.ranks = 1 << n % 3;
            offload.sub_group_size = groups[n % 5];
            v.offload = &offload;
            v.unit_order = n / 3 % 2;
            v.recompute = n % 4 == 0;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* How it is read, and what of it stays in memory, changes nothing, each of it on every number of
 * ranks. */
static void settings(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1, .type = "llama", .precision = SIFR_BF16, .global = GLOBAL};
    zero_outcome want = zero_run(v);
    v.stage = 3;
    for (int k = 0; k < 3 * 24; k++) {
        if (thinned_run((size_t)(k + k / 24))) continue;
        int n = k % 24;
        sifr_offload offload = on_disk(n % 2);
        sifr_zero keys = sifr_settings_defaults().zero;
        v.ranks = 1 << k / 24;
        offload.param.buffer_count = n % 3 == 1 ? 2 + n : n % 3 ? 8 + n : 0;
        offload.param.buffer_size = n % 4 ? 1000000000 : 0;
        offload.param.max_in_cpu = n % 5 == 0 ? 20000 / v.ranks : n % 5 == 1 ? 1000000000 : 0;
        offload.optimizer.pipeline_read = n >> 1 & 1;
        offload.optimizer.pipeline_write = n >> 2 & 1;
        offload.aio.block_size = n % 3 ? 4096 : 1 << 20;
        offload.aio.queue_depth = 1 + n % 4 * 5;
        offload.aio.intra_op_parallelism = 1 + n % 2;
        offload.optimizer.pin_memory = n / 2 % 2;
        offload.param.pin_memory = n / 3 % 2;
        offload.aio.single_submit = n >> 3 & 1;
        offload.aio.overlap_events = (n + n / 8) % 2;
        keys.overlap_comm = n % 7 != 0;
        keys.prefetch_bucket_size = n % 3 * 30000;
        keys.max_reuse_distance = n % 4 == 3 ? 100000 : 0;
        keys.param_persistence_threshold = n % 6 == 4 ? 3000 : 0;
        v.offload = &offload;
        v.keys = &keys;
        zero_expect_same(&want, v);
    }
    free(want.weights);
    scratch_expect_empty();
}

/* Steps that are skipped; weights that are frozen, beside those that are not. */
static void skipped_and_frozen(void **state) {
    (void)state;
    static const char *const patterns[][2] = {
        {"*layers.0*", "*norm*"}, {"*norm*", NULL}, {"*q_proj*", "*down*"}, {"*embed*", NULL}};
    for (int n = 0; n < 4; n++) {
        zero_variant v = {.ranks = 1,
                          .type = "llama",
                          .precision = SIFR_FP16,
                          .global = GLOBAL,
                          .steps = ZERO_MOST_STEPS,
                          .first_scale = 0x1p22,
                          .freeze = {patterns[n][0], patterns[n][1]}};
        zero_outcome want = zero_run(v);
        assert_true(want.norm[0] < 0);
        assert_in_range(want.updates, 2, ZERO_MOST_STEPS - 1);
        sifr_offload offload = on_disk(n % 2);
        offload.sub_group_size = 3000;
        v.offload = &offload;
        v.stage = 3;
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) zero_expect_same(&want, v);
        free(want.weights);
    }
}

/* Gradients: orders, types of the sums, frozen weights, skipped steps, with and without the rest.
 */
static void gradients(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        zero_variant v = {.ranks = 1,
                          .type = t == 3 ? "gpt2" : "llama",
                          .precision = t == 0   ? SIFR_FP32
                                       : t == 1 ? SIFR_FP16
                                                : SIFR_BF16,
                          .gradients = t == 2 ? SIFR_BF16 : SIFR_FP32,
                          .global = GLOBAL,
                          .freeze = {t == 1 ? "*norm*" : NULL}};
        if (t == 1) v.steps = ZERO_MOST_STEPS, v.first_scale = 0x1p22;
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 6; n++) {
            sifr_offload offload = on_disk(n != 1);
            offload.param.device = n < 3 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
            offload.gradients = SIFR_TIER_NVME;
            offload.sub_group_size = n % 2 ? 3000 : 0;
            offload.optimizer.buffer_count = n == 4 ? 3 : 0;
            v.ranks = 1 << n % 3;
            v.stage = n < 3 ? 3 : 2;
            v.unit_order = n % 2;
            v.offload = &offload;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* Each sum is written once and read once. */
static void gradients_move_once(void **state) {
    (void)state;
    for (int n = 0; n < 2; n++) {
        zero_variant v = {.ranks = n ? 2 : 1,
                          .type = "llama",
                          .precision = SIFR_BF16,
                          .stage = 3,
                          .unit_order = true,
                          .global = 2};
        sifr_offload offload = on_disk(true);
        offload.sub_group_size = 1024;
        v.offload = &offload;
        zero_outcome memory = zero_run(v);
        offload.gradients = SIFR_TIER_NVME;
        zero_outcome disk = zero_run(v);
        int64_t sums = disk.nvme_bytes - memory.nvme_bytes;
        assert_true(sums > 0);
        assert_int_equal(disk.nvme_written - memory.nvme_written, sums);
        assert_int_equal(disk.nvme_read - memory.nvme_read, sums);
        free(memory.weights);
        free(disk.weights);
    }
}

/* Evaluation reads the parameters that training has on disk. */
static void evaluation(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        zero_variant v = {.ranks = n < 2 ? 1 : 2,
                          .type = n % 2 ? "gpt2" : "llama",
                          .precision = (sifr_precision)(n % 2 ? SIFR_FP32 : SIFR_BF16),
                          .stage = 3,
                          .global = 2,
                          .evaluate = true};
        zero_outcome want = zero_run(v);
        sifr_offload offload = on_disk(n == 0);
        v.offload = &offload;
        zero_outcome have = zero_run(v);
        assert_true(want.evaluated > 0);
        assert_true(have.evaluated == want.evaluated);
        free(want.weights);
        free(have.weights);
    }
}

/* What leaves memory and goes to disk, and what a step moves, to the byte. */
static void plan(void **state) {
    (void)state;
    for (int n = 0; n < 2; n++) {
        zero_variant v = {
            .ranks = n ? 2 : 1, .type = "llama", .precision = SIFR_BF16, .stage = 3, .global = 2};
        zero_outcome memory = zero_run(v);
        sifr_offload offload = on_disk(false);
        v.offload = &offload;
        zero_outcome disk = zero_run(v);
        int64_t slices = memory.peak[PLAN_PARAMETERS];
        assert_int_equal(disk.peak[PLAN_PARAMETERS], 0);
        assert_in_range(disk.nvme_bytes, slices, slices + 8 * PLAN_DISK_ALIGNMENT);
        assert_in_range(disk.nvme_written, slices, slices + 8 * PLAN_DISK_ALIGNMENT);
        assert_true(disk.nvme_read > disk.nvme_written);
        assert_int_equal(disk.peak[PLAN_MOMENTS], memory.peak[PLAN_MOMENTS]);
        assert_int_equal(disk.peak[PLAN_MASTERS], memory.peak[PLAN_MASTERS]);
        free(memory.weights);
        free(disk.weights);
    }
}

static sifr_status make(const sifr_offload *offload, int stage, sifr_error *error) {
    model_config config = zero_config("llama");
    sifr_settings options = sifr_settings_defaults();
    sifr_engine *engine = NULL;
    sifr_model *model;
    options.threads = 1;
    options.seq_length = ZERO_LENGTH;
    options.zero.stage = stage;
    options.precision = SIFR_BF16;
    options.offload = *offload;
    assert_int_equal(model_from_config(&config, &model, error), SIFR_OK);
    sifr_status status = sifr_engine_create(model, &options, &engine, error);
    sifr_engine_free(engine);
    sifr_model_free(model);
    return status;
}

/* The first number that a refusal names works, and one less does not. */
static void refusals(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_offload offload = on_disk(true);
    long long size;
    int count;
    assert_int_equal(make(&offload, 2, &error), SIFR_USAGE);
    assert_message(&error, "at ZeRO stage 3 only");
    offload.param.buffer_size = 1;
    assert_int_equal(make(&offload, 3, &error), SIFR_USAGE);
    /* not the embedding, which is read first */
    assert_int_equal(sscanf(error.message,
                            "offload_param: buffer_size 1: a rank's slice of layers.%*s has "
                            "%lld",
                            &size),
                     1);
    offload.param.buffer_size = size - 1;
    assert_int_equal(make(&offload, 3, &error), SIFR_USAGE);
    offload.param.buffer_size = size;
    assert_int_equal(make(&offload, 3, &error), SIFR_OK);
    offload = on_disk(false);
    offload.param.buffer_count = 1; /* a tied head reads two units */
    assert_int_equal(make(&offload, 3, &error), SIFR_USAGE);
    assert_int_equal(sscanf(error.message, "offload_param: buffer_count 1: %d slices", &count), 1);
    offload.param.buffer_count = count - 1;
    assert_int_equal(make(&offload, 3, &error), SIFR_USAGE);
    offload.param.buffer_count = count;
    assert_int_equal(make(&offload, 3, &error), SIFR_OK);
}

/* Under a limit of locked memory that holds the optimizer's buffers and not an embedding. */
static int pin_within_limit(void) {
    model_config config = zero_config("llama");
    sifr_settings options = sifr_settings_defaults();
    sifr_model *model;
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    const rlim_t few = 8 << 20;
    if (setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){few, few}) != 0) return PIN_SKIPPED;
    if (geteuid() == 0 && setuid(65534) != 0) return PIN_SKIPPED; /* root may lock anything */
    config.vocab_size = 1 << 17;
    config.hidden_size = 64;
    config.head_dim = 16;
    options.threads = 1;
    options.seq_length = ZERO_LENGTH;
    options.zero.stage = 3;
    options.offload = on_disk(true);
    options.offload.sub_group_size = 2048;
    if (model_from_config(&config, &model, &error) != SIFR_OK) return 1;
    if (sifr_engine_create(model, &options, &engine, &error) != SIFR_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    const engine_pinned *p = &engine->pinned;
    bool rings = engine_io_uses_rings(engine_swap_io(engine->swap));
    bool right =
        p->asked > (32 << 20) && p->number == ENOMEM && p->bytes > 0 && p->bytes < (8 << 20);
    if (rings && !right)
        fprintf(stderr, "%lld of %lld bytes, %s\n", (long long)p->bytes, (long long)p->asked,
                strerror(p->number));
    sifr_engine_free(engine);
    sifr_model_free(model);
    return rings ? !right : PIN_SKIPPED;
}

static void locked_memory(void **state) {
    (void)state;
    int result;
    assert_int_equal(chmod(scratch, 0777), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(pin_within_limit());
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    if (WEXITSTATUS(result) == PIN_SKIPPED) skip();
    assert_int_equal(WEXITSTATUS(result), 0);
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),
                                       cmocka_unit_test(settings),
                                       cmocka_unit_test(skipped_and_frozen),
                                       cmocka_unit_test(gradients),
                                       cmocka_unit_test(gradients_move_once),
                                       cmocka_unit_test(evaluation),
                                       cmocka_unit_test(plan),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(locked_memory)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
