/* Optimizer state on disk: the same bits as in memory, at every stage, rank count and step order,
 * whatever the sub-groups, buffers and requests; skipped steps; what the plan says of it.
 * timeout: 120, in test_asan, in test_tsan */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "engine/store/swap.h"
#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4 };

static sifr_offload on_disk(void) {
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    offload.optimizer.device = SIFR_TIER_NVME;
    return offload;
}

/* Stages, ranks and orders; the sizes change on the way. */
static void same_bits(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) {
        zero_variant v = {.ranks = 1,
                          .type = t == 2 ? "gpt2" : "llama",
                          .precision = (sifr_precision)(t % 2 ? SIFR_BF16 : SIFR_FP32),
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        assert_int_equal(want.nvme_bytes, 0);
        int n = 0;
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
            for (v.stage = v.ranks == 1 ? 3 : 0; v.stage < 4; v.stage++, n++) {
                if (thinned_run((size_t)(n + 3 * t))) continue;
                static const int64_t groups[] = {1, 5000, 0, 2048, 1000000};
                sifr_offload offload = on_disk();
                offload.sub_group_size = groups[n % 5];
                offload.optimizer.ratio = n % 4 == 3 ? 0.4 : 1;
                v.offload = &offload;
                v.unit_order = n % 2;
                v.recompute = n % 3 == 0;
                zero_expect_same(&want, v);
            }
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* How it is read and written changes nothing, each of it on every number of ranks. */
static void settings(void **state) {
    (void)state;
    static const int64_t groups[] = {2048, 1, 5000, 0};
    zero_variant v = {.ranks = 1, .type = "llama", .precision = SIFR_BF16, .global = GLOBAL};
    zero_outcome want = zero_run(v);
    for (int k = 0; k < 3 * 24; k++) {
        if (thinned_run((size_t)(k + k / 24))) continue;
        int n = k % 24;
        sifr_offload offload = on_disk();
        offload.sub_group_size = groups[n / 5 % 4];
        offload.optimizer.buffer_count = n % 8 ? 2 + n % 8 + n / 8 : 0;
        if (offload.optimizer.buffer_count && offload.optimizer.buffer_count < 3)
            offload.optimizer.buffer_count = 3;
        offload.optimizer.pipeline_read = n & 1;
        offload.optimizer.pipeline_write = n >> 1 & 1;
        offload.optimizer.pin_memory = n >> 2 & 1;
        offload.param.pin_memory = false;
        offload.aio.block_size = n % 3 ? 4096 : 1 << 20;
        offload.aio.queue_depth = 1 + n % 4 * 5;
        offload.aio.intra_op_parallelism = 1 + n % 2;
        offload.aio.single_submit = n >> 3 & 1;
        offload.aio.overlap_events = n % 3;
        v.ranks = 1 << k / 24;
        v.stage = v.ranks > 1 ? (n + k / 24) % 4 : 0;
        v.offload = &offload;
        zero_expect_same(&want, v);
    }
    free(want.weights);
    scratch_expect_empty();
}

/* Each kind of state by itself: the same bits, and as much on disk as that is. */
static void one_kind(void **state) {
    (void)state;
    for (int n = 0; n < 6; n++) {
        zero_variant v = {.ranks = 1,
                          .type = n % 2 ? "gpt2" : "llama",
                          .precision = n < 4 ? SIFR_BF16 : SIFR_FP16,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        sifr_offload offload = on_disk();
        offload.optimizer.state = n % 2 ? SIFR_STATE_MOMENTS : SIFR_STATE_MASTER_WEIGHTS;
        offload.sub_group_size = n < 3 ? 2048 : 0;
        v.offload = &offload;
        v.ranks = 1 << n % 3;
        v.stage = v.ranks > 1 ? n % 4 : 0;
        v.unit_order = n > 2;
        zero_outcome have = zero_run(v);
        assert_true(zero_is_same(&want, &have));
        assert_int_equal(have.peak[PLAN_MASTERS] > 0, n % 2);
        assert_int_equal(have.peak[PLAN_MOMENTS] > 0, !(n % 2));
        assert_true(have.nvme_bytes > 0);
        free(have.weights);
        free(want.weights);
    }
    scratch_expect_empty();
}

/* Sums of gradients by themselves, where they are slices or whole on one rank. */
static void gradients_alone(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1, .type = "llama", .precision = SIFR_BF16, .global = GLOBAL};
    zero_outcome want = zero_run(v);
    for (int n = 0; n < 6; n++) {
        sifr_offload offload = on_disk();
        offload.optimizer.device = SIFR_TIER_NONE;
        offload.gradients = SIFR_TIER_NVME;
        offload.sub_group_size = n % 2 ? 2048 : 0;
        v.offload = &offload;
        v.ranks = 1 << n % 3;
        v.stage = v.ranks > 1 ? 2 + n / 3 : 0;
        v.unit_order = n > 2;
        zero_outcome have = zero_run(v);
        assert_true(zero_is_same(&want, &have));
        assert_true(have.peak[PLAN_MASTERS] > 0);
        assert_true(have.peak[PLAN_MOMENTS] > 0);
        /* fp32 sums, a rank's share: half of what the moments take; whole pages */
        assert_in_range(have.nvme_bytes, have.peak[PLAN_MOMENTS] / 2,
                        have.peak[PLAN_MOMENTS] / 2 + 64 * 4096);
        free(have.weights);
    }
    free(want.weights);
    scratch_expect_empty();
}

/* Steps that overflow change nothing on disk either, nor do weights that are frozen. */
static void skipped_and_frozen(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1,
                      .type = "llama",
                      .precision = SIFR_FP16,
                      .global = GLOBAL,
                      .steps = ZERO_MOST_STEPS,
                      .first_scale = 0x1p22,
                      .freeze = {"*layers.0*", "*norm*"}};
    zero_outcome want = zero_run(v);
    assert_true(want.norm[0] < 0);
    assert_in_range(want.updates, 2, ZERO_MOST_STEPS - 1);
    sifr_offload offload = on_disk();
    offload.sub_group_size = 3000;
    v.offload = &offload;
    for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
        v.stage = v.ranks == 2 ? 1 : 3;
        zero_expect_same(&want, v);
    }
    free(want.weights);
}

/* State leaves memory but for the buffers, which lie where activations were. */
static void plan(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        zero_variant v = {.ranks = 2,
                          .type = "llama",
                          .precision = (sifr_precision)(t ? SIFR_BF16 : SIFR_FP32),
                          .stage = 2,
                          .global = 2};
        zero_outcome memory = zero_run(v);
        int64_t moved = memory.peak[PLAN_MOMENTS] + memory.peak[PLAN_MASTERS];
        sifr_offload offload = on_disk();
        offload.sub_group_size = 1024;
        v.offload = &offload;
        zero_outcome disk = zero_run(v);
        assert_int_equal(disk.nvme_bytes, moved);
        assert_int_equal(disk.peak[PLAN_MOMENTS] + disk.peak[PLAN_MASTERS], 0);
        assert_true(memory.total_bytes - disk.total_bytes > moved * 9 / 10);
        free(disk.weights);

        /* Of DeepSpeed's `ratio` as much as whole units allow. */
        int64_t before = 0;
        for (int share = 1; share <= 4; share++) {
            offload.optimizer.ratio = share / 4.0;
            zero_outcome part = zero_run(v);
            assert_in_range(part.nvme_bytes, moved * share / 4, moved);
            assert_true(part.nvme_bytes >= before);
            assert_true((share > 1 || part.nvme_bytes < moved));
            assert_int_equal(part.nvme_bytes + part.peak[PLAN_MOMENTS] + part.peak[PLAN_MASTERS],
                             moved);
            before = part.nvme_bytes;
            free(part.weights);
        }
        assert_int_equal(before, moved);
        free(memory.weights);
    }
}

/* An engine of its own, for what goes wrong. */
static sifr_status make(sifr_model **model, const sifr_offload *offload, sifr_engine **engine,
                        sifr_error *error) {
    model_config config = zero_config("llama");
    sifr_settings options = sifr_settings_defaults();
    options.threads = 1;
    options.seq_length = ZERO_LENGTH;
    options.precision = SIFR_BF16;
    options.offload = *offload;
    assert_int_equal(model_from_config(&config, model, error), SIFR_OK);
    return sifr_engine_create(*model, &options, engine, error);
}

static sifr_status try_out(const sifr_offload *offload, sifr_error *error) {
    sifr_model *model;
    sifr_engine *engine = NULL;
    sifr_status status = make(&model, offload, &engine, error);
    sifr_engine_free(engine);
    sifr_model_free(model);
    return status;
}

/* The number that a refusal names works, whatever kinds of state are there; one less does not. */
static void refusals(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_offload offload;
    for (int n = 0; n < 4; n++) {
        int kinds, ahead;
        offload = on_disk();
        offload.optimizer.state = n % 2 ? SIFR_STATE_MOMENTS : SIFR_STATE_ALL;
        offload.gradients = n / 2 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        offload.optimizer.buffer_count = 1;
        assert_int_equal(try_out(&offload, &error), SIFR_USAGE);
        assert_int_equal(sscanf(error.message,
                                "offload_optimizer: buffer_count 1: a sub-group moves %d kinds "
                                "of state and needs that many buffers; give at least that, or %d",
                                &kinds, &ahead),
                         2);
        assert_int_equal(kinds, n % 2 ? 2 : 3);
        assert_int_equal(ahead, 3 * kinds);
        offload.optimizer.buffer_count = kinds - 1;
        assert_int_equal(try_out(&offload, &error), SIFR_USAGE);
        offload.optimizer.buffer_count = kinds;
        assert_int_equal(try_out(&offload, &error), SIFR_OK);
        offload.optimizer.buffer_count = ahead;
        assert_int_equal(try_out(&offload, &error), SIFR_OK);
    }
    offload = on_disk();
    offload.nvme_path = scratch_path("none");
    assert_int_equal(try_out(&offload, &error), SIFR_USAGE);
    assert_message(&error, "no such directory");
    offload = on_disk();
    offload.aio.block_size = 5000; /* the library is told the rules, not the config's reader */
    assert_int_equal(try_out(&offload, &error), SIFR_USAGE);
    assert_message(&error,
                   "offload.aio.block_size: 5000 is not a multiple of 4096 in [1, 1073741824]");
    offload.aio.block_size = 4096;
    offload.aio.queue_depth = 4096;
    assert_int_equal(try_out(&offload, &error), SIFR_OK);
    scratch_expect_empty();
}

/* As many buffers as there may be are pinned in a few pieces. */
static void many_buffers(void **state) {
    (void)state;
    model_config config = zero_config("llama");
    sifr_settings options = sifr_settings_defaults();
    sifr_model *model;
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    int count = 0;
    config.num_hidden_layers = 24;
    options.threads = 1;
    options.seq_length = ZERO_LENGTH;
    options.precision = SIFR_BF16;
    options.offload = on_disk();
    options.offload.sub_group_size = 1;
    options.offload.optimizer.buffer_count = 1 << 20;
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(sifr_engine_create(model, &options, &engine, &error), SIFR_OK);
    for (size_t b = 0; b < engine->training->buffer_count; b++)
        count += engine->training->buffers[b].class == PLAN_SWAP;
    assert_true(count > 256);
    const engine_pinned *pinned = &engine->pinned;
    assert_true(pinned->asked > 256 * 4096);
    if (engine_io_uses_rings(engine_swap_io(engine->swap)) && pinned->number != ENOMEM)
        assert_int_equal(pinned->bytes, pinned->asked);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

typedef struct between {
    sifr_model *model;
    sifr_engine *engine;
    double loss, evaluated;
    float weights[3][1 << 14];
    size_t count;
} between;

/* Steps with what looks at state between them: a weight after the first and the last, an evaluation
 * after the second. */
static void run_between(between *b, const sifr_offload *offload, int length) {
    int32_t tokens[256], labels[256];
    sifr_error error = {0};
    sifr_step_result result;
    model_config config = zero_config("llama");
    config.max_position_embeddings = length;
    sifr_settings options = sifr_settings_defaults();
    options.threads = 1;
    options.seq_length = length;
    options.precision = SIFR_BF16;
    options.offload = *offload;
    for (int i = 0; i < length; i++) tokens[i] = i * 7 % 97, labels[i] = (i * 7 + 7) % 97;
    assert_int_equal(model_from_config(&config, &b->model, &error), SIFR_OK);
    assert_int_equal(sifr_engine_create(b->model, &options, &b->engine, &error), SIFR_OK);
    assert_int_equal(sifr_engine_initialise(b->engine, 1, &error), SIFR_OK);
    const model_weight *w = &b->model->weights[0];
    b->count = (size_t)(w->rows * w->columns);
    assert_true(b->count <= sizeof b->weights[0] / sizeof(float));
    for (int s = 0; s < 4; s++) {
        int64_t labelled;
        assert_int_equal(sifr_engine_step(b->engine,
                                          &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-2,
                                          &result, &error),
                         SIFR_OK);
        if (s == 1)
            assert_int_equal(sifr_engine_evaluate(b->engine,
                                                  &(sifr_batch){.tokens = tokens, .labels = labels},
                                                  &b->evaluated, &labelled, &error),
                             SIFR_OK);
        if (s == 0 || s == 3)
            assert_int_equal(
                sifr_engine_read_weight(b->engine, w->name, b->weights[s / 3], b->count, &error),
                SIFR_OK);
    }
    b->loss = result.loss;
}

/* What the next step would carry out is carried out before anybody looks; until then state is not
 * given away; and what goes wrong then is said then. */
static void between_steps(void **state) {
    (void)state;
    static between memory, disk;
    sifr_error error = {0};
    sifr_offload offload = sifr_settings_defaults().offload;
    run_between(&memory, &offload, 256);
    offload = on_disk();
    offload.sub_group_size = 2048;
    run_between(&disk, &offload, 256);
    assert_true(disk.engine->training->spread > 0);
    assert_true(memory.engine->training->spread == 0);
    assert_memory_equal(disk.weights, memory.weights, sizeof disk.weights);
    assert_true(disk.loss == memory.loss);
    assert_true(disk.evaluated == memory.evaluated);

    int32_t tokens[256] = {0}, labels[256] = {0};
    sifr_step_result result;
    float *values = disk.weights[2];
    const void *view;
    assert_int_equal(sifr_engine_step(disk.engine,
                                      &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-2,
                                      &result, &error),
                     SIFR_OK);
    assert_int_equal(engine_view(disk.engine, 0, ENGINE_MASTER, 0, 16, values, &view, &error),
                     SIFR_FAILED);
    assert_message(&error, "its update is delayed");
    const engine_io_file *file = engine_swap_file(disk.engine->swap);
    assert_int_equal(truncate(file->path, 64 * 4096), 0);
    const char *name = disk.model->weights[0].name;
    assert_int_equal(sifr_engine_read_weight(disk.engine, name, values, disk.count, &error),
                     SIFR_FAILED);
    assert_message(&error, "/state: the file ends before byte");
    sifr_engine_free(disk.engine);
    sifr_engine_free(memory.engine);
    sifr_model_free(disk.model);
    sifr_model_free(memory.model);
    scratch_expect_empty();
}

/* A file that is cut off under a run: the step says what it could not read, and all ends well. */
static void failure(void **state) {
    (void)state;
    sifr_model *model;
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    sifr_step_result result;
    int32_t tokens[ZERO_LENGTH] = {0}, labels[ZERO_LENGTH] = {0};
    sifr_offload offload = on_disk();
    offload.sub_group_size = 1024;
    assert_int_equal(make(&model, &offload, &engine, &error), SIFR_OK);
    assert_int_equal(sifr_engine_initialise(engine, 1, &error), SIFR_OK);
    assert_int_equal(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels},
                                      1e-3, &result, &error),
                     SIFR_OK);
    const engine_io_file *file = engine_swap_file(engine->swap);
    struct stat about;
    assert_int_equal(stat(file->path, &about), 0);
    assert_int_equal(about.st_size, engine->training->nvme_bytes);
    assert_int_equal(truncate(file->path, 64 * 4096), 0);
    assert_int_equal(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels},
                                      1e-3, &result, &error),
                     SIFR_FAILED);
    assert_message(&error, "/state: the file ends before byte");
    sifr_engine_free(engine);
    sifr_model_free(model);
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),          cmocka_unit_test(settings),
        cmocka_unit_test(one_kind),           cmocka_unit_test(gradients_alone),
        cmocka_unit_test(skipped_and_frozen), cmocka_unit_test(plan),
        cmocka_unit_test(refusals),           cmocka_unit_test(many_buffers),
        cmocka_unit_test(between_steps),      cmocka_unit_test(failure)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
