/* PowerSGD beside torch's hook over gloo: 300 steps of llama3 on two ranks, whose losses are within
 * 2 % of the hook's, step by step in means of 25 (tests/golden/README.md: make_power_sgd.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/engine_private.h"
#include "support/comm_threads.h"

enum { RANKS = 2, STEPS = 300, ROWS = 4, LENGTH = 32, WORDS = 320, MEAN = 25 };

typedef struct golden_run {
    const char *folder;
    const sifr_compression *compression;
    double rate;
    comm_threads *world;
    int32_t rank;
    double loss[STEPS];
    char failure[SIFR_ERROR_LENGTH];
} golden_run;

/* As numbers() of the script. */
static void fill(int step, int32_t rank, int32_t *tokens, int32_t *labels) {
    uint64_t state = ((uint64_t)step * RANKS + (uint64_t)rank) * 2654435761u % 0x80000000u;
    for (int row = 0; row < ROWS; row++) {
        int64_t last = 7;
        for (int i = 0; i < LENGTH; i++) {
            state = (state * 1103515245u + 12345u) % 0x80000000u;
            int64_t drawn = (int64_t)(state >> 8);
            tokens[row * LENGTH + i] = (int32_t)last;
            last = (drawn % 2 == 0 ? last * 5 + 3 : drawn / 2) % WORDS;
            labels[row * LENGTH + i] = (int32_t)last;
        }
    }
}

static sifr_settings options_of(const golden_run *r) {
    sifr_settings options = sifr_settings_defaults();
    options.threads = 1;
    options.micro_batch_size = ROWS;
    options.seq_length = LENGTH;
    options.gradient_accumulation_steps = 1;
    options.gradient_clipping = 0;
    options.optimizer.weight_decay = 0;
    options.compression = *r->compression;
    return options;
}

static sifr_status run_steps(golden_run *r, sifr_engine *engine, sifr_error *error) {
    int32_t tokens[ROWS * LENGTH], labels[ROWS * LENGTH];
    sifr_step_result result;
    for (int s = 0; s < STEPS; s++) {
        fill(s, r->rank, tokens, labels);
        sifr_batch batch = {.tokens = tokens, .labels = labels};
        BASE_TRY(sifr_engine_step(engine, &batch, r->rate, &result, error));
        r->loss[s] = result.loss;
    }
    return SIFR_OK;
}

static void *run_rank(void *argument) {
    golden_run *r = argument;
    sifr_settings options = options_of(r);
    engine_folder folder;
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    comm_group *group = comm_threads_group(r->world, r->rank);
    sifr_status status = engine_folder_open(r->folder, &folder, &error);
    if (status == SIFR_OK) status = sifr_model_group(folder.model, &options.optimizer, &error);
    if (status == SIFR_OK) status = engine_create(folder.model, &options, group, &engine, &error);
    if (status == SIFR_OK)
        status = engine_load_folder(engine, folder.architecture, folder.weights, &error);
    if (status == SIFR_OK) status = run_steps(r, engine, &error);
    if (status != SIFR_OK) memcpy(r->failure, error.message, sizeof r->failure);
    sifr_engine_free(engine);
    comm_close(group);
    engine_folder_close(&folder);
    return NULL;
}

static void run(const char *folder, const sifr_compression *c, double rate, double loss[STEPS]) {
    golden_run *runs = calloc(RANKS, sizeof *runs);
    pthread_t threads[RANKS];
    comm_threads *world = comm_threads_create(RANKS);
    for (int32_t r = 0; r < RANKS; r++) {
        runs[r] = (golden_run){
            .folder = folder, .compression = c, .rate = rate, .world = world, .rank = r};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < RANKS; r++)
        if (runs[r].failure[0]) fail_msg("rank %d: %s", r, runs[r].failure);
    memcpy(loss, runs[0].loss, sizeof runs[0].loss);
    comm_threads_free(world);
    free(runs);
}

static double mean_of(const double *values) {
    double sum = 0;
    for (int i = 0; i < MEAN; i++) sum += values[i];
    return sum / MEAN;
}

/* The largest difference of means, relative to the hook's. */
static double difference(const json_t *want, const double loss[STEPS]) {
    double most = 0, theirs[STEPS];
    assert_int_equal(json_array_size(want), STEPS);
    for (int s = 0; s < STEPS; s++) theirs[s] = json_number_value(json_array_get(want, (size_t)s));
    for (int s = 0; s < STEPS; s += MEAN)
        most = fmax(most, fabs(mean_of(loss + s) / mean_of(theirs + s) - 1));
    return most;
}

static void beside_the_hook(void **state) {
    (void)state;
    static const char *const cases[] = {"dense", "rank 1", "rank 2", "cold"};
    char path[BASE_PATH_LENGTH], folder[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    json_t *golden;
    sifr_error error;
    double last[4];
    if (!source) source = ".";
    snprintf(path, sizeof path, "%s/tests/golden/results/power_sgd.json", source);
    snprintf(folder, sizeof folder, "%s/tests/golden/models/llama3", source);
    if (base_json_load(path, 1 << 20, &golden, &error)) fail_msg("%s", error.message);
    for (int n = 0; n < 4; n++) {
        sifr_compression c = sifr_settings_defaults().compression;
        double loss[STEPS];
        c.type = n ? SIFR_POWER_SGD : SIFR_COMPRESSION_NONE;
        c.rank = n == 1 ? 1 : 2;
        c.warm_start = n != 3;
        c.start = (int64_t)json_integer_value(json_object_get(golden, "start"));
        run(folder, &c, json_number_value(json_object_get(golden, "rate")), loss);
        const json_t *want = json_object_get(json_object_get(golden, "losses"), cases[n]);
        double off = difference(want, loss);
        last[n] = mean_of(loss + STEPS - MEAN);
        print_message("%s: %.4f at the end, off by %.2g\n", cases[n], last[n], off);
        assert_true(off < (n ? 0.02 : 1e-3));
    }
    assert_true(last[1] > last[0]); /* compression is not free */
    json_decref(golden);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(beside_the_hook)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
