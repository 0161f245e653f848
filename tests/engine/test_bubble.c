/* label: full, runs alone, not under sanitizers (it measures time), timeout: 300
 * The bubble of pipeline stages: kernels are replaced by sleeping as long as they are priced, so
 * that what a stage waits for others is what plan_predict_stages says. The ranks are threads. With
 * an argument all numbers of micro batches have their turn (test_bubble_all.sh). */
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
#include <time.h>

#include "base/clock.h"
#include "engine/engine_private.h"
#include "plan/peers.h"
#include "plan/price/price.h"
#include "support/comm_threads.h"
#include "support/model_case.h"

enum {
    MOST_STAGES = 4,
    LENGTH = 8,
    WORDS = 16,
    BLOCKS = 8,
    STEPS = 2,
    TRIES = 8,
    MOST_BATCHES = 16
};

/* Of all kernels for a micro batch, of all stages together. Many of them have more transfers on
 * their way, each of which may be late by a little, and the bubble is as long. */
static double seconds_of(int32_t micro_batches) {
    return micro_batches > 4 ? 1.2 : 1.0;
}

typedef struct bubble_case {
    int32_t stages, micro_batches;
    sifr_pipeline_schedule schedule;
} bubble_case;

/* Seconds that the stages wait for others, all together. */
typedef struct bubble_result {
    double predicted, measured;
} bubble_result;

typedef struct rank_run {
    bubble_case what;
    comm_group *group;
    double predicted, measured; /* of this stage; measured: of the second step */
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

/* Stands for a device: until when it is busy, the last kernel that it was given, and when the last
 * transfer that it waited for had ended. */
typedef struct sleeper {
    const plan_schedule *schedule;
    const plan_machine *machine;
    double busy_until;
    size_t last;
    double arrived;
} sleeper;

static void hear(void *user, const comm_event *event) {
    ((sleeper *)user)->arrived = event->ended;
}

/* Whether another stage was waited for between two kernels. */
static bool waits(const plan_schedule *s, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action == PLAN_WAIT && plan_is_peer(&s->instructions[in->wait])) return true;
    }
    return false;
}

/* Sleeping too long once does not add up: the next kernel ends that much earlier. What comes behind
 * a wait begins when the transfer has ended. */
static sifr_status sleep_instead(void *user, size_t instruction, const device_call *call,
                                 sifr_error *error) {
    (void)call, (void)error;
    sleeper *s = user;
    double now = base_seconds(), start = s->busy_until;
    if (s->arrived > start && waits(s->schedule, s->last, instruction)) start = s->arrived;
    s->last = instruction;
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
    model_config c = model_case_blocks(BLOCKS, WORDS, 128);
    c.initializer_range = 0.02;
    return c;
}

/* The lists of all stages, and a machine on which they take as long as they should. */
static sifr_status predict(const sifr_engine *engine, plan_machine *machine, plan_prediction *own,
                           sifr_error *error) {
    const plan_settings *settings = &engine->training->settings;
    int32_t stages = settings->pipeline.stages;
    plan_schedule *plans[MOST_STAGES];
    plan_prediction out[MOST_STAGES];
    double sum = 0;
    *machine = (plan_machine){
        .fp32_operations = 1e9, .memory_bytes = 1e30, .host = {.bytes_per_second = 1e30}};
    sifr_status status = plan_lower_stages(engine->model, engine->dev, settings, plans, error);
    for (int turn = 0; turn < 2 && status == SIFR_OK; turn++) {
        status = plan_predict_stages((const plan_schedule *const *)plans, (size_t)stages, machine,
                                     out, error);
        for (int32_t s = 0; s < stages && turn == 0; s++) sum += out[s].computing;
        int32_t count = settings->step.gradient_accumulation_steps;
        double seconds = count * seconds_of(count);
        if (turn == 0) machine->fp32_operations *= sum / seconds;
    }
    if (status == SIFR_OK) *own = out[settings->pipeline.stage];
    for (int32_t s = 0; s < stages; s++) plan_free(plans[s]);
    return status;
}

static sifr_status measure(rank_run *r, const sifr_model *model, sifr_error *error) {
    sifr_settings options = sifr_settings_defaults();
    sifr_engine *engine;
    plan_machine machine;
    plan_prediction own = {0};
    int32_t tokens[MOST_BATCHES * LENGTH] = {0}, labels[MOST_BATCHES * LENGTH] = {0};
    options.threads = 1;
    options.seq_length = LENGTH;
    options.gradient_accumulation_steps = r->what.micro_batches;
    options.pipeline.stages = r->what.stages;
    options.pipeline.schedule = r->what.schedule;
    options.pipeline.chunks = r->what.schedule == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
    BASE_TRY(engine_create(model, &options, r->group, &engine, error));
    sifr_status status = predict(engine, &machine, &own, error);
    engine_group_of list[ENGINE_GROUPS];
    int groups = engine_groups_list(&engine->groups, list);
    for (int i = 0; i < STEPS && status == SIFR_OK; i++) {
        sleeper in_place = {engine->training, &machine, base_seconds(), 0, 0};
        sifr_step_result step;
        engine_replace_kernels(engine->trainer, sleep_instead, &in_place);
        for (int g = 0; g < groups; g++) comm_watch(list[g].group, hear, &in_place);
        double begun = base_seconds();
        status = sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-3,
                                  &step, error);
        double waited = base_seconds() - begun - own.computing;
        if (i > 0) r->measured = waited; /* the first opens windows */
        for (int g = 0; g < groups; g++) comm_watch(list[g].group, NULL, NULL);
    }
    if (status == SIFR_OK) r->predicted = own.step_seconds - own.computing;
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

static bubble_result run(bubble_case what) {
    bubble_result out = {0};
    rank_run runs[MOST_STAGES] = {0};
    pthread_t threads[MOST_STAGES];
    comm_threads *world = comm_threads_create(what.stages);
    for (int32_t r = 0; r < what.stages; r++) {
        runs[r] = (rank_run){.what = what, .group = comm_threads_group(world, r)};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < what.stages; r++) pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < what.stages; r++) comm_close(runs[r].group);
    for (int32_t r = 0; r < what.stages; r++) {
        if (runs[r].failure[0]) fail_msg("rank %d: %s", r, runs[r].failure);
        out.predicted += runs[r].predicted;
        out.measured += runs[r].measured;
    }
    comm_threads_free(world);
    return out;
}

/* Other work on the machine may disturb a measurement, but hardly each of them. */
static void check(bubble_case what) {
    static const char *const names[] = {"gpipe", "1f1b", "interleaved", "zb-h1"};
    bubble_result r;
    for (int i = 0; i < TRIES; i++) {
        r = run(what);
        print_message("%d stages, %d micro batches, %s: waiting predicted %.1f ms, measured %.1f\n",
                      what.stages, what.micro_batches, names[what.schedule], 1e3 * r.predicted,
                      1e3 * r.measured);
        if (fabs(r.measured - r.predicted) <= 0.05 * r.predicted) return;
    }
    fail_msg("%d stages, %d micro batches, %s: waiting %.1f ms, not %.1f", what.stages,
             what.micro_batches, names[what.schedule], 1e3 * r.measured, 1e3 * r.predicted);
}

static void check_all(int32_t micro_batches) {
    for (int32_t stages = 2; stages <= MOST_STAGES; stages += 2)
        for (int s = SIFR_SCHEDULE_GPIPE; s <= SIFR_SCHEDULE_ZB_H1; s++)
            check((bubble_case){stages, micro_batches, (sifr_pipeline_schedule)s});
}

static void few(void **state) {
    (void)state;
    check_all(4);
}

static void more(void **state) {
    (void)state;
    check_all(8);
    check_all(16);
}

int main(int argc, char **argv) {
    const struct CMUnitTest small[] = {cmocka_unit_test(few)};
    const struct CMUnitTest all[] = {cmocka_unit_test(few), cmocka_unit_test(more)};
    (void)argv;
    if (argc > 1) return cmocka_run_group_tests(all, NULL, NULL);
    return cmocka_run_group_tests(small, NULL, NULL);
}
