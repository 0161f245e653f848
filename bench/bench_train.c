/* Training steps of a model, on one rank or on those that mpirun started:
 *
 *     bench_train MODEL [bf16|fp32] [STEPS] [--threads N] [--sequences N] [--length N] [--stage N]
 *                 [--micro-batches N] [--beside N [--sequential]] [--batches FILE] [--seconds S]
 *                 [--whole S] [--activations BYTES] [--disk DIR] [--parameters-on-disk]
 *                 [--stages N] [--shard-size N] [--tensors N] [--adapter DIR [--4-bits]]
 *                 [--exact P] [--isa SET]
 *
 * MODEL is gpt2 or llama (shape.h, random weights) or a model folder. FILE holds 32-bit ids, as
 * many a step as all ranks take; without it they are random. --activations recomputes, and keeps so
 * much (0: units' inputs alone); --disk has optimizer state there, and at stage 3
 * --parameters-on-disk the parameters, too. --stages makes a pipeline of ranks (1f1b), --shard-size
 * copies of the state, --tensors ranks that share a batch; --adapter trains that folder's LoRA over a model folder, with --4-bits over
 * its codes (NF4, doubly quantised). The first step is not counted; no further one begins
 * after S seconds, nor (--whole) one that would not be over S seconds after the program's start.
 * --beside: an engine of another stage takes each step, too, before or behind the first one by
 * turns; with --sequential it adds its gradients from left to right, with --exact it has products
 * in P pieces (sifr.tp_exact). After each step the first rank prints what there is as a JSON
 * object, of two stages {"by": [one, the other]}: the last one counts. "began": when each step did,
 * of the monotonic clock. Waiting is the mean over the ranks. bench/run compares. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "comm/launcher.h"
#include "engine/engine_private.h"
#include "plan/price/price.h"
#include "plan/queries.h"
#include "shape.h"
#include "waits.h"

enum { MOST_STEPS = 64, MOST_RANKS = 1024 };

/* An engine and what was measured of it. */
typedef struct train_side {
    int stage;
    bool sequential;
    int32_t exact;
    sifr_engine *engine;
    int done;
    double began[MOST_STEPS], seconds[MOST_STEPS], losses[MOST_STEPS];
    double processor[MOST_STEPS]; /* seconds of all threads of all ranks */
    double waiting, agreeing;     /* seconds of the computing queue: for transfers, for control */
    double beside;                /* processor seconds of all threads but the first */
    double lost;                  /* seconds of a step in which the first thread did not run */
    bench_waits waits;            /* the last four of all ranks together */
    engine_span *spans, *all;     /* of one step; of all ranks */
    double disk_busy;             /* seconds in which it had something to move */
    double updating;              /* seconds of the update, whichever step it is of */
    double disk_waiting;          /* seconds in which computing waits for the disk */
    double kernels[DEVICE_KERNELS], operations[DEVICE_KERNELS];
    double resident;   /* bytes of all ranks behind the first step */
    comm_ledger moved; /* by the steps that count: bytes alone */
} train_side;

typedef struct train_bench {
    const char *model_name, *batches;
    sifr_settings options;
    int steps;
    double started, most_seconds, whole_seconds;
    comm_group *group;
    engine_folder folder; /* zeroed where the model is one of shape.h */
    const char *adapter;  /* folder of a LoRA; NULL: all weights are trained */
    bool coded;           /* over weights in 4 bits */
    model_lora lora;
    sifr_model *model;
    base_map map;
    int32_t *tokens, *labels;
    int sides;
    train_side side[2];
} train_bench;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct option names[] = {{"threads", required_argument, NULL, 't'},
                                      {"sequences", required_argument, NULL, 's'},
                                      {"length", required_argument, NULL, 'l'},
                                      {"stage", required_argument, NULL, 'z'},
                                      {"batches", required_argument, NULL, 'b'},
                                      {"seconds", required_argument, NULL, 'm'},
                                      {"activations", required_argument, NULL, 'a'},
                                      {"disk", required_argument, NULL, 'd'},
                                      {"parameters-on-disk", no_argument, NULL, 'p'},
                                      {"beside", required_argument, NULL, 'o'},
                                      {"whole", required_argument, NULL, 'w'},
                                      {"micro-batches", required_argument, NULL, 'k'},
                                      {"sequential", no_argument, NULL, 'q'},
                                      {"stages", required_argument, NULL, 'g'},
                                      {"shard-size", required_argument, NULL, 'h'},
                                      {"tensors", required_argument, NULL, 'x'},
                                      {"adapter", required_argument, NULL, 'r'},
                                      {"4-bits", no_argument, NULL, 'n'},
                                      {"exact", required_argument, NULL, 'e'},
                                      {"isa", required_argument, NULL, 'i'},
                                      {NULL, 0, NULL, 0}};

/* Options of what is trained, and on what ranks; false: it is none of them. */
static bool take_kind(train_bench *b, int option) {
    if (option == 'g')
        b->options.pipeline.stages = atoi(optarg);
    else if (option == 'h')
        b->options.mesh.shard_size = atoi(optarg);
    else if (option == 'x')
        b->options.mesh.tensor_size = atoi(optarg);
    else if (option == 'r')
        b->adapter = optarg;
    else if (option == 'e')
        b->side[1].exact = atoi(optarg);
    else if (option == 'i')
        b->options.isa = optarg;
    else
        b->coded = option == 'n';
    return strchr("ghxrein", option) != NULL;
}

static sifr_status read_arguments(train_bench *b, int argc, char **argv, sifr_error *error) {
    int option;
    b->options = sifr_settings_defaults();
    b->options.micro_batch_size = 4;
    b->options.precision = SIFR_BF16;
    b->steps = 5;
    b->most_seconds = b->whole_seconds = 1e9;
    b->sides = 1;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 't':
            b->options.threads = atoi(optarg);
            break;
        case 's':
            b->options.micro_batch_size = atoll(optarg);
            break;
        case 'l':
            b->options.seq_length = atoll(optarg);
            break;
        case 'z':
            b->side[0].stage = atoi(optarg);
            break;
        case 'o':
            b->side[1].stage = atoi(optarg);
            b->sides = 2;
            break;
        case 'k':
            b->options.gradient_accumulation_steps = atoi(optarg);
            break;
        case 'q':
            b->side[1].sequential = true;
            break;
        case 'w':
            b->whole_seconds = atof(optarg);
            break;
        case 'b':
            b->batches = optarg;
            break;
        case 'm':
            b->most_seconds = atof(optarg);
            break;
        case 'a':
            b->options.recompute = SIFR_RECOMPUTE_AUTO;
            b->options.activation_memory = atoll(optarg);
            break;
        case 'd':
            b->options.offload.nvme_path = optarg;
            b->options.offload.optimizer.device = SIFR_TIER_NVME;
            break;
        case 'p':
            b->options.offload.param.device = SIFR_TIER_NVME;
            break;
        default:
            if (!take_kind(b, option))
                return base_fail(error, SIFR_USAGE, "see the first lines of bench_train.c");
        }
    }
    if (optind >= argc)
        return base_fail(error, SIFR_USAGE, "which model: gpt2, llama or a model folder");
    b->model_name = argv[optind];
    if (optind + 1 < argc && !strcmp(argv[optind + 1], "fp32")) b->options.precision = SIFR_FP32;
    if (optind + 2 < argc) b->steps = atoi(argv[optind + 2]);
    if (b->steps < 1 || b->steps >= MOST_STEPS || b->options.micro_batch_size < 1 ||
        b->options.seq_length < 2)
        return base_fail(error, SIFR_USAGE, "steps are 1 to %d, sequences 1, length 2 at least",
                         MOST_STEPS - 1);
    return SIFR_OK;
}

static sifr_status open_model(train_bench *b, sifr_error *error) {
    bool llama = !strcmp(b->model_name, "llama");
    if (!llama && strcmp(b->model_name, "gpt2") != 0) {
        engine_folder_options options = {.adapter = b->adapter};
        if (!b->adapter) return engine_folder_open(b->model_name, &b->folder, error);
        BASE_TRY(model_lora_load(b->adapter, &b->lora, error));
        options.choice.lora = &b->lora;
        if (b->coded) options.choice.coding = MODEL_NF4_DOUBLED;
        return engine_folder_open_as(b->model_name, &options, &b->folder, error);
    }
    model_config config = shape_of(llama, b->options.seq_length);
    return model_from_config(&config, &b->model, error);
}

static sifr_status make_engine(train_bench *b, train_side *side, sifr_error *error) {
    sifr_settings options = b->options;
    options.zero.stage = side->stage;
    options.mesh.tp_exact = side->exact;
    options.gradient_order = side->sequential ? SIFR_GRADIENT_SEQUENTIAL : SIFR_GRADIENT_TREE;
    if (b->model) {
        BASE_TRY(engine_create(b->model, &options, b->group, &side->engine, error));
        BASE_TRY(sifr_engine_initialise(side->engine, 1, error));
    } else {
        BASE_TRY(engine_create(b->folder.model, &options, b->group, &side->engine, error));
        BASE_TRY(engine_load_opened(side->engine, &b->folder, error));
    }
    size_t count = side->engine->training->instruction_count;
    side->spans = calloc(count, sizeof *side->spans);
    side->all = calloc(count * (size_t)comm_size(b->group), sizeof *side->all);
    if (!side->spans || !side->all) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    engine_note_spans(side->engine->trainer, side->spans);
    return SIFR_OK;
}

static int64_t rank_tokens(const train_bench *b) {
    return b->options.gradient_accumulation_steps * b->options.micro_batch_size *
           b->options.seq_length;
}

static int32_t tensor_ranks(const train_bench *b) {
    return b->options.mesh.tensor_size > 1 ? b->options.mesh.tensor_size : 1;
}

/* Ranks that divide a step's sequences: those of one stage, of which tensor ranks are one. */
static int32_t data_ranks(const train_bench *b) {
    int32_t stages = b->options.pipeline.stages;
    return comm_size(b->group) / (stages > 1 ? stages : 1) / tensor_ranks(b);
}

static sifr_status open_batches(train_bench *b, sifr_error *error) {
    int64_t bytes = rank_tokens(b) * (int64_t)sizeof(int32_t);
    b->tokens = malloc((size_t)bytes);
    b->labels = malloc((size_t)bytes);
    if (!b->tokens || !b->labels) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    if (!b->batches) return SIFR_OK;
    BASE_TRY(base_map_file(b->batches, &b->map, error));
    int64_t wanted = bytes * data_ranks(b) * (b->steps + 1);
    if ((int64_t)b->map.size < wanted)
        return base_fail(error, SIFR_USAGE, "%s: %d steps need %lld bytes of ids, it has %lld",
                         b->batches, b->steps + 1, (long long)wanted, (long long)b->map.size);
    return SIFR_OK;
}

/* This rank's part of step `step`: rank r of a stage has the r-th sequences of each. */
static void fill_batch(train_bench *b, int step) {
    int64_t count = rank_tokens(b), length = b->options.seq_length;
    int32_t ranks = data_ranks(b);
    int64_t first = (step * (int64_t)ranks + comm_rank(b->group) / tensor_ranks(b) % ranks) * count;
    if (b->map.data) {
        memcpy(b->tokens, (const int32_t *)b->map.data + first, (size_t)count * sizeof(int32_t));
    } else {
        for (int64_t i = 0; i < count; i++)
            b->tokens[i] = (int32_t)(base_philox(1, (uint64_t)(first + i), 0).v[0] % 1000);
    }
    for (int64_t i = 0; i < count; i++)
        b->labels[i] = i % length == length - 1 ? -100 : b->tokens[i + 1];
}

/* `own`: what the first thread stood still for, into [0] transfers and [1] control. */
static void add_instructions(train_side *side, double own[2]) {
    const plan_schedule *s = side->engine->training;
    const float *seconds = engine_seconds(side->engine->trainer);
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_action action = (plan_action)s->instructions[i].action;
        if (action == PLAN_WAIT) own[0] += (double)seconds[i];
        if (action == PLAN_COUNT || action == PLAN_NORM) own[1] += (double)seconds[i];
        if (s->instructions[i].call < 0) continue;
        const device_call *call = &s->calls[s->instructions[i].call];
        double count, bytes;
        plan_cost(s, call, &count, &bytes);
        side->kernels[call->kernel] += (double)seconds[i];
        side->operations[call->kernel] += count;
    }
}

/* What transfers overlap counts once: in the list they stand nearly in the order of their ends. */
static void add_disk(train_side *side) {
    const plan_schedule *s = side->engine->training;
    const float *seconds = engine_seconds(side->engine->trainer);
    double until = 0;
    bool decided = false;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const engine_span *span = &side->spans[i];
        const plan_instruction *in = &s->instructions[i];
        if (decided || in->deferred) side->updating += (double)seconds[i];
        if (in->wait >= 0 && s->instructions[in->wait].queue == PLAN_DISK)
            side->disk_waiting += (double)seconds[i];
        decided |= in->action == PLAN_NORM;
        if (s->instructions[i].queue != PLAN_DISK || span->over <= until) continue;
        side->disk_busy += span->over - (span->begun > until ? span->begun : until);
        until = span->over;
    }
}

/* Adds up over the ranks: own[] of this one, and what the spans of all say. */
static sifr_status add_ranks(train_bench *b, train_side *side, const double own[5],
                             sifr_error *error) {
    static double all[MOST_RANKS][5];
    const plan_schedule *s = side->engine->training;
    int32_t ranks = comm_size(b->group);
    BASE_TRY(comm_all_gather_control(b->group, own, sizeof all[0], all, error));
    for (int32_t r = 0; r < ranks; r++) {
        side->waiting += all[r][0];
        side->agreeing += all[r][1];
        side->beside += all[r][2];
        side->lost += all[r][3];
        side->processor[side->done] += all[r][4];
    }
    if (data_ranks(b) < ranks || ranks == 1) return SIFR_OK; /* stages have lists of their own */
    int64_t bytes = (int64_t)(s->instruction_count * sizeof *side->spans);
    BASE_TRY(comm_all_gather_control(b->group, side->spans, bytes, side->all, error));
    bench_step_spans spans = {s, side->all, ranks};
    for (int32_t r = 0; r < ranks; r++) bench_add_waits(&spans, r, &side->waits);
    return SIFR_OK;
}

/* The memory of all ranks, what they share counted in part. */
static sifr_status note_memory(train_bench *b, train_side *side, sifr_error *error) {
    int64_t kib = 0;
    char line[128];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "Pss:", 4)) kib = atoll(line + 4);
    if (file) fclose(file);
    BASE_TRY(comm_sum(b->group, &kib, 1, error));
    side->resident = 1024.0 * (double)kib;
    return SIFR_OK;
}

static void print_list(const char *name, const double *values, int count) {
    printf(" \"%s\": [", name);
    for (int i = 0; i < count; i++) printf("%s%.9g", i ? ", " : "", values[i]);
    printf("],\n");
}

static void print_kernels(const train_side *side) {
    printf(" \"kernels\": {");
    for (int k = 0, some = 0; k < DEVICE_KERNELS; k++) {
        if (side->kernels[k] <= 0) continue;
        printf("%s\n  \"%s\": {\"ms\": %.1f, \"gflops\": %.0f}", some++ ? "," : "",
               device_kernel_name((device_kernel)k), side->kernels[k] / side->done * 1e3,
               side->operations[k] / side->kernels[k] / 1e9);
    }
    printf("}");
}

static void print_waits(const train_side *side, int32_t ranks) {
    double steps = (double)side->done * ranks;
    printf(" \"waiting_seconds\": %.4f, \"agreeing_seconds\": %.4f, \"beside_seconds\": %.4f,\n",
           side->waiting / steps, side->agreeing / steps, side->beside / steps);
    printf(" \"lost_seconds\": %.4f, \"late_seconds\": %.4f, \"moving_seconds\": %.4f, "
           "\"control_seconds\": %.4f,\n",
           side->lost / steps, side->waits.late / steps, side->waits.moving / steps,
           side->waits.control / steps);
}

static void print_side(const train_bench *b, const train_side *side) {
    const comm_operation g = COMM_ALL_GATHER, r = COMM_REDUCE_SCATTER;
    const sifr_engine *e = side->engine;
    printf("{\"model\": \"%s\", \"precision\": \"%s\", \"ranks\": %d, \"threads\": %d, "
           "\"isa\": \"%s\",\n",
           b->model_name, b->options.precision == SIFR_BF16 ? "bf16" : "fp32",
           (int)comm_size(b->group), device_threads(e->dev), device_isa(e->dev));
    printf(" \"stage\": %d, \"sequences\": %lld, \"length\": %lld, \"parameters\": %lld,\n",
           side->stage, (long long)b->options.micro_batch_size, (long long)b->options.seq_length,
           (long long)sifr_model_parameters(e->model));
    print_list("began", side->began, side->done + 1);
    print_list("seconds", side->seconds, side->done + 1);
    print_list("processor_seconds", side->processor, side->done + 1);
    print_list("losses", side->losses, side->done + 1);
    printf(" \"flops_per_token\": %.0f, \"planned_bytes\": %lld, \"resident_bytes\": %.0f,\n",
           model_training_flops(e->model, b->options.seq_length),
           (long long)sifr_engine_planned_bytes(e), side->resident);
    int64_t read, written;
    plan_disk(e->training, &read, &written);
    printf(" \"activation_bytes\": %lld, \"disk_bytes\": %lld,\n",
           (long long)e->training->largest_bytes[PLAN_ACTIVATIONS], (long long)(read + written));
    print_waits(side, comm_size(b->group));
    printf(" \"disk_busy_seconds\": %.4f, \"disk_waiting_seconds\": %.4f,\n",
           side->disk_busy / side->done, side->disk_waiting / side->done);
    printf(" \"update_seconds\": %.4f,\n", side->updating / side->done);
    printf(" \"gathered_bytes\": %lld, \"reduced_bytes\": %lld,\n",
           (long long)side->moved.operation[g].bytes / side->done,
           (long long)side->moved.operation[r].bytes / side->done);
    print_kernels(side);
    printf("}");
}

/* Only the outermost object begins a line. */
static void print(const train_bench *b) {
    if (b->sides > 1) printf("{\"by\": [ ");
    for (int i = 0; i < b->sides; i++) {
        if (i) printf(", ");
        print_side(b, &b->side[i]);
    }
    printf("%s\n", b->sides > 1 ? "]}" : "");
    fflush(stdout);
}

/* All ranks leave together: the first one's clock says when. */
static sifr_status is_last(const train_bench *b, double begun, double turn, bool *last,
                           sifr_error *error) {
    double at = now(CLOCK_MONOTONIC), all[MOST_RANKS];
    double mine = at - begun > b->most_seconds || at + turn - b->started > b->whole_seconds;
    BASE_TRY(comm_all_gather_control(b->group, &mine, sizeof mine, all, error));
    *last = all[0] > 0;
    return SIFR_OK;
}

static double other_threads(void) {
    return now(CLOCK_PROCESS_CPUTIME_ID) - now(CLOCK_THREAD_CPUTIME_ID);
}

static sifr_status run_step(train_bench *b, train_side *side, int s, sifr_error *error) {
    sifr_step_result result;
    double own[5] = {0}, others = other_threads(), first = now(CLOCK_THREAD_CPUTIME_ID);
    double start = now(CLOCK_MONOTONIC);
    comm_ledger before = *comm_get_ledger(b->group);
    BASE_TRY(sifr_engine_step(side->engine, &(sifr_batch){.tokens = b->tokens, .labels = b->labels},
                              3e-4, &result, error));
    double over = base_seconds();
    side->began[s] = start;
    side->seconds[s] = over - start;
    side->losses[s] = result.loss;
    side->done = s;
    if (s == 0) return SIFR_OK;
    own[2] = other_threads() - others;
    first = now(CLOCK_THREAD_CPUTIME_ID) - first;
    own[3] = side->seconds[s] - first;
    own[4] = own[2] + first;
    const comm_ledger *after = comm_get_ledger(b->group);
    for (int o = 0; o < COMM_OPERATIONS; o++)
        side->moved.operation[o].bytes += after->operation[o].bytes - before.operation[o].bytes;
    add_instructions(side, own);
    add_disk(side);
    return add_ranks(b, side, own, error);
}

/* The first step of each engine before there is another one: its memory is its own then. */
static sifr_status begin(train_bench *b, sifr_error *error) {
    BASE_TRY(open_model(b, error));
    fill_batch(b, 0);
    for (int i = 0; i < b->sides; i++) {
        BASE_TRY(make_engine(b, &b->side[i], error));
        BASE_TRY(run_step(b, &b->side[i], 0, error));
        BASE_TRY(note_memory(b, &b->side[i], error));
    }
    b->side[1].resident = 0;
    return SIFR_OK;
}

static sifr_status run_steps(train_bench *b, sifr_error *error) {
    double begun = now(CLOCK_MONOTONIC);
    bool last = false;
    for (int s = 1; s <= b->steps && !last; s++) {
        double turn = now(CLOCK_MONOTONIC);
        fill_batch(b, s);
        for (int i = 0; i < b->sides; i++)
            BASE_TRY(run_step(b, &b->side[b->sides > 1 ? (s + i) % 2 : 0], s, error));
        if (comm_rank(b->group) == 0) print(b);
        BASE_TRY(is_last(b, begun, now(CLOCK_MONOTONIC) - turn, &last, error));
    }
    return SIFR_OK;
}

static sifr_status run(train_bench *b, int argc, char **argv, sifr_error *error) {
    int ranks;
    b->started = now(CLOCK_MONOTONIC);
    BASE_TRY(read_arguments(b, argc, argv, error));
    if (comm_under_launcher(&ranks))
        BASE_TRY(comm_open_mpi(&b->group, error));
    else
        BASE_TRY(comm_open_self(&b->group, error));
    if (comm_size(b->group) > MOST_RANKS)
        return base_fail(error, SIFR_USAGE, "more than %d ranks", MOST_RANKS);
    BASE_TRY(open_batches(b, error));
    BASE_TRY(begin(b, error));
    return run_steps(b, error);
}

int main(int argc, char **argv) {
    static train_bench b;
    sifr_error error = {0};
    sifr_status status = run(&b, argc, argv, &error);
    if (status != SIFR_OK) fprintf(stderr, "bench_train: %s\n", error.message);
    for (int i = 0; i < b.sides; i++) {
        sifr_engine_free(b.side[i].engine);
        free(b.side[i].spans);
        free(b.side[i].all);
    }
    if (b.folder.model)
        engine_folder_close(&b.folder);
    else
        sifr_model_free(b.model);
    model_lora_free(&b.lora);
    base_unmap(&b.map);
    free(b.tokens);
    free(b.labels);
    if (b.group) comm_close(b.group);
    return (int)status;
}
