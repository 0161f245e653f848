/* A device that has only begun what it was given, and hides its memory: the same bits as on CPU
 * ranks at every stage and with state in host memory or on disk, whatever its queues rest; a wait
 * that is left out is seen by the thread sanitizer, and the host's own read of device memory ends
 * the program.
 * timeout: 240, label: full, in test_tsan */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/on_queues.h"
#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, SEQUENCES = 2, PAUSE_US = 60 };

/* What of the state is in host memory; on disk; in both. */
typedef enum offloaded {
    NOTHING,
    OPTIMIZER,
    GRADIENTS,
    ALL,
    OFFLOADED_KINDS,
    DISK_OPTIMIZER = OFFLOADED_KINDS,
    DISK_GRADIENTS,
    DISK_ALL,
    BOTH,
    EVERY_KIND
} offloaded;

static bool is_on_disk(offloaded which) {
    return which >= DISK_OPTIMIZER;
}

static sifr_offload disk_offload(offloaded which) {
    sifr_offload o = sifr_settings_defaults().offload;
    o.nvme_path = scratch;
    o.optimizer.device = SIFR_TIER_NVME;
    o.optimizer.pin_memory = which == DISK_GRADIENTS;
    if (which == DISK_GRADIENTS || which == DISK_ALL) o.gradients = SIFR_TIER_NVME;
    if (which == BOTH) o.gradients = o.activations = SIFR_TIER_CPU;
    if (which == DISK_ALL) o.activations = SIFR_TIER_NVME;
    if (which >= DISK_ALL) o.param.device = SIFR_TIER_NVME;
    o.sub_group_size = 3000;
    return o;
}

static sifr_offload offload_of(offloaded which) {
    if (is_on_disk(which)) return disk_offload(which);
    sifr_offload o = sifr_settings_defaults().offload;
    if (which >= OPTIMIZER) o.optimizer.device = SIFR_TIER_CPU;
    if (which >= GRADIENTS) o.gradients = SIFR_TIER_CPU;
    if (which >= ALL) o.param.device = o.activations = SIFR_TIER_CPU;
    o.sub_group_size = 3000;
    return o;
}

static void run_same(const zero_outcome *want, zero_variant v, offloaded which) {
    sifr_offload offload = offload_of(which);
    v.offload = &offload;
    v.open = on_queues_open;
    v.hidden = true;
    zero_outcome have = zero_run(v);
    if (!zero_is_same(want, &have))
        fail_msg("%s, precision %d, %d ranks, stage %d, unit order %d, %d offloaded: other bits",
                 v.type, v.precision, v.ranks, v.stage, v.unit_order, which);
    if (v.ranks == 1) assert_true(have.evaluated == want->evaluated);
    bool host = which != NOTHING && (!is_on_disk(which) || which == BOTH);
    assert_int_equal(have.host_bytes > 0, host);
    assert_int_equal(have.nvme_bytes > 0, is_on_disk(which));
    assert_true(is_on_disk(which) == (have.staging_bytes > 0));
    assert_true(have.staging_bytes < have.nvme_bytes || !is_on_disk(which));
    free(have.weights);
}

/* Llama in fp32 and bf16, and GPT-2 in fp16, where some steps are skipped. */
static zero_variant variant_of(int t) {
    zero_variant v = {.ranks = 1,
                      .type = t == 2 ? "gpt2" : "llama",
                      .precision = (sifr_precision)t,
                      .sequences = SEQUENCES,
                      .evaluate = true,
                      .global = GLOBAL};
    if (t == 2) v.steps = ZERO_MOST_STEPS, v.first_scale = 0x1p22;
    return v;
}

static void same_bits(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) {
        zero_variant v = variant_of(t);
        v.packed = t == 1; /* with positions of each batch */
        zero_outcome want = zero_run(v);
        if (t == 2) {
            assert_true(want.norm[0] < 0);
            assert_true(want.updates > 0);
        }
        for (int n = 0; n < 12; n++) {
            if (thinned_out((size_t)(n + t))) continue;
            offloaded which = (offloaded)(n % OFFLOADED_KINDS);
            v.ranks = 1 << n % 3;
            v.stage = which == NOTHING ? n / OFFLOADED_KINDS + 1 : 3;
            v.unit_order = n / 2 % 2;
            v.recompute = n / 4 % 2;
            run_same(&want, v, which);
        }
        free(want.weights);
    }
}

static void from_disk(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) {
        zero_variant v = variant_of(t);
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 8; n++) {
            if (thinned_out((size_t)(n + t))) continue;
            offloaded which = (offloaded)(DISK_OPTIMIZER + n % 4);
            v.ranks = 1 << (n + t) % 3;
            v.stage = which >= DISK_GRADIENTS ? 3 : 1 + n / 4;
            v.unit_order = n / 2 % 2;
            v.recompute = n / 4 % 2;
            run_same(&want, v, which);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* Optimizer state in host memory or on disk at each stage: updates that are deferred to the next
 * step. */
static void deferred(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1,
                      .type = "llama",
                      .precision = SIFR_BF16,
                      .global = GLOBAL,
                      .sequences = SEQUENCES,
                      .evaluate = true};
    zero_outcome want = zero_run(v);
    for (int n = 0; n < 16; n++) {
        if (thinned_out((size_t)n)) continue;
        v.stage = n % 4;
        v.ranks = 1 + n / 4 % 2;
        v.unit_order = n % 2;
        run_same(&want, v, n < 8 ? OPTIMIZER : DISK_OPTIMIZER);
    }
    free(want.weights);
}

/* --- what must not go by unseen --- */

/* Two steps with state on disk, and `harm` done to the file between them. */
static void fail_step(void (*harm)(const engine_io_file *file), const char *part) {
    enum { LENGTH = ZERO_LENGTH };
    device *dev;
    comm_group *group;
    sifr_model *model;
    sifr_engine *engine;
    sifr_error error = {0};
    sifr_step_result result;
    int32_t tokens[LENGTH] = {0}, labels[LENGTH] = {0};
    sifr_batch batch = {.tokens = tokens, .labels = labels};
    sifr_settings settings = sifr_settings_defaults();
    model_config config = zero_config("llama");
    settings.seq_length = LENGTH, settings.micro_batch_size = 1;
    settings.zero.stage = 3;
    settings.offload = disk_offload(DISK_ALL);
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(comm_open_self(&group, &error), SIFR_OK);
    assert_int_equal(on_queues_open(&dev, &error), SIFR_OK);
    assert_int_equal(engine_create_on(dev, model, &settings, group, &engine, &error), SIFR_OK);
    assert_int_equal(sifr_engine_initialise(engine, 1, &error), SIFR_OK);
    assert_int_equal(sifr_engine_step(engine, &batch, 1e-3, &result, &error), SIFR_OK);
    harm(engine_swap_file(engine->swap));
    assert_int_equal(sifr_engine_step(engine, &batch, 1e-3, &result, &error), SIFR_FAILED);
    assert_message(&error, part);
    sifr_engine_free(engine);
    comm_close(group);
    sifr_model_free(model);
    scratch_expect_empty();
}

static void cut_off(const engine_io_file *file) {
    assert_int_equal(truncate(file->path, 4096), 0);
}

static void refuse_writes(const engine_io_file *file) {
    int readable = open(file->path, O_RDONLY | O_CLOEXEC);
    assert_true(readable >= 0);
    assert_true(dup2(readable, file->descriptor) >= 0);
    close(readable);
}

static void failures(void **state) {
    (void)state;
    fail_step(cut_off, "/state: the file ends before byte");
    fail_step(refuse_writes, "/state: writing at byte ");
}

static device *open_one(void) {
    device *dev;
    sifr_error error;
    if (device_open_queued(1, NULL, PAUSE_US, 7, &dev, &error) != SIFR_OK) abort();
    return dev;
}

static void stray_read(void **state) {
    (void)state;
    device *dev = open_one();
    char *block;
    sifr_error error;
    int result;
    assert_int_equal(device_take(dev, 4096, (void **)&block, &error), SIFR_OK);
    assert_true(device_is_hidden(dev));
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile char *)block);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) ? WTERMSIG(result) == SIGSEGV : WEXITSTATUS(result) != 0);
    device_give(dev, block, 4096);
    device_close(dev);
}

/* Copies in, and computes on what they bring, with the wait between them or without. Without it no
 * mark either: to make one the host takes the queue's lock, and if the copy is over by then, all
 * that the host does next has come after it. */
static void copy_and_add(bool waits) {
    enum { COUNT = 1 << 16, BYTES = 4 * COUNT };
    device *dev = open_one();
    float *block, *host;
    device_mark mark;
    sifr_error error;
    if (device_take(dev, 2 * BYTES, (void **)&block, &error) != SIFR_OK ||
        device_take_host(dev, BYTES, (void **)&host, &error) != SIFR_OK)
        abort();
    device_matrix from = {block, 1, COUNT, COUNT, BASE_FP32}, to = from;
    to.data = block + COUNT;
    device_call call = {.kernel = DEVICE_ADD_INTO, .y = to};
    call.x[0] = from;
    if (device_prepare(dev, &call, &error) != SIFR_OK ||
        device_start_copy(dev, DEVICE_IN, block, host, BYTES, &error) != SIFR_OK ||
        (waits && device_mark_here(dev, DEVICE_IN, &mark, &error) != SIFR_OK) ||
        (waits && device_queue_wait(dev, DEVICE_COMPUTE, mark, &error) != SIFR_OK) ||
        device_run(dev, &call, &error) != SIFR_OK)
        abort();
    for (int queue = 0; queue < DEVICE_QUEUES; queue++)
        if (device_finish_queue(dev, (device_queue)queue, &error) != SIFR_OK) abort();
    device_give(dev, host, BYTES);
    device_give(dev, block, 2 * BYTES);
    device_close(dev);
}

#if defined(__SANITIZE_THREAD__)
static const char *program;

static int child_of(const char *word) {
    char command[512];
    snprintf(command, sizeof command, "'%s' %s 2>&1 | grep -q 'data race'", program, word);
    return system(command); /* 0: it was reported */
}

static void missing_wait(void **state) {
    (void)state;
    assert_int_not_equal(child_of("waits"), 0);
    /* Where one queue's thread begins only when the host already waits for it, the host's lock
     * orders what the other did before: a busy machine does so in 1 of 60. */
    int result = 1;
    for (int i = 0; i < 5 && result != 0; i++) result = child_of("forgets");
    assert_int_equal(result, 0);
}
#endif

int main(int count, char **words) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(from_disk),
        cmocka_unit_test(deferred),
        cmocka_unit_test(failures),
        cmocka_unit_test(stray_read),
#if defined(__SANITIZE_THREAD__)
        cmocka_unit_test(missing_wait),
#endif
    };
#if defined(__SANITIZE_THREAD__)
    program = words[0];
#endif
    if (count > 1) {
        copy_and_add(strcmp(words[1], "waits") == 0);
        return 0;
    }
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
