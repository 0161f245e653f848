/* Training steps of models of 124 and 134 million parameters, beside what the machine can do at
 * most, measured in the same run: bench_step [gpt2|llama] [bf16|fp32] [STEPS] [THREADS]. Prints one
 * JSON object; the tokens are random, the shapes are what counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "engine/engine.h"
#include "plan/price.h"
#include "shape.h"

enum { SEQUENCES = 4, LENGTH = 1024, TOKENS = SEQUENCES * LENGTH };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_kernels(const sifr_engine *engine) {
    double seconds[DEVICE_KERNELS] = {0}, operations[DEVICE_KERNELS] = {0}, all = 0;
    const plan_schedule *s = engine->training;
    for (size_t i = 0; i < s->instruction_count; i++) {
        double count, bytes;
        all += (double)engine_seconds(engine->trainer)[i];
        if (s->instructions[i].call < 0) continue;
        const device_call *call = &s->calls[s->instructions[i].call];
        plan_cost(call, &count, &bytes);
        seconds[call->kernel] += (double)engine_seconds(engine->trainer)[i];
        operations[call->kernel] += count;
    }
    printf(" \"kernels\": {");
    for (int k = 0, some = 0; k < DEVICE_KERNELS; k++) {
        if (seconds[k] < 0.002 * all) continue;
        printf("%s\n  \"%s\": {\"ms\": %.1f, \"share\": %.3f, \"gflops\": %.0f}", some++ ? "," : "",
               device_kernel_name((device_kernel)k), seconds[k] * 1e3, seconds[k] / all,
               operations[k] / seconds[k] / 1e9);
    }
    printf("}");
}

static int fail(const sifr_error *error) {
    fprintf(stderr, "bench_step: %s\n", error->message);
    return (int)error->status;
}

int main(int argc, char **argv) {
    bool llama = argc > 1 && !strcmp(argv[1], "llama"),
         narrow = argc < 3 || !strcmp(argv[2], "bf16");
    int steps = argc > 3 ? atoi(argv[3]) : 5, threads = argc > 4 ? atoi(argv[4]) : 0;
    sifr_error error = {0};
    formats_model_config config = shape_of(llama, LENGTH);
    sifr_model *model;
    sifr_engine *engine;
    device_limits before, after;
    if (model_from_config(&config, &model, &error) != SIFR_OK) return fail(&error);
    sifr_engine_options options = sifr_engine_defaults();
    options.precision = narrow ? SIFR_BF16 : SIFR_FP32;
    options.sequences = SEQUENCES;
    options.length = LENGTH;
    options.threads = threads;
    if (sifr_engine_create(model, &options, &engine, &error) != SIFR_OK) return fail(&error);
    sifr_engine_initialise(engine, 1);
    static int32_t tokens[TOKENS], labels[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (int32_t)(base_philox(1, (uint64_t)i, 0).v[0] % 1000);
    }
    for (int i = 0; i < TOKENS; i++) labels[i] = i % LENGTH == LENGTH - 1 ? -100 : tokens[i + 1];

    if (device_measure(engine->dev, NULL, DEVICE_MEASURE_BYTES, &before, &error) != SIFR_OK)
        return fail(&error);
    double best = 1e9, sum = 0;
    sifr_step_result result = {0};
    for (int s = 0; s < steps + 1; s++) { /* the first one is not counted */
        double start = now();
        if (sifr_engine_step(engine, tokens, labels, 3e-4, &result, &error) != SIFR_OK) {
            return fail(&error);
        }
        double seconds = now() - start;
        if (s == 0) continue;
        sum += seconds;
        if (seconds < best) best = seconds;
    }
    if (device_measure(engine->dev, NULL, DEVICE_MEASURE_BYTES, &after, &error) != SIFR_OK)
        return fail(&error);
    double limit = narrow ? before.bf16_operations + after.bf16_operations
                          : before.fp32_operations + after.fp32_operations;
    limit /= 2;
    double flops = model_training_flops(model, LENGTH) * TOKENS, mean = sum / steps;
    printf("{\"model\": \"%s\", \"precision\": \"%s\", \"threads\": %d, \"parameters\": %lld,\n"
           " \"step_seconds\": {\"mean\": %.3f, \"best\": %.3f}, \"tokens_per_second\": %.0f,\n"
           " \"gflops\": %.0f, \"limit_gflops\": %.0f, \"share_of_limit\": %.3f, "
           "\"memory_gbytes_per_second\": %.1f, \"loss\": %.4f, \"planned_bytes\": %lld,\n",
           config.model_type, narrow ? "bf16" : "fp32", device_threads(engine->dev),
           (long long)sifr_model_parameters(model), mean, best, TOKENS / mean, flops / mean / 1e9,
           limit / 1e9, flops / mean / limit, before.bytes / 1e9, result.loss,
           (long long)sifr_engine_planned_bytes(engine));
    print_kernels(engine);
    printf("}\n");
    sifr_engine_free(engine);
    sifr_model_free(model);
    return 0;
}
