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

#include "comm/followed.h"
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

static const sifr_optimizer eight_bits = {.type = SIFR_ADAMW_8BIT,
                                          .beta1 = 0.9,
                                          .beta2 = 0.99,
                                          .eps = 1e-8,
                                          .bias_correction = true,
                                          .min_8bit_size = 1000};

/* Loss scaling, with steps that are skipped; frozen weights; state and sums in 16 bits; moments in
 * 8 bits. Each kind has the bits of its run at stage 0, and the losses of the CPU. */
static void kinds(void **state) {
    (void)state;
    static const char *const names[] = {"fp16", "frozen", "state in 16 bits", "moments in 8 bits"};
    for (int n = 0; n < 4; n++) {
        zero_variant v = plain, cpu;
        if (n == 0) {
            v.type = "gpt2", v.precision = SIFR_FP16;
            v.steps = ZERO_MOST_STEPS, v.first_scale = 0x1p22;
        }
        if (n == 1) v.freeze[0] = "model.layers.0.*", v.freeze[1] = "model.embed_tokens.weight";
        if (n == 2) v.masters = v.moments = v.gradients = SIFR_BF16;
        if (n == 3) v.optimizer = &eight_bits;
        cpu = v, cpu.open = NULL;
        zero_outcome want = zero_run(v), host = zero_run(cpu);
        if (n == 0) {
            assert_true(want.norm[0] < 0);
            assert_true(want.updates > 0);
        }
        assert_int_equal(want.updates, host.updates);
        for (int s = 0; s < (n ? ZERO_STEPS : ZERO_MOST_STEPS); s++) {
            assert_true(want.scale[s] == host.scale[s]);
            assert_true(fabs(want.loss[s] - host.loss[s]) < 0.02 * host.loss[s]);
        }
        v.stage = 3, v.unit_order = true, v.recompute = true;
        same(&want, &v, names[n]);
        free(host.weights);
        free(want.weights);
    }
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

/* --- a group of two ranks, whose other rank does what this one does --- */

/* As in a real transport a thread moves what GPUs hold: behind what was computed, and done with it
 * when it says so. */
typedef struct echo_group {
    comm_group group;
    comm_worker worker;
    comm_flags words;
    bool plain;         /* it has no words: the host waits */
    int64_t part_bytes; /* of the last control message */
    int32_t parts;      /* control messages that follow what was computed */
    int32_t waited;     /* transfers that the host waited for */
} echo_group;

static sifr_status echo_gather_now(device *dev, const comm_task *task, sifr_error *error) {
    for (int r = 0; r < 2; r++) {
        char *to = (char *)task->to + r * task->bytes;
        if (to != task->from)
            BASE_TRY(device_start_copy(dev, DEVICE_EXCHANGE, to, task->from, task->bytes, error));
    }
    return SIFR_OK;
}

static sifr_status echo_reduce_now(device *dev, const comm_task *task, sifr_error *error) {
    const void *slices[] = {task->from, task->from};
    device_sum asked = {task->type, task->sum, slices, 2, task->elements, task->to};
    return device_start_sum(dev, DEVICE_EXCHANGE, &asked, error);
}

static sifr_status echo_run(void *user, comm_task *task, sifr_error *error) {
    device *dev = task->group->dev;
    (void)user;
    BASE_TRY(device_finish(dev, task->after, error));
    if (task->kind == COMM_TASK_GATHER_CONTROL) {
        for (int r = 0; r < 2; r++)
            memcpy((char *)task->to + r * task->bytes, task->from, (size_t)task->bytes);
        return SIFR_OK;
    }
    BASE_TRY(task->kind == COMM_TASK_GATHER ? echo_gather_now(dev, task, error)
                                            : echo_reduce_now(dev, task, error));
    return device_finish_queue(dev, DEVICE_EXCHANGE, error);
}

static sifr_status echo_start(comm_group *group, comm_task task, comm_handle *out,
                              sifr_error *error) {
    echo_group *g = (echo_group *)group;
    out->group = task.group = group;
    BASE_TRY(comm_followed_reserve(&g->worker, error));
    BASE_TRY(device_mark_here(group->dev, DEVICE_COMPUTE, &task.after, error));
    return comm_worker_start(&g->worker, &task, &out->id, error);
}

static sifr_status echo_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                               comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER, .from = slice, .to = whole, .bytes = bytes};
    return echo_start(group, task, out, error);
}

static sifr_status echo_reduce(comm_group *group, const void *whole, base_dtype type,
                               base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                               sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_REDUCE,
                      .from = whole,
                      .to = slice,
                      .elements = elements,
                      .type = type,
                      .sum = sum};
    return echo_start(group, task, out, error);
}

static sifr_status echo_start_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                      comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER_CONTROL, .from = mine, .to = all, .bytes = bytes};
    ((echo_group *)group)->part_bytes = bytes;
    ((echo_group *)group)->parts++;
    return echo_start(group, task, out, error);
}

static sifr_status echo_wait(comm_group *group, int32_t id, sifr_error *error) {
    echo_group *g = (echo_group *)group;
    comm_task task;
    g->waited++;
    return comm_worker_wait(&g->worker, id, &task, error);
}

static sifr_status echo_follow(comm_group *group, int32_t id, sifr_error *error) {
    echo_group *g = (echo_group *)group;
    if (!g->words.work) return echo_wait(group, id, error);
    return comm_followed_start(&g->words, COMM_BULK, &g->worker, id, error);
}

static sifr_status echo_catch_up(comm_group *group, sifr_error *error) {
    return comm_followed_catch_up(&((echo_group *)group)->worker, error);
}

static sifr_status echo_take_words(comm_group *group, sifr_error *error) {
    echo_group *g = (echo_group *)group;
    return g->plain ? SIFR_OK : comm_flags_take(&g->words, group->dev, error);
}

static void echo_give_stage(comm_group *group) {
    comm_flags_give(&((echo_group *)group)->words);
}

/* The other rank gives what this one does: the second number of a meeting (engine/meeting.h) is 0.
 */
static sifr_status echo_sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    (void)group, (void)error;
    for (int32_t i = 0; i < count; i++) values[i] *= 2;
    if (count == 2) values[1] = 0;
    return SIFR_OK;
}

static sifr_status echo_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                sifr_error *error) {
    (void)error;
    for (int r = 0; r < 2; r++) memcpy((char *)all + r * bytes, mine, (size_t)bytes);
    (void)group;
    return SIFR_OK;
}

static sifr_status echo_broadcast(comm_group *group, int32_t root, void *data, int64_t bytes,
                                  sifr_error *error) {
    (void)group, (void)root, (void)data, (void)bytes, (void)error;
    return SIFR_OK;
}

static sifr_status echo_window(comm_group *group, void *block, int64_t bytes, int file,
                               sifr_error *error) {
    (void)group, (void)block, (void)bytes, (void)file, (void)error;
    return SIFR_OK;
}

static void echo_close_window(comm_group *group, void *block) {
    (void)group, (void)block;
}

static void echo_close(comm_group *group) {
    comm_worker_close(&((echo_group *)group)->worker);
}

static const comm_transport echo = {.all_gather = echo_gather,
                                    .reduce_scatter = echo_reduce,
                                    .wait = echo_wait,
                                    .follow = echo_follow,
                                    .catch_up = echo_catch_up,
                                    .start_control = echo_start_control,
                                    .take_words = echo_take_words,
                                    .give_stage = echo_give_stage,
                                    .sum = echo_sum,
                                    .all_gather_control = echo_control,
                                    .broadcast = echo_broadcast,
                                    .open_window = echo_window,
                                    .close_window = echo_close_window,
                                    .close = echo_close};

static void echo_open(echo_group *g, bool without_words) {
    sifr_error error;
    memset(g, 0, sizeof *g);
    g->group = (comm_group){.transport = &echo, .size = 2, .local_size = 2, .shares_memory = true};
    g->plain = without_words;
    assert_int_equal(comm_worker_open(&g->worker, echo_run, g, &error), SIFR_OK);
}

/* A step gives all its work, and then waits once. With several ranks the GPU waits for what they
 * exchange, from the second step on, or the third where an update is delayed to the next step, and
 * each brings one message to the decision. A step takes
 * nothing and copies from pinned memory alone. With cuBLASLt it makes nothing, and asks for
 * algorithms in the first step alone. */
static void expect_waits(sifr_status (*open)(device **out, sifr_error *error), echo_group *several,
                         sifr_settings settings) {
    sifr_error error = {0};
    char path[BASE_PATH_LENGTH];
    engine_folder folder;
    sifr_engine *engine;
    device *dev;
    comm_group *group = several ? &several->group : NULL;
    sifr_step_result result;
    int32_t ids[2 * 16];
    snprintf(path, sizeof path, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    assert_int_equal(engine_folder_open(path, &folder, &error), SIFR_OK);
    if (!several) assert_int_equal(comm_open_self(&group, &error), SIFR_OK);
    assert_int_equal(open(&dev, &error), SIFR_OK);
    settings.precision = SIFR_BF16;
    settings.seq_length = 16, settings.micro_batch_size = 1;
    settings.gradient_accumulation_steps = 2;
    if (engine_create_on(dev, folder.model, &settings, group, &engine, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    bool defers = engine_schedule(engine)->spread > 0;
    assert_int_equal(defers, settings.offload.optimizer.device == SIFR_TIER_CPU);
    for (int i = 0; i < 2 * 16; i++) ids[i] = i;
    sifr_batch batch = {.tokens = ids, .labels = ids};
    if (sifr_engine_step(engine, &batch, 1e-3, &result, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    for (int step = 0; step < 2; step++) {
        fake_driver_counts before = fake_driver_count();
        fake_lt_counts made = fake_lt_count();
        int64_t waits = fake_driver_waits();
        int32_t parts = several ? several->parts : 0, waited = several ? several->waited : 0;
        assert_int_equal(sifr_engine_step(engine, &batch, 1e-3, &result, &error), SIFR_OK);
        fake_driver_counts after = fake_driver_count();
        assert_int_equal(fake_driver_waits() - waits, 1);
        assert_int_equal(after.pageable_copies - before.pageable_copies, 0);
        assert_int_equal(after.blocks - before.blocks, 0);
        assert_int_equal(after.host_blocks - before.host_blocks, 0);
        assert_int_equal(after.events - before.events, 0);
        assert_int_equal(after.streams - before.streams, 0);
        assert_true(after.launches > before.launches);
        assert_int_equal(fake_lt_count().made, made.made);
        assert_int_equal(fake_lt_count().asked, made.asked);
        assert_true(result.updated);
        if (!several) continue;
        assert_int_equal(several->parts - parts, 1);
        if (!several->words.work || (defers && step == 0))
            assert_true(several->waited > waited + 1);
        else
            assert_int_equal(several->waited, waited);
        assert_int_equal(several->part_bytes, 168 + 8 * settings.gradient_accumulation_steps);
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
    sifr_settings settings = sifr_settings_defaults();
    settings.offload.optimizer.device = SIFR_TIER_CPU;
    expect_waits(fake_gpu_open, NULL, settings);
    expect_waits(fake_gpu_open_lt, NULL, settings);
}

static void one_wait_of_several_ranks(void **state) {
    (void)state;
    if (fake_gpu_is_real()) skip();
    for (int stage = 0; stage <= 4; stage++) {
        static echo_group several;
        sifr_settings settings = sifr_settings_defaults();
        settings.zero.stage = stage % 4;
        if (stage == 2) { /* small enough to be delayed */
            settings.offload.optimizer.device = SIFR_TIER_CPU;
            settings.offload.sub_group_size = 4096;
        }
        echo_open(&several, stage == 4);
        expect_waits(fake_gpu_open, &several, settings);
    }
}

/* The same with products by cuBLASLt, whose bits are its own. */
static void by_cublaslt(void **state) {
    (void)state;
    zero_variant v = plain;
    if (!fake_gpu_has_lt()) skip();
    zero_outcome own = zero_run(plain);
    v.open = fake_gpu_open_lt;
    zero_outcome want = zero_run(v);
    fake_gpu_check_lt();
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits), cmocka_unit_test(kinds),
        cmocka_unit_test(packed),    cmocka_unit_test(on_the_host),
        cmocka_unit_test(one_wait),  cmocka_unit_test(one_wait_of_several_ranks),
        cmocka_unit_test(in_chunks), cmocka_unit_test(by_cublaslt),
        cmocka_unit_test(on_disk)};
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, begin, end);
}
