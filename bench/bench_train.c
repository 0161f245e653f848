/* Training steps of a model, on one rank or on those that mpirun started:
 *
 *     bench_train MODEL [bf16|fp32] [STEPS] [--threads N] [--sequences N] [--length N] [--stage N]
 *                 [--batches FILE] [--seconds S] [--activations BYTES] [--disk DIR]
 *                 [--parameters-on-disk]
 *
 * MODEL is gpt2 or llama (shape.h, random weights) or a model folder. FILE holds 32-bit ids, as
 * many a step as all ranks take; without it they are random. --activations recomputes, and keeps so
 * much (0: units' inputs alone); --disk has optimizer state there, and at stage 3
 * --parameters-on-disk the parameters, too. The first step is not counted; no further one begins
 * after S seconds. After each step the first rank prints what there is as a JSON object: the last
 * one counts ("ended": its last step's end, of the monotonic clock). bench/run compares. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/file.h"
#include "base/random.h"
#include "comm/launcher.h"
#include "engine/engine.h"
#include "plan/price.h"
#include "shape.h"

enum { MOST_STEPS = 64 };

typedef struct train_bench {
    const char *model_name, *batches;
    sifr_engine_options options;
    int steps;
    double most_seconds;
    comm_group *group;
    engine_folder folder; /* zeroed where the model is one of shape.h */
    sifr_model *model;
    sifr_engine *engine;
    base_map map;
    int32_t *tokens, *labels;
    int done;
    double seconds[MOST_STEPS], losses[MOST_STEPS];
    double waiting, agreeing; /* seconds of the computing queue: for transfers, for control */
    double beside;            /* processor seconds of all threads but the first */
    engine_span *spans;       /* of one step, where state is on disk */
    double disk_busy;         /* seconds in which it had something to move */
    double updating;          /* seconds of the update, whichever step it is of */
    double disk_waiting;      /* seconds in which computing waits for the disk */
    double kernels[DEVICE_KERNELS], operations[DEVICE_KERNELS];
    comm_ledger before;
} train_bench;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static sifr_status read_arguments(train_bench *b, int argc, char **argv, sifr_error *error) {
    static const struct option names[] = {
        {"threads", required_argument, NULL, 't'},      {"sequences", required_argument, NULL, 's'},
        {"length", required_argument, NULL, 'l'},       {"stage", required_argument, NULL, 'z'},
        {"batches", required_argument, NULL, 'b'},      {"seconds", required_argument, NULL, 'm'},
        {"activations", required_argument, NULL, 'a'},  {"disk", required_argument, NULL, 'd'},
        {"parameters-on-disk", no_argument, NULL, 'p'}, {NULL, 0, NULL, 0}};
    int option;
    b->options = sifr_engine_defaults();
    b->options.sequences = 4;
    b->options.precision = SIFR_BF16;
    b->steps = 5;
    b->most_seconds = 1e9;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 't':
            b->options.threads = atoi(optarg);
            break;
        case 's':
            b->options.sequences = atoll(optarg);
            break;
        case 'l':
            b->options.length = atoll(optarg);
            break;
        case 'z':
            b->options.zero_stage = atoi(optarg);
            break;
        case 'b':
            b->batches = optarg;
            break;
        case 'm':
            b->most_seconds = atof(optarg);
            break;
        case 'a':
            b->options.recompute = true;
            b->options.activation_bytes = atoll(optarg);
            break;
        case 'd':
            b->options.offload.nvme_path = optarg;
            b->options.offload.optimizer = true;
            break;
        case 'p':
            b->options.offload.parameters = true;
            break;
        default:
            return base_fail(error, SIFR_USAGE, "see the first lines of bench_train.c");
        }
    }
    if (optind >= argc)
        return base_fail(error, SIFR_USAGE, "which model: gpt2, llama or a model folder");
    b->model_name = argv[optind];
    if (optind + 1 < argc && !strcmp(argv[optind + 1], "fp32")) b->options.precision = SIFR_FP32;
    if (optind + 2 < argc) b->steps = atoi(argv[optind + 2]);
    if (b->steps < 1 || b->steps >= MOST_STEPS || b->options.sequences < 1 || b->options.length < 2)
        return base_fail(error, SIFR_USAGE, "steps are 1 to %d, sequences 1, length 2 at least",
                         MOST_STEPS - 1);
    return SIFR_OK;
}

static sifr_status make_engine(train_bench *b, sifr_error *error) {
    bool llama = !strcmp(b->model_name, "llama");
    if (llama || !strcmp(b->model_name, "gpt2")) {
        formats_model_config config = shape_of(llama, b->options.length);
        BASE_TRY(model_from_config(&config, &b->model, error));
        BASE_TRY(engine_create(b->model, &b->options, b->group, &b->engine, error));
        return sifr_engine_initialise(b->engine, 1, error);
    }
    BASE_TRY(engine_folder_open(b->model_name, &b->folder, error));
    BASE_TRY(engine_create(b->folder.model, &b->options, b->group, &b->engine, error));
    return engine_load_folder(b->engine, b->folder.architecture, b->folder.weights, error);
}

static int64_t rank_tokens(const train_bench *b) {
    return b->options.sequences * b->options.length;
}

static sifr_status open_batches(train_bench *b, sifr_error *error) {
    int64_t bytes = rank_tokens(b) * (int64_t)sizeof(int32_t);
    b->tokens = malloc((size_t)bytes);
    b->labels = malloc((size_t)bytes);
    if (!b->tokens || !b->labels) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    if (!b->batches) return SIFR_OK;
    BASE_TRY(base_map_file(b->batches, &b->map, error));
    int64_t wanted = bytes * comm_size(b->group) * (b->steps + 1);
    if ((int64_t)b->map.size < wanted)
        return base_fail(error, SIFR_USAGE, "%s: %d steps need %lld bytes of ids, it has %lld",
                         b->batches, b->steps + 1, (long long)wanted, (long long)b->map.size);
    return SIFR_OK;
}

/* This rank's part of step `step`: rank r has the r-th sequences of each. */
static void fill_batch(train_bench *b, int step) {
    int64_t count = rank_tokens(b), length = b->options.length;
    int64_t first = (step * (int64_t)comm_size(b->group) + comm_rank(b->group)) * count;
    if (b->map.data) {
        memcpy(b->tokens, (const int32_t *)b->map.data + first, (size_t)count * sizeof(int32_t));
    } else {
        for (int64_t i = 0; i < count; i++)
            b->tokens[i] = (int32_t)(base_philox(1, (uint64_t)(first + i), 0).v[0] % 1000);
    }
    for (int64_t i = 0; i < count; i++)
        b->labels[i] = i % length == length - 1 ? -100 : b->tokens[i + 1];
}

static void add_instructions(train_bench *b) {
    const plan_schedule *s = b->engine->training;
    const float *seconds = engine_seconds(b->engine->trainer);
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_action action = (plan_action)s->instructions[i].action;
        if (action == PLAN_WAIT) b->waiting += (double)seconds[i];
        if (action == PLAN_COUNT || action == PLAN_NORM) b->agreeing += (double)seconds[i];
        if (s->instructions[i].call < 0) continue;
        const device_call *call = &s->calls[s->instructions[i].call];
        double count, bytes;
        plan_cost(call, &count, &bytes);
        b->kernels[call->kernel] += (double)seconds[i];
        b->operations[call->kernel] += count;
    }
}

/* What transfers overlap counts once: in the list they stand nearly in the order of their ends. */
static void add_disk(train_bench *b) {
    const plan_schedule *s = b->engine->training;
    const float *seconds = engine_seconds(b->engine->trainer);
    double until = 0;
    bool decided = false;
    for (size_t i = 0; i < s->instruction_count && b->spans; i++) {
        const engine_span *span = &b->spans[i];
        const plan_instruction *in = &s->instructions[i];
        if (decided || in->deferred) b->updating += (double)seconds[i];
        if (in->wait >= 0 && s->instructions[in->wait].queue == PLAN_DISK)
            b->disk_waiting += (double)seconds[i];
        decided |= in->action == PLAN_NORM;
        if (s->instructions[i].queue != PLAN_DISK || span->over <= until) continue;
        b->disk_busy += span->over - (span->begun > until ? span->begun : until);
        until = span->over;
    }
}

static void print_list(const char *name, const double *values, int count) {
    printf(" \"%s\": [", name);
    for (int i = 0; i < count; i++) printf("%s%.6g", i ? ", " : "", values[i]);
    printf("],\n");
}

static void print_kernels(const train_bench *b) {
    printf(" \"kernels\": {");
    for (int k = 0, some = 0; k < DEVICE_KERNELS; k++) {
        if (b->kernels[k] <= 0) continue;
        printf("%s\n  \"%s\": {\"ms\": %.1f, \"gflops\": %.0f}", some++ ? "," : "",
               device_kernel_name((device_kernel)k), b->kernels[k] / b->done * 1e3,
               b->operations[k] / b->kernels[k] / 1e9);
    }
    printf("}}\n");
}

static void print(const train_bench *b) {
    const comm_ledger *after = comm_get_ledger(b->group);
    const comm_operation g = COMM_ALL_GATHER, r = COMM_REDUCE_SCATTER;
    const sifr_engine *e = b->engine;
    printf("{\"model\": \"%s\", \"precision\": \"%s\", \"ranks\": %d, \"threads\": %d, "
           "\"isa\": \"%s\",\n",
           b->model_name, b->options.precision == SIFR_BF16 ? "bf16" : "fp32",
           (int)comm_size(b->group), device_threads(e->dev), device_isa(e->dev));
    printf(" \"stage\": %d, \"sequences\": %lld, \"length\": %lld, \"parameters\": %lld,\n",
           b->options.zero_stage, (long long)b->options.sequences, (long long)b->options.length,
           (long long)sifr_model_parameters(e->model));
    print_list("seconds", b->seconds, b->done + 1);
    print_list("losses", b->losses, b->done + 1);
    printf(" \"ended\": %.3f,\n", now(CLOCK_MONOTONIC));
    printf(" \"flops_per_token\": %.0f, \"planned_bytes\": %lld,\n",
           model_training_flops(e->model, b->options.length),
           (long long)sifr_engine_planned_bytes(e));
    int64_t read, written;
    plan_disk(e->training, &read, &written);
    printf(" \"activation_bytes\": %lld, \"disk_bytes\": %lld,\n",
           (long long)e->training->largest_bytes[PLAN_ACTIVATIONS], (long long)(read + written));
    printf(" \"waiting_seconds\": %.4f, \"agreeing_seconds\": %.4f, \"beside_seconds\": %.4f,\n",
           b->waiting / b->done, b->agreeing / b->done, b->beside / b->done);
    printf(" \"disk_busy_seconds\": %.4f, \"disk_waiting_seconds\": %.4f,\n",
           b->disk_busy / b->done, b->disk_waiting / b->done);
    printf(" \"update_seconds\": %.4f,\n", b->updating / b->done);
    printf(" \"gathered_bytes\": %lld, \"reduced_bytes\": %lld,\n",
           (long long)(after->operation[g].bytes - b->before.operation[g].bytes) / b->done,
           (long long)(after->operation[r].bytes - b->before.operation[r].bytes) / b->done);
    print_kernels(b);
    fflush(stdout);
}

/* All ranks leave together: the first one's clock says when. */
static sifr_status is_last(const train_bench *b, double begun, bool *last, sifr_error *error) {
    double mine = now(CLOCK_MONOTONIC) - begun, all[1024];
    BASE_TRY(comm_all_gather_control(b->group, &mine, sizeof mine, all, error));
    *last = all[0] > b->most_seconds;
    return SIFR_OK;
}

static sifr_status run_steps(train_bench *b, sifr_error *error) {
    double begun = 0;
    for (int s = 0; s <= b->steps; s++) {
        sifr_step_result result;
        bool last = false;
        fill_batch(b, s);
        double processor = now(CLOCK_PROCESS_CPUTIME_ID) - now(CLOCK_THREAD_CPUTIME_ID);
        double start = now(CLOCK_MONOTONIC);
        BASE_TRY(sifr_engine_step(b->engine, b->tokens, b->labels, 3e-4, &result, error));
        b->seconds[s] = now(CLOCK_MONOTONIC) - start;
        b->losses[s] = result.loss;
        b->done = s;
        if (s == 0) {
            b->before = *comm_get_ledger(b->group);
            begun = now(CLOCK_MONOTONIC);
            continue;
        }
        b->beside += now(CLOCK_PROCESS_CPUTIME_ID) - now(CLOCK_THREAD_CPUTIME_ID) - processor;
        add_instructions(b);
        add_disk(b);
        if (comm_rank(b->group) == 0) print(b);
        BASE_TRY(is_last(b, begun, &last, error));
        if (last) break;
    }
    return SIFR_OK;
}

static sifr_status run(train_bench *b, int argc, char **argv, sifr_error *error) {
    int ranks;
    BASE_TRY(read_arguments(b, argc, argv, error));
    if (comm_under_launcher(&ranks))
        BASE_TRY(comm_open_mpi(&b->group, error));
    else
        BASE_TRY(comm_open_self(&b->group, error));
    if (comm_size(b->group) > 1024) return base_fail(error, SIFR_USAGE, "more than 1024 ranks");
    BASE_TRY(open_batches(b, error));
    BASE_TRY(make_engine(b, error));
    if (b->engine->training->nvme_bytes) {
        b->spans = calloc(b->engine->training->instruction_count, sizeof *b->spans);
        engine_note_spans(b->engine->trainer, b->spans);
    }
    return run_steps(b, error);
}

int main(int argc, char **argv) {
    static train_bench b;
    sifr_error error = {0};
    sifr_status status = run(&b, argc, argv, &error);
    if (status != SIFR_OK) fprintf(stderr, "bench_train: %s\n", error.message);
    sifr_engine_free(b.engine);
    if (b.folder.model)
        engine_folder_close(&b.folder);
    else
        sifr_model_free(b.model);
    base_unmap(&b.map);
    free(b.spans);
    free(b.tokens);
    free(b.labels);
    if (b.group) comm_close(b.group);
    return (int)status;
}
