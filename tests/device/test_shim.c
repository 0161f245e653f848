/* The shim that runs GPUs' kernels on the host finds what it is there to find: a barrier that is
 * missing before a read or before a write, and a copy to shared memory that is read before it is
 * waited for, give other results in one of four orders of threads; without the fault all orders
 * give the same. A launch that a GPU would refuse ends the test. in test_asan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/vector/clear_arguments.h"
#include "support/cuda/least_gpu.h"
#include "support/cuda/planted.h"
#include "support/cuda/shim_run.h"

/* Orders in which the result is wrong. */
static int wrong(planted_fault fault, int faulty) {
    static const int orders[] = {SHIM_UP, SHIM_DOWN, 2, 5};
    float in[PLANTED_THREADS] __attribute__((aligned(16))), out[PLANTED_THREADS];
    int turn = planted_turn(fault), found = 0;
    for (int i = 0; i < PLANTED_THREADS; i++) in[i] = (float)(i + 1);
    for (int o = 0; o < 4; o++) {
        int same = 1;
        planted_run(fault, faulty, orders[o], in, out);
        for (int i = 0; i < PLANTED_THREADS; i++)
            same = same && out[i] == in[(i + turn) % PLANTED_THREADS];
        found += !same;
    }
    return found;
}

static void faults_are_found(void **state) {
    (void)state;
    if (shim_skipped()) skip();
    for (int f = 0; f < PLANTED_FAULTS; f++) {
        assert_int_equal(wrong((planted_fault)f, 0), 0);
        if (wrong((planted_fault)f, 1) == 0) fail_msg("fault %d is not found", f);
    }
}

/* Whether a process of its own runs it to the end. */
static bool runs(uint32_t threads, uint32_t shared_bytes) {
    clear_arguments none = {0};
    const cuda_launch launch = {.kernel = cuda_kernel_clear,
                                .blocks = {1, 1, 1},
                                .threads = threads,
                                .shared_bytes = shared_bytes,
                                .arguments = &none};
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        close(2);
        shim_run(&launch, SHIM_UP);
        _exit(0);
    }
    int code = 0;
    assert_int_equal(waitpid(child, &code, 0), child);
    return WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

static void launches_fit(void **state) {
    (void)state;
    if (shim_skipped()) skip();
    assert_true(runs(256, LEAST_GPU_SHARED));
    assert_false(runs(257, 0));
    assert_false(runs(256, LEAST_GPU_SHARED + 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(faults_are_found),
                                       cmocka_unit_test(launches_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
