/* What the schedule itself costs: planning a model of 1,000 units alone and as rank 0 of 4,096, and
 * what the executor adds to an instruction, with kernels that do nothing. Prints one JSON object:
 * bench_schedule [STEPS]. VERBOSE=1 in the environment has a line for each plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine_private.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"

enum { UNITS = 1000, RANKS = 4096, LENGTH = 128, SMALL = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const sifr_error *error) {
    fprintf(stderr, "bench_schedule: %s\n", error->message);
    return (int)error->status;
}

static model_config shape_of(bool llama, int32_t blocks, int32_t width) {
    model_config c = {.vocab_size = 32 * width,
                      .hidden_size = width,
                      .num_hidden_layers = blocks,
                      .num_attention_heads = 4,
                      .num_key_value_heads = 4,
                      .head_dim = width / 4,
                      .intermediate_size = 4 * width,
                      .max_position_embeddings = LENGTH,
                      .activation = llama ? MODEL_SILU : MODEL_GELU_TANH,
                      .norm_eps = 1e-5,
                      .rope.theta = 1e4,
                      .rope.factor = 1,
                      .initializer_range = 0.02};
    strcpy(c.model_type, llama ? "llama" : "gpt2");
    return c;
}

/* The longest of stages and step orders, by rank count and kind of model. */
static sifr_status measure_planning(bool llama, int32_t ranks, device *dev, double *worst,
                                    size_t *instructions, sifr_error *error) {
    static const plan_machine machine = {
        .fp32_operations = 1e11, .bf16_operations = 1e12, .memory_bytes = 1e10};
    model_config config = shape_of(llama, UNITS - 2, 256);
    sifr_model *model;
    BASE_TRY(model_from_config(&config, &model, error));
    *worst = 0;
    for (int variant = 0; variant < 8; variant++) {
        plan_settings settings = {.mode = PLAN_TRAIN,
                                  .step.precision = SIFR_BF16,
                                  .step.micro_batch_size = 1,
                                  .step.seq_length = LENGTH,
                                  .step.gradient_accumulation_steps = 4,
                                  .mesh = plan_mesh_flat(ranks, 0),
                                  .step.zero.stage = variant % 4,
                                  .step.step_order =
                                      variant / 4 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH};
        plan_schedule *s;
        plan_prediction prediction;
        double start = now();
        BASE_TRY(plan_lower(model, dev, &settings, &s, error));
        BASE_TRY(plan_predict(s, &machine, &prediction, NULL, error));
        double seconds = now() - start;
        if (getenv("VERBOSE"))
            fprintf(stderr, "%s, %d ranks, stage %d, order %d: %zu instructions, %.3f s\n",
                    config.model_type, (int)ranks, variant % 4, variant / 4, s->instruction_count,
                    seconds);
        if (seconds > *worst) *worst = seconds;
        if (s->instruction_count > *instructions) *instructions = s->instruction_count;
        plan_free(s);
    }
    sifr_model_free(model);
    return SIFR_OK;
}

static sifr_status no_kernel(void *user, size_t instruction, const device_call *call,
                             sifr_error *error) {
    (void)instruction, (void)error;
    *(const device_call **)user = call;
    return SIFR_OK;
}

/* Seconds an instruction, best of `steps`, of a step whose kernels return at once. */
static sifr_status measure_executor(int steps, double *best, size_t *instructions,
                                    sifr_error *error) {
    model_config config = shape_of(true, 64, 16);
    sifr_model *model;
    sifr_engine *engine;
    sifr_settings options = sifr_settings_defaults();
    int32_t tokens[SMALL] = {0}, labels[SMALL] = {0};
    const device_call *last;
    options.threads = 1;
    options.micro_batch_size = 1;
    options.seq_length = SMALL;
    BASE_TRY(model_from_config(&config, &model, error));
    BASE_TRY(sifr_engine_create(model, &options, &engine, error));
    BASE_TRY(sifr_engine_initialise(engine, 1, error));
    engine_replace_kernels(engine->trainer, no_kernel, &last);
    *instructions = engine->training->instruction_count;
    *best = 1e9;
    for (int s = 0; s < steps; s++) {
        sifr_step_result result;
        double start = now();
        BASE_TRY(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-3,
                                  &result, error));
        double seconds = (now() - start) / (double)*instructions;
        if (seconds < *best) *best = seconds;
    }
    sifr_engine_free(engine);
    sifr_model_free(model);
    return SIFR_OK;
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 200;
    sifr_error error = {0};
    device *dev;
    double alone = 0, many = 0, instruction;
    size_t longest = 0, run;
    if (device_open_cpu(0, NULL, &dev, &error) != SIFR_OK) return fail(&error);
    for (int kind = 0; kind < 2; kind++) {
        double one, rank;
        if (measure_planning(kind, 1, dev, &one, &longest, &error) != SIFR_OK ||
            measure_planning(kind, RANKS, dev, &rank, &longest, &error) != SIFR_OK)
            return fail(&error);
        if (one > alone) alone = one;
        if (rank > many) many = rank;
    }
    if (measure_executor(steps, &instruction, &run, &error) != SIFR_OK) return fail(&error);
    printf("{\"units\": %d, \"instructions\": %zu, \"plan_seconds\": %.3f,\n"
           " \"ranks\": %d, \"plan_seconds_of_rank_0\": %.3f,\n"
           " \"executor_instructions\": %zu, \"executor_nanoseconds\": %.0f}\n",
           (int)UNITS, longest, alone, (int)RANKS, many, run, 1e9 * instruction);
    device_close(dev);
    return 0;
}
