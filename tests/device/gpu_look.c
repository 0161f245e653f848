/* What this machine's first GPU can do, with SIFR_TEST_GPU=1, else what the driver does that tests
 * play:
 *     gpu_look [--seconds N]: a table, a row a trial; scripts/gpu-check.sh takes it
 *     gpu_look --trial NAME: those rows alone
 *     gpu_look --hold SECONDS FILE: holds a context, and writes its process to FILE
 * A driver without a process starts the GPU anew for the next one, which takes seconds; a held
 * context spares them. It is held until the time is over, SIGTERM comes or the parent ends. Nothing
 * of the GPU's settings is changed. Ends with 1 if a row failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/look/look.h"
#include "support/cuda/fake_gpu.h"
#include "support/cuda/shim_run.h"

#define NOTHING "nothing of sifr runs on this GPU"
#define SLOW "a rate that plans take is not known"

/* The first process holds its context while the others run. */
static const look_trial trials[] = {
    {.name = "gpu",
     .seconds = 12,
     .stays = true,
     .rows = {{"driver", look_row_driver, NOTHING, false},
              {"GPU", look_row_gpu, NOTHING, false},
              {"first context", look_row_context, NOTHING, false},
              {"memory", look_row_memory, "whether a plan fits is not known", false}}},
    {.name = "gpu",
     .seconds = 8,
     .rows = {{"second context", look_row_context, "ranks cannot share this GPU", false},
              {"kernels", look_row_kernels, NOTHING, false}}},
    {.name = "ipc",
     .seconds = 6,
     .other = look_other_ipc,
     .rows = {{"IPC", look_row_ipc, "ranks exchange through host memory", false}}},
    {.name = "words",
     .seconds = 4,
     .rows = {{"waits for words", look_row_words, "the host waits for transfers", false}}},
    {.name = "copies",
     .seconds = 8,
     .rows = {{"pinned memory", look_row_pinned,
               "copies go through ordinary memory, and the host waits for transfers", false},
              {"copy to the GPU", look_row_to_device, SLOW, false},
              {"copy from the GPU", look_row_from_device, SLOW, false},
              {"copies both ways", look_row_both, SLOW, false},
              {"copy in the GPU", look_row_inside, "ranks that share the GPU cannot gather", false},
              {"copy to the GPU, not pinned", look_row_pageable_to, SLOW, false},
              {"copy from the GPU, not pinned", look_row_pageable_from, SLOW, false}}},
    {.name = "cublaslt",
     .seconds = 8,
     .rows = {{"product by cuBLASLt", look_row_lt, "products run with sifr's own kernels", false}}},
    {.name = "own",
     .seconds = 6,
     .rows = {{"own product", look_row_own, "nothing trains on this GPU", false}}},
    {.name = "tools",
     .seconds = 5,
     .rows = {{"nvidia-smi", look_row_smi, "other processes on the GPU are not seen", true},
              {"nvcc", look_row_nvcc, "no kernel is compiled here", true},
              {"compute-sanitizer", look_row_sanitizer, "kernels are not checked by it", true},
              {"ncu", look_row_ncu, "kernels are not profiled", true},
              {"PyTorch", look_row_torch, "no figures beside PyTorch's", true}}},
};
enum { TRIALS = sizeof trials / sizeof *trials, PLAYED_TIMES = 4 };

/* A limit is a real GPU's. Where a driver is played, other tests run beside it. */
static double limit_of(const look_trial *trial, double until) {
    double limit = trial->seconds * (fake_gpu_is_real() ? 1 : PLAYED_TIMES);
    double left = until - base_seconds();
    return left < limit ? left : limit;
}

/* Returns how many rows are not good. */
static int print_rows(const look_trial *trial, const look_result *results) {
    int bad = 0;
    for (size_t i = 0; i < look_count_rows(trial); i++) {
        printf("| %s | %s | %s |\n", trial->rows[i].name, results[i].result, results[i].figure);
        bad += !results[i].good;
    }
    fflush(stdout);
    return bad;
}

/* All, or those of a name. */
static int look_at(const char *name, double seconds) {
    int bad = 0, tried = 0, stays = 0;
    double until = base_seconds() + seconds;
    printf("| trial | result | figure |\n|---|---|---|\n");
    for (int i = 0; i < TRIALS; i++) {
        look_result results[LOOK_ROWS] = {0};
        if (name && strcmp(trials[i].name, name) != 0) continue;
        int process = look_run(&trials[i], limit_of(&trials[i], until), results);
        if (process > 0) stays = process;
        bad += print_rows(&trials[i], results);
        tried++;
    }
    if (stays) look_end(stays);
    if (tried) return bad != 0;
    fprintf(stderr, "gpu_look: no trial %s\n", name);
    return 2;
}

/* --- holding a context --- */

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

/* Whole, or not there: a script waits for it. */
static sifr_status write_process(const char *file, sifr_error *error) {
    char part[PATH_MAX];
    int used = snprintf(part, sizeof part, "%s.part", file);
    FILE *out = used > 0 && used < PATH_MAX ? fopen(part, "w") : NULL;
    bool written = out && fprintf(out, "%ld\n", (long)getpid()) > 0;
    if (out && fclose(out) != 0) written = false;
    if (written && rename(part, file) == 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s cannot be written", file);
}

static sifr_status hold(double seconds, const char *file, sifr_error *error) {
    look l = {.other = -1};
    double until = base_seconds() + seconds;
    BASE_TRY(look_context(&l, error));
    BASE_TRY(write_process(file, error));
    while (base_seconds() < until) {
        const struct timespec nap = {.tv_nsec = 50000000};
        nanosleep(&nap, NULL);
    }
    CUDA_TRY(l.driver, error, cuDevicePrimaryCtxRelease, l.gpu.handle);
    return SIFR_OK;
}

static int hold_alone(double seconds, const char *file, int parent) {
    sifr_error error = {0};
    struct sigaction end = {.sa_handler = leave};
    sigaction(SIGTERM, &end, NULL);
    look_end_with_parent(SIGTERM, parent);
    if (hold(seconds, file, &error) == SIFR_OK) return 0;
    fprintf(stderr, "gpu_look: %s\n", error.message);
    return 1;
}

static double number(const char *text) {
    char *end;
    double value = strtod(text, &end);
    return *text && !*end ? value : -1;
}

int main(int count, char **arguments) {
    const int parent = getppid();
    const char *option = count > 1 ? arguments[1] : "";
    if (shim_skipped()) return 77;
    unsetenv("SIFR_CUDA_PRODUCTS"); /* what is there, not what is wished for */
    if (count == 1) return look_at(NULL, INT_MAX);
    if (count == 3 && strcmp(option, "--seconds") == 0 && number(arguments[2]) >= 0)
        return look_at(NULL, number(arguments[2]));
    if (count == 3 && strcmp(option, "--trial") == 0) return look_at(arguments[2], INT_MAX);
    if (count == 4 && strcmp(option, "--hold") == 0 && number(arguments[2]) >= 0)
        return hold_alone(number(arguments[2]), arguments[3], parent);
    fprintf(stderr, "usage: gpu_look [--seconds N | --trial NAME | --hold SECONDS FILE]\n");
    return 2;
}
