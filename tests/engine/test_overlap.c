/* runs alone, not under sanitizers (it measures time), each MPI
 * Communication beside computing. Kernels are replaced by waiting as long as they are priced, the
 * transport is slowed down to what the pricer is told: a step of stage 2 or 3 then takes about as
 * long as the longer of the two queues, not as both together, and what plan_predict says. Alone the
 * ranks are threads; under mpirun (test_overlap_mpi.sh) they are its ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "comm/launcher.h"
#include "comm/worker.h"
#include "engine/engine_private.h"
#include "plan/price/price.h"
#include "support/comm_threads.h"
#include "support/model_case.h"

enum { RANKS = 2, LENGTH = 16, WORDS = 96, BLOCKS = 10, STEPS = 3, TRIES = 5 };

static const double compute_seconds = 0.25; /* of a step's kernels, all together */

typedef struct overlap_case {
    int stage;
    double share; /* of the communication queue's seconds in the computing queue's */
} overlap_case;

typedef struct overlap_result {
    plan_prediction predicted;
    double measured; /* seconds of the quickest step */
} overlap_result;

typedef struct rank_run {
    overlap_case what;
    comm_group *group;
    overlap_result *out; /* NULL but for one rank */
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

/* Stands for a device: until when it is busy. */
typedef struct sleeper {
    const plan_schedule *schedule;
    const plan_machine *machine;
    double busy_until;
} sleeper;

/* Sleeping too long once does not add up: the next kernel ends that much earlier. */
static sifr_status sleep_instead(void *user, size_t instruction, const device_call *call,
                                 sifr_error *error) {
    (void)call, (void)error;
    sleeper *s = user;
    double now = base_seconds(), start = now - s->busy_until > 1e-3 ? now : s->busy_until;
    s->busy_until = start + plan_price(s->schedule, instruction, s->machine);
    double rest = s->busy_until - now;
    if (rest > 5e-5) {
        struct timespec span = {.tv_sec = (time_t)rest,
                                .tv_nsec = (long)(1e9 * (rest - (double)(time_t)rest))};
        nanosleep(&span, NULL);
    }
    return SIFR_OK;
}

static model_config config_of_blocks(void) {
    model_config c = model_case_blocks(BLOCKS, WORDS, 256);
    c.initializer_range = 0.02;
    return c;
}

/* A machine on which this schedule's queues are as busy as the case says. */
static sifr_status make_machine(const plan_schedule *s, double share, plan_machine *machine,
                                sifr_error *error) {
    plan_prediction p;
    *machine = (plan_machine){.fp32_operations = 1e9,
                              .bf16_operations = 1e9,
                              .memory_bytes = 1e9,
                              .host = {.bytes_per_second = 1e9}};
    BASE_TRY(plan_predict(s, machine, &p, NULL, error));
    double slower = compute_seconds / p.computing;
    machine->fp32_operations /= slower;
    machine->bf16_operations /= slower;
    machine->memory_bytes /= slower;
    machine->host.bytes_per_second /= share * compute_seconds / p.communication;
    return SIFR_OK;
}

static sifr_status measure(rank_run *r, const sifr_model *model, sifr_error *error) {
    sifr_settings options = sifr_settings_defaults();
    sifr_engine *engine;
    plan_machine machine;
    overlap_result result = {.measured = 1e9};
    int32_t tokens[LENGTH] = {0}, labels[LENGTH] = {0};
    options.threads = 1;
    options.seq_length = LENGTH;
    options.precision = SIFR_BF16;
    options.zero.stage = r->what.stage;
    comm_group *group = r->group;
    BASE_TRY(engine_create(model, &options, group, &engine, error));
    const plan_schedule *s = engine->training;
    sifr_status status = make_machine(s, r->what.share, &machine, error);
    if (status == SIFR_OK) status = plan_predict(s, &machine, &result.predicted, NULL, error);
    comm_slow_down(group, 0, 1 / machine.host.bytes_per_second);
    for (int i = 0; i < STEPS && status == SIFR_OK; i++) {
        sleeper in_place = {s, &machine, 0};
        sifr_step_result step;
        engine_replace_kernels(engine->trainer, sleep_instead, &in_place);
        double begun = base_seconds();
        status = sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-3,
                                  &step, error);
        double seconds = base_seconds() - begun;
        if (seconds < result.measured) result.measured = seconds;
    }
    if (r->out) *r->out = result;
    sifr_engine_free(engine);
    return status;
}

static void *run_rank(void *argument) {
    rank_run *r = argument;
    model_config config = config_of_blocks();
    sifr_model *model = NULL;
    sifr_error error = {0};
    if (model_from_config(&config, &model, &error) != SIFR_OK ||
        measure(r, model, &error) != SIFR_OK)
        memcpy(r->failure, error.message, sizeof r->failure);
    sifr_model_free(model);
    return NULL;
}

static overlap_result run(overlap_case what) {
    overlap_result out;
    rank_run runs[RANKS] = {0};
    pthread_t threads[RANKS];
    comm_threads *world = comm_threads_create(RANKS);
    for (int32_t r = 0; r < RANKS; r++) {
        runs[r] = (rank_run){
            .what = what, .group = comm_threads_group(world, r), .out = r == 0 ? &out : NULL};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < RANKS; r++) comm_close(runs[r].group);
    for (int32_t r = 0; r < RANKS; r++) {
        if (runs[r].failure[0]) fail_msg("rank %d: %s", r, runs[r].failure);
    }
    comm_threads_free(world);
    return out;
}

/* The most that a step may take beyond the longer queue. Nothing can run beside the first gather
 * and the last reduction of stage 3; of stage 2, beside its forward pass and its last gathers. */
static double most_beyond(int stage) {
    return stage == 3 ? 0.15 : 0.3;
}

static const char *judge(overlap_case what, const overlap_result *r) {
    const plan_prediction *p = &r->predicted;
    double sum = p->computing + p->communication;
    double longer = p->computing > p->communication ? p->computing : p->communication;
    print_message("stage %d: computing %.3f s, communication %.3f s, step predicted %.3f s, "
                  "measured %.3f s\n",
                  what.stage, p->computing, p->communication, p->step_seconds, r->measured);
    if (r->measured < 0.97 * p->step_seconds) return "measured is less than predicted";
    if (r->measured > 1.2 * p->step_seconds + 0.02) return "measured is more than predicted";
    if (what.stage < 2) return NULL;
    if (p->step_seconds > (1 + most_beyond(what.stage)) * longer) return "nothing overlaps";
    return r->measured < (longer + 2 * sum) / 3 ? NULL : "as long as both queues together";
}

/* Other work on the machine may disturb a measurement, but hardly each of five. */
static void check(overlap_case what) {
    const char *wrong = "";
    for (int i = 0; i < TRIES && wrong; i++) {
        overlap_result r = run(what);
        wrong = judge(what, &r);
    }
    if (wrong) fail_msg("stage %d: %s", what.stage, wrong);
}

static void computing_is_longer(void **state) {
    (void)state;
    for (int stage = 1; stage < 4; stage++) check((overlap_case){stage, 0.7});
}

static void communication_is_longer(void **state) {
    (void)state;
    for (int stage = 2; stage < 4; stage++) check((overlap_case){stage, 1.4});
}

/* As one of mpirun's ranks: test_overlap STAGE SHARE. */
static int run_under_launcher(char **argv) {
    overlap_result out;
    rank_run r = {.what = {atoi(argv[1]), strtod(argv[2], NULL)}, .out = &out};
    sifr_error error = {0};
    if (comm_open_mpi(&r.group, &error) != SIFR_OK) {
        fprintf(stderr, "%s\n", error.message);
        return (int)error.status;
    }
    bool first = comm_rank(r.group) == 0;
    run_rank(&r);
    const char *wrong = r.failure[0] ? r.failure : first ? judge(r.what, &out) : NULL;
    comm_close(r.group);
    if (wrong) fprintf(stderr, "stage %d: %s\n", r.what.stage, wrong);
    return wrong ? SIFR_FAILED : SIFR_OK;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(computing_is_longer),
                                       cmocka_unit_test(communication_is_longer)};
    if (argc == 3 && comm_under_launcher(NULL)) return run_under_launcher(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
