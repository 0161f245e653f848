/* The time that is left, as `sifr watch`, the line of `sifr train` and Prometheus show it: a save
 * or a slow step does not move it, steps that are slow regularly do, and evaluations are no part of
 * it. in test_asan */
#include "support/scratch.h"

#include <math.h>
#include <unistd.h>

#include "train/report/monitor.h"
#include "train/view/view_follow.h"

static void values(void **state) {
    (void)state;
    train_view_pace pace = {0};
    assert_true(train_view_pace_seconds(&pace) == 0);
    train_view_pace_add(&pace, NAN);
    train_view_pace_add(&pace, INFINITY);
    train_view_pace_add(&pace, -1);
    assert_true(train_view_pace_seconds(&pace) == 0);
    train_view_pace_add(&pace, 3);
    assert_true(train_view_pace_seconds(&pace) == 3);
    train_view_pace_add(&pace, 1);
    train_view_pace_add(&pace, 1000);
    assert_true(train_view_pace_seconds(&pace) == 2);
    for (int i = 0; i < 100; i++) train_view_pace_add(&pace, 0.5 + i % 2);
    assert_true(fabs(train_view_pace_seconds(&pace) - 1) < 0.01);
    for (int i = 0; i < TRAIN_VIEW_PACES; i++) train_view_pace_add(&pace, 0.25); /* faster now */
    assert_true(train_view_pace_seconds(&pace) == 0.25);
    train_view_pace_add(&pace, 4);
    train_view_pace_add(&pace, 40);
    assert_true(train_view_pace_seconds(&pace) == 0.25);
    train_view_pace_add(&pace, 4);
    assert_true(train_view_pace_seconds(&pace) > 0.25);
}

/* Say, of a loader that waits, or of a batch that is long every few steps. */
static void regularly_slow(void **state) {
    (void)state;
    for (int period = 2; period <= 16; period++) {
        train_view_pace pace = {0};
        double mean = 1 + 9.0 / period, most = 0, least = 1e9;
        for (int i = 0; i < 1000; i++) {
            train_view_pace_add(&pace, i % period ? 1 : 10);
            double now = train_view_pace_seconds(&pace);
            if (i >= TRAIN_VIEW_PACES) most = fmax(most, now);
            if (i >= TRAIN_VIEW_PACES) least = fmin(least, now);
        }
        if (!(least > 0.85 * mean && most < 1.15 * mean))
            fail_msg("every %d steps: from %g to %g s, not %g", period, least, most, mean);
    }
}

/* --- a log --- */

static FILE *log_of(const char *mode) {
    FILE *file = fopen("run/metrics.jsonl", mode);
    assert_non_null(file);
    return file;
}

/* 1 s a step of 64 tokens; `more`: seconds that something else took before this record. */
static void put_record(FILE *log, int step, double rate, double *clock, double more) {
    *clock += 640 / rate + more;
    fprintf(log, "{\"step\":%d,\"loss\":4,\"tokens_per_second\":%g,\"tokens\":%d,\"seconds\":%g}\n",
            step, rate, 64 * step, *clock);
}

static double look(train_view_follow *f) {
    sifr_error error = {0};
    if (train_view_follow_look(f, &error) != SIFR_OK) fail_msg("%s", error.message);
    return train_view_follow_left(f);
}

/* Evaluations and saves are in the clock of the records alone; a save of the machine's own, or a
 * step that waits for a disk, is in the rate of one. */
static void planted(void **state) {
    (void)state;
    train_view_follow f;
    double clock = 0;
    assert_int_equal(chdir(scratch), 0);
    scratch_fresh("run");
    assert_int_equal(mkdir("run", 0777), 0);
    scratch_text("run/summary.json", "{\"state\":\"running\",\"total_steps\":1000}");
    FILE *log = log_of("w");
    for (int step = 10; step <= 100; step += 10) put_record(log, step, 64, &clock, 0);
    fclose(log);
    assert_int_equal(train_view_follow_open(&f, "run", NULL), SIFR_OK);
    assert_true(fabs(look(&f) - 900) < 1e-6);
    log = log_of("a");
    fputs("{\"step\":100,\"eval_loss\":3,\"eval_seconds\":300}\n", log);
    put_record(log, 110, 64, &clock, 300); /* an evaluation */
    put_record(log, 120, 16, &clock, 0);   /* slow */
    fclose(log);
    assert_true(fabs(look(&f) - 880) < 1e-6);
    clock = 0; /* resumed, where each step takes a quarter */
    log = log_of("a");
    put_record(log, 130, 256, &clock, 0);
    fclose(log);
    assert_true(fabs(look(&f) - 870 / 4.0) < 1e-6);
    train_view_follow_close(&f);
}

/* --- a run that is measured --- */

typedef struct shown {
    char text[512];
} shown;

static void keep_live(void *user, const char *text) {
    if (*text) snprintf(((shown *)user)->text, sizeof((shown *)user)->text, "%s", text);
}

static int wide(void *user) {
    (void)user;
    return 200;
}

static double do_step(train_monitor *monitor, int64_t step, int milliseconds) {
    sifr_step_result result = {.loss = 2, .gradient_norm = 1, .updated = true};
    const train_step_event event = {.step = step, .rate = 1e-3, .result = &result};
    usleep((useconds_t)milliseconds * 1000);
    assert_int_equal(train_monitor_step(monitor, &event, NULL), SIFR_OK);
    return train_view_pace_seconds(&monitor->pace);
}

static void measured(void **state) {
    (void)state;
    train_monitor monitor;
    shown line = {{0}};
    const train_host host = {.live = keep_live, .columns = wide, .user = &line};
    const train_report_settings settings = {.host = &host,
                                            .output = scratch,
                                            .total_steps = 1000,
                                            .length = 8,
                                            .epochs =
                                                data_epochs_make(DATA_LAST_JOINED, 1000, 4, 4),
                                            .log_every = 10};
    assert_int_equal(train_monitor_open(&monitor, &settings, NULL, NULL), SIFR_OK);
    usleep(400 * 1000); /* an evaluation before the first step */
    train_monitor_pause(&monitor, 0.4);
    assert_true(do_step(&monitor, 1, 1) < 0.3);
    for (int step = 2; step < 40; step++) do_step(&monitor, step, 1);
    double before = train_view_pace_seconds(&monitor.pace);
    double after = do_step(&monitor, 40, 400); /* slow */
    if (!(after < 2 * before)) fail_msg("%g s a step, then %g", before, after);
    assert_non_null(strstr(line.text, "0:0"));
    assert_non_null(strstr(line.text, " left"));
    train_monitor_close(&monitor);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(regularly_slow),
                                       cmocka_unit_test(planted), cmocka_unit_test(measured)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
