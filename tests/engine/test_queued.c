/* A device that has only begun what it was given, and hides its memory: the same bits as on CPU
 * ranks at every stage and with state in host memory, whatever its queues rest; a wait that is left
 * out is seen by the thread sanitizer, and the host's own read of device memory ends the program.
 * timeout: 240, label: full, in test_tsan */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, SEQUENCES = 2, PAUSE_US = 60 };

static atomic_uint_least64_t seed = 1;

static sifr_status open_queued(device **out, sifr_error *error) {
    return device_open_queued(1, NULL, PAUSE_US, atomic_fetch_add(&seed, 1), out, error);
}

/* What of the state is in host memory. */
typedef enum away { NOTHING, OPTIMIZER, GRADIENTS, ALL, AWAY_KINDS } away;

static sifr_offload offload_of(away which) {
    sifr_offload o = sifr_settings_defaults().offload;
    if (which >= OPTIMIZER) o.optimizer.device = SIFR_TIER_CPU;
    if (which >= GRADIENTS) o.gradients = SIFR_TIER_CPU;
    if (which >= ALL) o.param.device = o.activations = SIFR_TIER_CPU;
    o.sub_group_size = 3000;
    return o;
}

static void run_same(const zero_outcome *want, zero_variant v, away which) {
    sifr_offload offload = offload_of(which);
    v.offload = &offload;
    v.open = open_queued;
    v.hidden = true;
    zero_outcome have = zero_run(v);
    if (!zero_is_same(want, &have))
        fail_msg("%s, precision %d, %d ranks, stage %d, unit order %d, %d away: other bits", v.type,
                 v.precision, v.ranks, v.stage, v.unit_order, which);
    if (v.ranks == 1) assert_true(have.evaluated == want->evaluated);
    assert_int_equal(have.host_bytes > 0, which != NOTHING);
    free(have.weights);
}

static void same_bits(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) {
        zero_variant v = {.ranks = 1,
                          .type = t == 2 ? "gpt2" : "llama",
                          .precision = (sifr_precision)t,
                          .sequences = SEQUENCES,
                          .evaluate = true,
                          .global = GLOBAL};
        if (t == 2) v.steps = ZERO_MOST_STEPS, v.first_scale = 0x1p22; /* some are skipped */
        zero_outcome want = zero_run(v);
        if (t == 2) assert_true(want.norm[0] < 0 && want.updates > 0);
        for (int n = 0; n < 12; n++) {
            if (thinned_out((size_t)(n + t))) continue;
            away which = (away)(n % AWAY_KINDS);
            v.ranks = 1 << n % 3;
            v.stage = which == NOTHING ? n / AWAY_KINDS + 1 : 3;
            v.unit_order = n / 2 % 2;
            v.recompute = n / 4 % 2;
            run_same(&want, v, which);
        }
        free(want.weights);
    }
}

/* Optimizer state in host memory at each stage: updates that are deferred to the next step. */
static void deferred(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1,
                      .type = "llama",
                      .precision = SIFR_BF16,
                      .global = GLOBAL,
                      .sequences = SEQUENCES,
                      .evaluate = true};
    zero_outcome want = zero_run(v);
    for (int n = 0; n < 8; n++) {
        if (thinned_out((size_t)n)) continue;
        v.stage = n % 4;
        v.ranks = 1 + n / 4;
        v.unit_order = n % 2;
        run_same(&want, v, OPTIMIZER);
    }
    free(want.weights);
}

/* --- what must not go by unseen --- */

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

/* Copies in, and computes on what they bring, with the wait between them or without. */
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
        device_mark_here(dev, DEVICE_IN, &mark, &error) != SIFR_OK ||
        (waits && device_follow(dev, DEVICE_COMPUTE, mark, &error) != SIFR_OK) ||
        device_run(dev, &call, &error) != SIFR_OK)
        abort();
    for (int queue = 0; queue < DEVICE_QUEUES; queue++) {
        if (device_mark_here(dev, (device_queue)queue, &mark, &error) != SIFR_OK ||
            device_finish(dev, mark, &error) != SIFR_OK)
            abort();
    }
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
    assert_int_equal(child_of("forgets"), 0);
}
#endif

int main(int count, char **words) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(deferred),
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
