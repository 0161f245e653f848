/* Curves in characters, and a run that is followed: its log grows, is cut, is replaced, holds half
 * a line; what its folder says of its state; a screen keeps its size, whatever the folder holds.
 * in test_asan */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/columns.h"
#include "support/scratch.h"
#include "train/view/plot.h"
#include "train/view/screen.h"
#include "train/view/screen_text.h"

static void draw_row(const double *values, int count, bool utf8, char *out) {
    train_view_series s;
    train_plot *plot = calloc(1, sizeof *plot);
    assert_int_equal(train_view_series_open(&s, "loss", 4, 16, NULL), SIFR_OK);
    for (int i = 0; i < count; i++) train_view_series_add(&s, i, values[i]);
    train_plot_begin(plot, 2, 1);
    train_plot_series(plot, &s, &(train_plot_range){s.first_step, count - 1, s.low, s.high});
    train_plot_row(plot, 0, utf8, out);
    train_view_series_close(&s);
    free(plot);
}

static void curves(void **state) {
    (void)state;
    char out[64];
    draw_row((const double[]){3, 2, 1, 0}, 4, true, out);
    assert_string_equal(out, "\xe2\xa0\x91\xe2\xa2\x84"); /* dots 1 and 5, 3 and 8 */
    draw_row((const double[]){3, 2, 1, 0}, 4, false, out);
    assert_string_equal(out, "'.");
    draw_row((const double[]){5, 5, 5}, 3, false, out); /* no range: the middle */
    assert_int_equal(strlen(out), 2);
    draw_row((const double[]){-1.7e308, 1.7e308, NAN, INFINITY}, 4, true, out);
    assert_int_equal(base_columns(out), 2);
}

/* --- following --- */

static void enter_scratch(void) {
    assert_int_equal(chdir(scratch), 0);
    scratch_fresh("run");
}

static void put_file(const char *name, const char *mode, const char *text) {
    FILE *file = fopen(name, mode);
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void look(train_view_follow *f) {
    sifr_error error = {0};
    if (train_view_follow_look(f, &error) != SIFR_OK) fail_msg("%s", error.message);
}

static void logs_that_change(void **state) {
    (void)state;
    train_view_follow f;
    enter_scratch();
    assert_int_equal(train_view_follow_open(&f, "run", NULL), SIFR_OK);
    look(&f); /* no folder yet */
    assert_false(f.open);
    mkdir("run", 0777);
    look(&f);
    put_file("run/metrics.jsonl", "w", "{\"step\":1,\"loss\":4,\"seconds\":1}\n{\"step\":2,\"lo");
    look(&f);
    assert_int_equal(f.run.records, 1);
    put_file("run/metrics.jsonl", "a", "ss\":3,\"seconds\":2}\n");
    look(&f);
    assert_int_equal(f.run.records, 2);
    assert_int_equal(f.run.bad_lines, 0);
    assert_true(train_view_run_find(&f.run, "loss")->last == 3);
    put_file("run/metrics.jsonl", "w", "{\"step\":1,\"loss\":9}\n"); /* cut */
    look(&f);
    assert_int_equal(f.run.records, 1);
    assert_true(train_view_run_find(&f.run, "loss")->high == 9);
    put_file(
        "run/metrics.jsonl", "w",
        "{\"step\":7,\"loss\":1}\n{\"step\":8,\"loss\":1}\n{\"step\":9,\"loss\":1}\n"); /* longer */
    look(&f);
    assert_int_equal(f.run.records, 3);
    put_file("run/new", "w", "{\"step\":1,\"loss\":2}\n");
    assert_int_equal(rename("run/new", "run/metrics.jsonl"), 0);
    look(&f);
    assert_int_equal(f.run.records, 1);
    unlink("run/metrics.jsonl");
    look(&f);
    assert_int_equal(f.run.records, 0);
    mkdir("run/metrics.jsonl", 0777);
    assert_int_equal(train_view_follow_look(&f, NULL), SIFR_FAILED);
    train_view_follow_close(&f);
}

static void states_and_time_left(void **state) {
    (void)state;
    train_view_follow f;
    char text[512];
    enter_scratch();
    mkdir("run", 0777);
    put_file(
        "run/metrics.jsonl", "w",
        "{\"step\":10,\"loss\":4,\"tokens\":80,\"tokens_per_second\":4}\n{\"step\":20,"
        "\"loss\":3,\"tokens\":160,\"tokens_per_second\":4}\n{\"step\":20,\"eval_loss\":2.5}\n");
    assert_int_equal(train_view_follow_open(&f, "run", NULL), SIFR_OK);
    look(&f);
    assert_true(!train_view_follow_over(&f) && isnan(train_view_follow_left(&f)));
    put_file("run/summary.json", "w", "{\"state\":\"running\",\"total_steps\":50}");
    look(&f);
    assert_true(train_view_follow_left(&f) == 60);
    assert_int_equal(f.run.event_count, 1);
    put_file("run/next", "w",
             "{\"state\":\"failed\",\"total_steps\":50,\"error\":\"\\u001b[31mno\"}");
    assert_int_equal(rename("run/next", "run/summary.json"), 0);
    look(&f);
    assert_true(train_view_follow_over(&f));
    train_screen_head(&f, true, 0, text, sizeof text);
    assert_string_equal(text, "run  step 20/50  40 %  failed: \\x1b[31mno");
    train_screen_figures(&f, 0, text, sizeof text);
    assert_string_equal(text, "loss 3.0000  eval loss 2.5000  lowest 3.0000 at 20  4 tok/s");
    train_view_follow_close(&f);
    assert_int_equal(train_view_follow_open(&f, "run/metrics.jsonl", NULL), SIFR_USAGE);
    assert_int_equal(train_view_follow_open(&f, "", NULL), SIFR_USAGE);
}

/* --- screens --- */

/* What the newest record lacks is not shown from an older one, and a log that was written long ago
 * is of no run that goes on. */
static void old_and_undefined(void **state) {
    (void)state;
    train_view_follow f;
    char head[512], figures[512];
    enter_scratch();
    mkdir("run", 0777);
    put_file("run/metrics.jsonl", "w",
             "{\"step\":1,\"loss\":4.5,\"grad_norm\":2,\"seconds\":1}\n"
             "{\"step\":2,\"loss\":null,\"grad_norm\":null,\"skipped\":1,\"seconds\":2}\n");
    put_file("run/summary.json", "w", "{\"state\": \"running\", \"total_steps\": 9}");
    assert_int_equal(train_view_follow_open(&f, "run", NULL), SIFR_OK);
    look(&f);
    train_screen_head(&f, true, 0, head, sizeof head);
    train_screen_figures(&f, 0, figures, sizeof figures);
    assert_non_null(strstr(figures, "loss nan"));
    assert_null(strstr(figures, "norm"));
    assert_non_null(strstr(head, "running"));
    train_view_follow_close(&f);

    const struct timespec old[2] = {{.tv_sec = time(NULL) - 300}, {.tv_sec = time(NULL) - 300}};
    assert_int_equal(utimensat(AT_FDCWD, "run/metrics.jsonl", old, 0), 0);
    assert_int_equal(train_view_follow_open(&f, "run", NULL), SIFR_OK);
    look(&f);
    train_screen_head(&f, true, 0, head, sizeof head);
    assert_non_null(strstr(head, "no new record for 5:0"));
    assert_null(strstr(head, "left"));
    train_view_follow_close(&f);

    put_file("run/summary.json", "w",
             "{\"state\": \"failed\", \"total_steps\": 9, \"error\": \"/a/very/long/path/of/a/run/"
             "checkpoint-500/model.safetensors: No space left on device; free some of it\"}");
    assert_int_equal(train_view_follow_open(&f, "run", NULL), SIFR_OK);
    look(&f);
    train_screen_head(&f, true, 80, head, sizeof head);
    assert_non_null(strstr(head, "step 2/9"));
    assert_non_null(strstr(head, "failed: /a/very"));
    train_view_follow_close(&f);
}

static void assert_fits(const train_view_follow *f, int columns, int rows) {
    char *text;
    const train_screen screen = {.columns = columns, .rows = rows, .utf8 = true, .foot = "q: end"};
    assert_int_equal(train_screen_draw(&screen, f, &text, NULL), SIFR_OK);
    int lines = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        *end = '\0';
        if (base_columns(line) >= (size_t)columns) fail_msg("%d by %d: %s", columns, rows, line);
        for (const char *c = line; *c; c++) assert_true((unsigned char)*c >= 0x20);
    }
    if (lines > rows) fail_msg("%d by %d: %d lines", columns, rows, lines);
    free(text);
}

static void screens_keep_their_size(void **state) {
    (void)state;
    train_view_follow f;
    enter_scratch();
    mkdir("ru\x1b[2Jn", 0777);
    FILE *log = fopen("ru\x1b[2Jn/metrics.jsonl", "w");
    for (int i = 1; i <= 3000; i++)
        fprintf(log, "{\"step\":%d,\"loss\":%g,\"grad_norm\":null,\"a\x7f\xc2\x9b%d\":%g}\n", i,
                1e300 * (i % 7), i % 60, -1e-300 * i);
    fclose(log);
    assert_int_equal(train_view_follow_open(&f, "ru\x1b[2Jn", NULL), SIFR_OK);
    static const int sizes[] = {20, 21, 29, 40, 71, 72, 80, 149, 150, 200, 500};
    assert_fits(&f, 80, 24);
    look(&f);
    assert_int_equal(f.run.event_count + (size_t)f.run.events_left_out, 3000);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int rows = 4; rows < 60; rows += 3) assert_fits(&f, sizes[i], rows);
    train_view_follow_close(&f);
}

/* A number that is cut would be another one. */
static void narrow_screens_have_whole_numbers(void **state) {
    (void)state;
    train_view_follow f;
    char *text;
    enter_scratch();
    mkdir("run", 0777);
    put_file("run/metrics.jsonl", "w",
             "{\"step\":1,\"loss\":2}\n[]\n{\"step\":123456789012,\"loss\":-1.25e+300,"
             "\"grad_norm\":-1.23457e+298}\n");
    put_file("run/summary.json", "w", "{\"state\":\"running\",\"total_steps\":234567890123}");
    assert_int_equal(train_view_follow_open(&f, "run", NULL), SIFR_OK);
    look(&f);
    const train_screen screen = {.columns = 20, .rows = 40, .utf8 = true};
    assert_int_equal(train_screen_draw(&screen, &f, &text, NULL), SIFR_OK);
    if (strncmp(text, "step 123456789012\nloss -1.25e+300\n", 34) != 0) fail_msg("%s", text);
    assert_non_null(strstr(text, "\nLoss -1.25e+300 "));
    assert_non_null(strstr(text, "\nNorm  -1.23457e+298"));
    free(text);
    char figures[512];
    train_screen_figures(&f, 0, figures, sizeof figures);
    assert_string_equal(figures, "loss -1.25e+300  lowest -1.25e+300 at 123456789012  norm "
                                 "-1.23e+298  1 line unreadable");
    train_view_follow_close(&f);
}

/* A log beside another run's config has no share of that. */
static void steps_beyond_the_total_have_no_share(void **state) {
    (void)state;
    train_view_follow f;
    char head[512];
    enter_scratch();
    mkdir("run", 0777);
    put_file("run/metrics.jsonl", "w", "{\"step\":1,\"loss\":2}\n{\"step\":100000,\"loss\":2}\n");
    put_file("run/summary.json", "w", "{\"state\":\"running\",\"total_steps\":3}");
    assert_int_equal(train_view_follow_open(&f, "run", NULL), SIFR_OK);
    look(&f);
    train_screen_head(&f, true, 0, head, sizeof head);
    assert_non_null(strstr(head, "step 100000"));
    assert_null(strstr(head, "step 100000/3"));
    assert_null(strstr(head, "%"));
    train_view_follow_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(curves),
                                       cmocka_unit_test(logs_that_change),
                                       cmocka_unit_test(states_and_time_left),
                                       cmocka_unit_test(old_and_undefined),
                                       cmocka_unit_test(screens_keep_their_size),
                                       cmocka_unit_test(narrow_screens_have_whole_numbers),
                                       cmocka_unit_test(steps_beyond_the_total_have_no_share)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
