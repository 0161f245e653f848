/* Figures over ranks, clocks, the log of collectives and the trace, with threads as ranks.
 * in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/engine_private.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "support/comm_threads.h"
#include "support/model_case.h"
#include "support/scratch.h"
#include "train/profile/breakdown.h"
#include "train/profile/clocks.h"
#include "train/profile/comms_log.h"
#include "train/profile/memory_report.h"
#include "train/profile/spread.h"
#include "train/profile/trace.h"

enum { RANKS = 3, LENGTH = 16, WORDS = 97, MICRO_BATCHES = 2, FIRST = 2, LAST = 3 };

/* So many that the log compares the ranks on its way. */
enum { STEPS = 180 };

typedef struct rank_run {
    comm_group *group;
    int32_t rank;
    const char *path; /* of the trace */
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

/* Threads assert nothing: cmocka's way out of a test is its own thread's. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition) && !r->failure[0])                                                        \
            snprintf(r->failure, sizeof r->failure, "line %d: %s", __LINE__, #condition);          \
    } while (0)
#define TRY(call) CHECK((call) == SIFR_OK)

static void on_ranks(int32_t ranks, void *(*run)(void *), const char *path) {
    comm_threads *world = comm_threads_create(ranks);
    pthread_t threads[RANKS];
    rank_run runs[RANKS] = {0};
    for (int32_t i = 0; i < ranks; i++) {
        runs[i] = (rank_run){.group = comm_threads_group(world, i), .rank = i, .path = path};
        pthread_create(&threads[i], NULL, run, &runs[i]);
    }
    for (int32_t i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
    for (int32_t i = 0; i < ranks; i++) comm_close(runs[i].group);
    comm_threads_free(world);
    for (int32_t i = 0; i < ranks; i++) {
        if (runs[i].failure[0]) fail_msg("rank %d: %s", i, runs[i].failure);
    }
}

/* --- spreads --- */

static void *spread_rank(void *argument) {
    enum { COUNT = 150 }; /* more than travel at a time */
    rank_run *r = argument;
    static const double of_rank[RANKS] = {5, 1, 9};
    double values[COUNT];
    train_spread out[COUNT];
    sifr_error error;
    for (int i = 0; i < COUNT; i++) values[i] = of_rank[(r->rank + i) % RANKS] + i;
    TRY(train_spread_over(r->group, values, COUNT, out, &error));
    for (int i = 0; i < COUNT; i++) {
        CHECK(out[i].least == 1 + i && out[i].median == 5 + i && out[i].most == 9 + i);
        CHECK((out[i].least_rank + i) % RANKS == 1 && (out[i].most_rank + i) % RANKS == 2);
    }
    return NULL;
}

static void *median_rank(void *argument) {
    rank_run *r = argument;
    double value = r->rank ? 10 : 4;
    train_spread out;
    sifr_error error;
    TRY(train_spread_over(r->group, &value, 1, &out, &error));
    CHECK(out.least == 4 && out.median == 7 && out.most == 10);
    return NULL;
}

static void test_spread(void **state) {
    (void)state;
    on_ranks(RANKS, spread_rank, NULL);
    on_ranks(2, median_rank, NULL);
}

/* --- clocks --- */

static double shifted(void *user) {
    return base_seconds() + *(const double *)user;
}

/* Ranks 1 and 2 run on clocks of their own; rank 2 then says that its clock is rank 0's. */
static void *clock_rank(void *argument) {
    rank_run *r = argument;
    static double shifts[RANKS] = {0, 1000, -50};
    double ahead[RANKS] = {1, 1, 1};
    sifr_error error;
    train_clock clock = {shifted, &shifts[r->rank], (uint64_t)r->rank};
    TRY(train_clocks_compare(r->group, &clock, ahead, &error));
    CHECK(ahead[0] == 0);
    CHECK(fabs(ahead[1] - 1000) < 0.2 && fabs(ahead[2] + 50) < 0.2);
    clock.id = r->rank == 1;
    TRY(train_clocks_compare(r->group, &clock, ahead, &error));
    CHECK(fabs(ahead[1] - 1000) < 0.2 && ahead[2] == 0);
    clock = train_clock_here();
    TRY(train_clocks_compare(r->group, &clock, ahead, &error));
    CHECK(ahead[0] == 0 && ahead[1] == 0 && ahead[2] == 0);
    return NULL;
}

static void test_clocks(void **state) {
    (void)state;
    on_ranks(RANKS, clock_rank, NULL);
}

/* --- a run with everything on --- */

static void fill_batch(rank_run *r, int step, int32_t *tokens, int32_t *labels) {
    for (int i = 0; i < MICRO_BATCHES * LENGTH; i++) {
        base_random4 draw = base_philox(9, (uint64_t)(r->rank * 1000 + i), (uint64_t)step);
        tokens[i] = (int32_t)(draw.v[0] % WORDS);
        labels[i] = (int32_t)(draw.v[1] % WORDS);
    }
}

static sifr_settings run_options(void) {
    sifr_settings options = sifr_settings_defaults();
    options.threads = 1;
    options.seq_length = LENGTH;
    options.gradient_accumulation_steps = MICRO_BATCHES;
    options.zero.stage = 3;
    options.communication_data_type = SIFR_BF16; /* the log counts what travels */
    return options;
}

static sifr_status make_engine(rank_run *r, sifr_model **model, sifr_engine **engine,
                               sifr_error *error) {
    model_config config = model_case_llama();
    sifr_settings options = run_options();
    BASE_TRY(model_from_config(&config, model, error));
    BASE_TRY(engine_create(*model, &options, r->group, engine, error));
    return sifr_engine_initialise(*engine, 5, error);
}

typedef struct both {
    train_trace *trace;
    train_comms_log *log;
} both;

static void hear(void *user, const comm_event *event) {
    both *b = user;
    train_trace_hear(b->trace, event);
    train_comms_log_hear(b->log, PLAN_WORLD, event);
}

/* The log's totals are the ledger's, and the sizes those of the schedule. */
static void check_log(rank_run *r, const sifr_engine *engine, const train_comms_log *log,
                      const comm_ledger *steps) {
    size_t count;
    const train_comms_row *rows = train_comms_log_rows(log, &count);
    for (int o = 0; o < COMM_OPERATIONS; o++) {
        int64_t calls = 0;
        uint64_t bytes = 0;
        for (size_t i = 0; i < count; i++) {
            if ((int)rows[i].operation != o) continue;
            calls += rows[i].calls;
            bytes += rows[i].delivered;
            CHECK(rows[i].compared == rows[i].calls);
            CHECK(rows[i].calls == 0 || rows[i].bytes >= 0);
            CHECK(rows[i].moved == rows[i].calls * rows[i].bytes || rows[i].calls == 0);
            CHECK(rows[i].least <= rows[i].latency * (1 + 1e-6));
            CHECK(rows[i].least + rows[i].straggler >= rows[i].latency * (1 - 1e-6));
            CHECK(rows[i].last <= rows[i].calls);
        }
        CHECK((calls > 0) == (o < COMM_SEND)); /* no stages */
        CHECK(calls == steps->operation[o].calls);
        CHECK(bytes == steps->operation[o].bytes);
    }
    const plan_schedule *s = engine->training;
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *in = &s->instructions[n];
        int found = 0;
        if (in->action != PLAN_GATHER && in->action != PLAN_REDUCE) continue;
        comm_operation operation =
            in->action == PLAN_GATHER ? COMM_ALL_GATHER : COMM_REDUCE_SCATTER;
        for (size_t i = 0; i < count; i++)
            found +=
                rows[i].operation == operation && rows[i].calls > 0 && rows[i].bytes == in->bytes;
        CHECK(found == 1);
    }
}

/* As the loop does it. */
static void run_step(rank_run *r, sifr_engine *engine, both *b, int step, comm_ledger *steps) {
    int32_t tokens[MICRO_BATCHES * LENGTH], labels[MICRO_BATCHES * LENGTH];
    sifr_error error = {0};
    sifr_step_result result;
    fill_batch(r, step, tokens, labels);
    comm_ledger before = *comm_get_ledger(r->group);
    comm_watch(r->group, hear, b);
    train_trace_begin(b->trace);
    TRY(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-4, &result,
                         &error));
    train_trace_end(b->trace);
    comm_watch(r->group, NULL, NULL);
    const comm_ledger *after = comm_get_ledger(r->group);
    for (int o = 0; o < COMM_OPERATIONS; o++) {
        steps->operation[o].calls += after->operation[o].calls - before.operation[o].calls;
        steps->operation[o].bytes += after->operation[o].bytes - before.operation[o].bytes;
    }
    TRY(train_comms_log_step(b->log, &error));
    CHECK(train_trace_ready(b->trace) == (step + 1 == LAST));
    if (train_trace_ready(b->trace)) TRY(train_trace_write(b->trace, &error));
}

static void *run_rank(void *argument) {
    rank_run *r = argument;
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    both b = {0};
    static const train_host silent = {0};
    config_comms_logger settings = {.enabled = true, .operations = ~0U};
    comm_ledger steps = {0};
    TRY(make_engine(r, &model, &engine, &error));
    TRY(train_comms_log_open(engine->training, r->group, &settings, &silent, &b.log, &error));
    TRY(train_trace_open(engine, r->path, FIRST, LAST, &b.trace, &error));
    for (int s = 0; s < STEPS && !r->failure[0]; s++) run_step(r, engine, &b, s, &steps);
    CHECK(train_trace_steps(b.trace) == LAST - FIRST + 1);
    CHECK(!train_trace_ready(b.trace));
    TRY(train_comms_log_say(b.log, &error));
    check_log(r, engine, b.log, &steps);
    train_comms_log_close(b.log);
    train_trace_close(b.trace);
    sifr_engine_free(engine);
    sifr_model_free(model);
    return NULL;
}

/* --- what the file holds --- */

typedef struct timed {
    double start, end;
} timed;

static int by_start(const void *a, const void *b) {
    const timed *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static double number(const json_t *event, const char *key) {
    const json_t *value = json_object_get(event, key);
    if (!json_is_number(value)) fail_msg("an event without %s", key);
    return json_number_value(value);
}

/* Of one queue of one rank: each span lies within the step around it, and behind the one before.
 * Yields the microseconds of its instructions, and adds those of the steps to *steps_took. */
static double check_queue(const json_t *events, int rank, int queue, bool within_steps,
                          double *steps_took) {
    timed *spans = calloc(json_array_size(events), sizeof *spans);
    size_t count = 0, index, steps = 0;
    const json_t *event;
    double inside = 0, around = 0, end = -1, outer = -1;
    json_array_foreach((json_t *)(uintptr_t)events, index, event) {
        const char *kind = json_string_value(json_object_get(event, "ph"));
        if (strcmp(kind, "X") != 0 || (int)number(event, "pid") != rank ||
            (int)number(event, "tid") != queue)
            continue;
        timed span = {number(event, "ts"), number(event, "ts") + number(event, "dur")};
        assert_true(span.end >= span.start);
        assert_true(span.start >= 0);
        if (strcmp(json_string_value(json_object_get(event, "cat")), "step") == 0) {
            around += span.end - span.start;
            steps++;
        } else {
            inside += span.end - span.start;
        }
        spans[count++] = span;
    }
    assert_true(count > 10);
    assert_int_equal(steps, within_steps ? LAST - FIRST + 1 : 0);
    qsort(spans, count, sizeof *spans, by_start);
    for (size_t i = 0; i < count; i++) {
        const double slack = 0.0015; /* microseconds; the file has nanoseconds */
        bool opens = within_steps && (i == 0 || spans[i].start >= outer - slack);
        if (opens) {
            outer = spans[i].end;
        } else {
            assert_true(spans[i].start >= end - slack);
            if (within_steps) assert_true(spans[i].end <= outer + slack);
            end = spans[i].end;
        }
    }
    free(spans);
    *steps_took += around;
    return inside;
}

static void check_wire(const json_t *events, const plan_schedule *s, int rank) {
    int64_t gathered, reduced, found[2] = {0};
    size_t index, instructions = 0;
    const json_t *event;
    plan_wire(s, &gathered, &reduced);
    json_array_foreach((json_t *)(uintptr_t)events, index, event) {
        const json_t *arguments = json_object_get(event, "args");
        const char *category = json_string_value(json_object_get(event, "cat"));
        if (!category || (int)number(event, "pid") != rank) continue;
        if ((int)number(event, "tid") == PLAN_COMPUTE) {
            instructions += json_object_get(arguments, "instruction") != NULL;
            continue;
        }
        int64_t bytes = json_integer_value(json_object_get(arguments, "bytes"));
        if (strcmp(category, "gather") == 0) found[0] += bytes;
        if (strcmp(category, "reduce") == 0) found[1] += bytes;
    }
    assert_int_equal(instructions, s->instruction_count * (LAST - FIRST + 1));
    assert_int_equal(found[0], gathered * (LAST - FIRST + 1));
    assert_int_equal(found[1], reduced * (LAST - FIRST + 1));
}

static bool has_name(const json_t *events, const char *name) {
    size_t index;
    const json_t *event;
    json_array_foreach((json_t *)(uintptr_t)events, index, event) {
        if (strcmp(json_string_value(json_object_get(event, "name")), name) == 0) return true;
    }
    return false;
}

static void test_run(void **state) {
    (void)state;
    char path[512];
    json_error_t where;
    snprintf(path, sizeof path, "%s", scratch_path("trace.json"));
    on_ranks(RANKS, run_rank, path);
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (!file) fail_msg("%s:%d: %s", path, where.line, where.text);
    const json_t *events = json_object_get(file, "traceEvents");
    model_config config = model_case_llama();
    sifr_settings options = run_options();
    plan_settings settings = engine_plan_settings(&options, NULL);
    plan_schedule *schedule;
    sifr_model *model;
    device *dev;
    sifr_error error;
    settings.mesh = plan_mesh_flat(RANKS, 0);
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(plan_lower(model, dev, &settings, &schedule, &error), SIFR_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        double steps = 0, inside = check_queue(events, rank, PLAN_COMPUTE, true, &steps);
        if (inside > steps || inside < 0.5 * steps)
            fail_msg("%g us of instructions in %g us", inside, steps);
        check_queue(events, rank, PLAN_COMMUNICATION, false, &steps);
        check_wire(events, schedule, rank);
    }
    static const char *const names[] = {"process_name",
                                        "thread_name",
                                        "step 2",
                                        "step 3",
                                        "forward layers.1 linear",
                                        "gather layers.0",
                                        "wait gather layers.0",
                                        "start gather layers.0",
                                        "reduce layers.1",
                                        "norm",
                                        "control",
                                        "update layers.0 adam"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!has_name(events, names[i])) fail_msg("no event is called %s", names[i]);
    }
    plan_free(schedule);
    device_close(dev);
    sifr_model_free(model);
    json_decref(file);
}

/* DeepSpeed's calc_bw_log, at 4 ranks: 1 MB a rank in 2 ms. */
static void test_bandwidth(void **state) {
    (void)state;
    double algorithm, bus;
    train_comms_bandwidth(COMM_ALL_GATHER, 1000000, 4, 2e-3, &algorithm, &bus);
    assert_true(fabs(algorithm - 16) < 1e-9);
    assert_true(fabs(bus - 12) < 1e-9);
    train_comms_bandwidth(COMM_REDUCE_SCATTER, 1000000, 4, 2e-3, &algorithm, &bus);
    assert_true(fabs(algorithm - 16) < 1e-9);
    assert_true(fabs(bus - 12) < 1e-9);
    train_comms_bandwidth(COMM_ALL_TO_ALL, 4000000, 4, 2e-3, &algorithm, &bus);
    assert_true(fabs(algorithm - 16) < 1e-9);
    assert_true(fabs(bus - 12) < 1e-9);
    train_comms_bandwidth(COMM_ALL_REDUCE, 4000000, 4, 2e-3, &algorithm, &bus);
    assert_true(fabs(algorithm - 32) < 1e-9);
    assert_true(fabs(bus - 24) < 1e-9);
    train_comms_bandwidth(COMM_CONTROL, 1000000, 4, 2e-3, &algorithm, &bus);
    assert_true(fabs(algorithm - 4) < 1e-9);
    assert_true(fabs(bus - 4) < 1e-9);
}

/* --- tables --- */

static void keep_line(void *user, const char *line) {
    char *lines = user;
    size_t used = strlen(lines);
    snprintf(lines + used, 8192 - used, "%s\n", line);
}

/* Rank 1 takes 3 ms for the only kind of instruction, the others 1 ms; rank r has r + 1 MiB. */
static void *table_rank(void *argument) {
    rank_run *r = argument;
    char lines[8192] = "";
    train_host host = {.line = keep_line, .user = lines};
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    train_breakdown b = {.steps = 2, .step_seconds = r->rank == 1 ? 10e-3 : 4e-3};
    int class = PLAN_NORM * (DEVICE_KERNELS + 1) + DEVICE_KERNELS;
    b.calls[class] = 2;
    b.measured[class] = r->rank == 1 ? 6e-3 : 2e-3;
    TRY(train_breakdown_say(&b, r->group, &host, &error));
    CHECK(strstr(lines, "least      median        most  slowest"));
    CHECK(strstr(lines,
                 "  norm                                            1       1.000       1.000"
                 "       3.000  rank 1      50.0%"));
    CHECK(strstr(lines,
                 "  between        instructions                     1       1.000       1.000"
                 "       2.000  rank 1 "));
    CHECK(strstr(lines,
                 "  step                                            1       2.000       2.000"
                 "       5.000  rank 1     100.0%"));
    TRY(make_engine(r, &model, &engine, &error));
    train_memory_now now = {.measured = (uint64_t)(r->rank + 1) << 20, .profiling = 1024};
    lines[0] = '\0';
    TRY(train_memory_say(engine, &now, "at noon", &host, &error));
    CHECK(strstr(lines, "  memory at noon           least      median        most\n"));
    CHECK(strstr(lines, "  measured              1.00 MiB    2.00 MiB    3.00 MiB  rank 2\n"));
    CHECK(strstr(lines, "  profiling             1.00 KiB    1.00 KiB    1.00 KiB  rank 0\n"));
    CHECK(strstr(lines, "  gathered ") && strstr(lines, "  planned "));
    sifr_engine_free(engine);
    sifr_model_free(model);
    return NULL;
}

static void test_tables(void **state) {
    (void)state;
    on_ranks(RANKS, table_rank, NULL);
}

/* What would take too much memory, and names that are none. */
static void test_refusals(void **state) {
    (void)state;
    char path[512];
    comm_group *group;
    sifr_model *model;
    sifr_engine *engine;
    train_trace *trace;
    sifr_error error = {0};
    assert_int_equal(comm_open_self(&group, &error), SIFR_OK);
    rank_run r = {.group = group};
    assert_int_equal(make_engine(&r, &model, &engine, &error), SIFR_OK);
    snprintf(path, sizeof path, "%s", scratch_path("trace.json"));
    assert_int_equal(train_trace_open(engine, path, 1, INT64_MAX, &trace, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "trace at most"));
    const char *const wrong[] = {"", "/dev/null", scratch, "/nonexistent/t.json"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(train_trace_open(engine, wrong[i], 1, 2, &trace, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, "trace: "));
    }
    sifr_engine_free(engine);
    sifr_model_free(model);
    comm_close(group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread), cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_run),    cmocka_unit_test(test_bandwidth),
        cmocka_unit_test(test_tables), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
