/* Training steps of one ZeRO stage on the ranks that mpirun started, beside the share of the step
 * that communication takes: bench_zero STAGE [gpt2|llama] [bf16|fp32] [STEPS] [THREADS]. The first
 * rank prints one JSON object; the tokens are random, the shapes are what counts. bench/run zero
 * runs all stages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "comm/worker.h"
#include "engine/engine.h"
#include "plan/price.h"
#include "shape.h"

enum { SEQUENCES = 1, LENGTH = 1024, TOKENS = SEQUENCES * LENGTH };

typedef struct zero_figures {
    double mean, best;          /* seconds of a step */
    double gathers, reductions; /* from start to the end of the wait, a step */
    double waiting;             /* of the computing queue for transfers, a step */
    double agreeing;            /* count and norm, a step: includes waiting for others */
    int64_t gathered, reduced;  /* bytes delivered a step */
} zero_figures;

static void add_instructions(const sifr_engine *engine, zero_figures *f) {
    const plan_schedule *s = engine->training;
    const float *seconds = engine_seconds(engine->trainer);
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_action action = (plan_action)s->instructions[i].action;
        if (action == PLAN_WAIT) f->waiting += (double)seconds[i];
        if (action == PLAN_COUNT || action == PLAN_NORM) f->agreeing += (double)seconds[i];
    }
}

/* The first step is not counted. */
static sifr_status measure(sifr_engine *engine, int steps, zero_figures *f, sifr_error *error) {
    static int32_t tokens[TOKENS], labels[TOKENS];
    comm_ledger before = {0};
    uint64_t rank = (uint64_t)comm_rank(engine->group);
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (int32_t)(base_philox(1, (uint64_t)i, rank).v[0] % 1000);
    for (int i = 0; i < TOKENS; i++) labels[i] = i % LENGTH == LENGTH - 1 ? -100 : tokens[i + 1];
    *f = (zero_figures){.best = 1e9};
    for (int s = 0; s < steps + 1; s++) {
        sifr_step_result result;
        double start = comm_seconds();
        BASE_TRY(sifr_engine_step(engine, tokens, labels, 3e-4, &result, error));
        double seconds = comm_seconds() - start;
        if (s == 0) {
            before = *comm_get_ledger(engine->group);
            continue;
        }
        f->mean += seconds / steps;
        if (seconds < f->best) f->best = seconds;
        add_instructions(engine, f);
    }
    const comm_ledger *after = comm_get_ledger(engine->group);
    const comm_operation g = COMM_ALL_GATHER, r = COMM_REDUCE_SCATTER;
    f->gathers = (after->operation[g].seconds - before.operation[g].seconds) / steps;
    f->reductions = (after->operation[r].seconds - before.operation[r].seconds) / steps;
    f->gathered = (int64_t)(after->operation[g].bytes - before.operation[g].bytes) / steps;
    f->reduced = (int64_t)(after->operation[r].bytes - before.operation[r].bytes) / steps;
    f->waiting /= steps;
    f->agreeing /= steps;
    return SIFR_OK;
}

static void print(const sifr_engine *engine, const char *model, const zero_figures *f) {
    const plan_settings *s = &engine->training->settings;
    printf("{\"stage\": %d, \"ranks\": %d, \"threads\": %d, \"model\": \"%s\", \"precision\": "
           "\"%s\",\n"
           " \"step_seconds\": {\"mean\": %.3f, \"best\": %.3f}, \"tokens_per_second\": %.1f,\n"
           " \"gather_seconds\": %.4f, \"reduce_seconds\": %.4f, \"waiting_seconds\": %.4f,\n"
           " \"agreeing_seconds\": %.4f, \"waiting_share\": %.4f, \"gathered_bytes\": %lld,\n"
           " \"reduced_bytes\": %lld, \"planned_bytes\": %lld}\n",
           s->stage, s->world_size, device_threads(engine->dev), model, device_dtype_name(s->dtype),
           f->mean, f->best, TOKENS * s->world_size / f->mean, f->gathers, f->reductions,
           f->waiting, f->agreeing, f->waiting / f->mean, (long long)f->gathered,
           (long long)f->reduced, (long long)sifr_engine_planned_bytes(engine));
}

static sifr_status run(int argc, char **argv, comm_group *group, sifr_error *error) {
    bool llama = argc > 2 && !strcmp(argv[2], "llama"),
         narrow = argc < 4 || !strcmp(argv[3], "bf16");
    formats_model_config config = shape_of(llama, LENGTH);
    sifr_engine_options options = sifr_engine_defaults();
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    zero_figures figures;
    sifr_status status;
    options.zero_stage = argc > 1 ? atoi(argv[1]) : 0;
    options.precision = narrow ? SIFR_BF16 : SIFR_FP32;
    options.sequences = SEQUENCES;
    options.length = LENGTH;
    options.threads = argc > 5 ? atoi(argv[5]) : 1;
    BASE_TRY_GOTO(status, model_from_config(&config, &model, error), done);
    BASE_TRY_GOTO(status, engine_create(model, &options, group, &engine, error), done);
    sifr_engine_initialise(engine, 1);
    BASE_TRY_GOTO(status, measure(engine, argc > 4 ? atoi(argv[4]) : 4, &figures, error), done);
    if (comm_rank(group) == 0) print(engine, config.model_type, &figures);
done:
    sifr_engine_free(engine);
    sifr_model_free(model);
    return status;
}

int main(int argc, char **argv) {
    sifr_error error = {0};
    comm_group *group;
    sifr_status status = comm_open_mpi(&group, &error);
    if (status == SIFR_OK) {
        status = run(argc, argv, group, &error);
        comm_close(group);
    }
    if (status != SIFR_OK) fprintf(stderr, "bench_zero: %s\n", error.message);
    return (int)status;
}
