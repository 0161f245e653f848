#include "support/scratch.h"

#include <math.h>

#include "base/json.h"
#include "base/process.h"
#include "train/report/history.h"
#include "train/report/kept_lines.h"
#include "train/report/sink.h"

/* Both files of a run, and its history, as a monitor has them. */
typedef struct files {
    train_report_settings settings;
    void *jsonl, *csv;
    train_history history;
} files;

static sifr_status note(void *user, const json_t *record, sifr_error *error) {
    files *f = user;
    return train_history_add(&f->history, record, error);
}

static sifr_status open_files(files *f, const char *output, int64_t step,
                              const train_objective *objective, sifr_error *error) {
    *f = (files){.settings = {.output = output, .first_step = step, .objective = objective}};
    f->settings.earlier = note;
    f->settings.user = f;
    train_history_begin(&f->history);
    BASE_TRY(train_jsonl.open(&f->settings, &f->jsonl, error));
    return train_csv.open(&f->settings, &f->csv, error);
}

static void close_files(files *f) {
    train_jsonl.close(f->jsonl);
    train_csv.close(f->csv);
    train_history_free(&f->history);
}

/* Takes ownership of `json`. */
static sifr_status add(files *f, json_t *json, sifr_error *error) {
    train_record record = {.when = TRAIN_EACH_RECORD, .json = json};
    assert_int_equal(train_history_add(&f->history, json, error), SIFR_OK);
    sifr_status first = train_jsonl.record(f->jsonl, &record, error);
    sifr_status second = train_csv.record(f->csv, &record, first == SIFR_OK ? error : NULL);
    json_decref(json);
    return first != SIFR_OK ? first : second;
}

/* From now on the disk is full, until the file is opened again. */
static void fill_disk(void *sink) {
    train_lines *lines = sink;
    fclose(lines->file);
    lines->file = fopen("/dev/full", "w");
}

static json_t *record(int64_t step, double loss) {
    return json_pack("{s:I, s:o, s:I}", "step", (json_int_t)step, "loss", base_json_finite(loss),
                     "skipped", (json_int_t)0);
}

static void assert_file(const char *name, const char *text) {
    char *data;
    size_t size;
    assert_int_equal(base_read_file(scratch_path(name), 1 << 20, &data, &size, NULL), SIFR_OK);
    assert_string_equal(data, text);
    free(data);
}

static void open_metrics(files *metrics, int64_t step) {
    assert_int_equal(open_files(metrics, scratch, step, NULL, NULL), SIFR_OK);
}

static const char head[] = "step,epoch,loss,grad_norm,learning_rate,tokens_per_second,tokens,"
                           "limit_share,memory_bytes,skipped,seconds,eval_loss,eval_perplexity,"
                           "loss_scale,eval_accuracy,eval_f1,eval_f1_macro,eval_f1_micro,"
                           "eval_matthews_correlation,eval_precision,eval_recall,eval_mse,"
                           "eval_pearson,eval_spearman\n";

static void records_reach_the_disk_at_once(void **state) {
    (void)state;
    files metrics;
    char csv[1024];
    open_metrics(&metrics, 0);
    assert_int_equal(add(&metrics, record(1, 2.5), NULL), SIFR_OK);
    assert_int_equal(add(&metrics, record(2, NAN), NULL), SIFR_OK);
    assert_int_equal(add(&metrics, json_pack("{s:i, s:f}", "step", 2, "eval_loss", 1.5), NULL),
                     SIFR_OK);
    assert_file("metrics.jsonl", "{\"step\":1,\"loss\":2.5,\"skipped\":0}\n"
                                 "{\"step\":2,\"loss\":null,\"skipped\":0}\n"
                                 "{\"step\":2,\"eval_loss\":1.5}\n");
    snprintf(
        csv, sizeof csv,
        "%s1,,2.5,,,,,,,0,,,,,,,,,,,,,,\n2,,,,,,,,,0,,,,,,,,,,,,,,\n2,,,,,,,,,,,1.5,,,,,,,,,,,,\n",
        head);
    assert_file("metrics.csv", csv);
    close_files(&metrics);
}

/* A run that was killed after its last checkpoint wrote on, and its last line is torn. An editor
 * may have left its mark in front. */
static void goes_on_from_a_step(void **state) {
    (void)state;
    files metrics;
    char csv[1024];
    scratch_text("metrics.jsonl", "\xef\xbb\xbf"
                                  "{\"step\":1,\"loss\":5.0}\n{\"step\":2,\"loss\":4.0}\nno json\n"
                                  "[3]\n{\"loss\":1}\n{\"step\":3,\"loss\":3.0}\n{\"step\":2,\"lo");
    open_metrics(&metrics, 2);
    assert_int_equal(metrics.history.count, 2);
    assert_int_equal(add(&metrics, record(3, 3.5), NULL), SIFR_OK);
    close_files(&metrics);
    assert_file("metrics.jsonl", "{\"step\":1,\"loss\":5.0}\n{\"step\":2,\"loss\":4.0}\n"
                                 "{\"step\":3,\"loss\":3.5,\"skipped\":0}\n");
    snprintf(
        csv, sizeof csv,
        "%s1,,5,,,,,,,,,,,,,,,,,,,,,\n2,,4,,,,,,,,,,,,,,,,,,,,,\n3,,3.5,,,,,,,0,,,,,,,,,,,,,,\n",
        head);
    assert_file("metrics.csv", csv);

    open_metrics(&metrics, 0); /* anew */
    close_files(&metrics);
    assert_file("metrics.jsonl", "");
    assert_file("metrics.csv", head);
}

/* Only runs on preferences have the columns of rewards. */
static void has_rewards_of_preferences(void **state) {
    (void)state;
    files metrics;
    char csv[1024];
    assert_int_equal(open_files(&metrics, scratch, 0, &train_preference, NULL), SIFR_OK);
    assert_int_equal(add(&metrics,
                         json_pack("{s:i, s:f, s:f}", "step", 1, "rewards/margins", 0.5,
                                   "eval_rewards/chosen", 0.25),
                         NULL),
                     SIFR_OK);
    close_files(&metrics);
    snprintf(csv, sizeof csv,
             "%.*s,rewards/chosen,rewards/rejected,rewards/accuracies,rewards/margins,"
             "eval_rewards/chosen,eval_rewards/rejected,eval_rewards/accuracies,"
             "eval_rewards/margins\n1,,,,,,,,,,,,,,,,,,,,,,,,,,,0.5,0.25,,,\n",
             (int)strlen(head) - 1, head);
    assert_file("metrics.csv", csv);
}

static void cannot_write(void **state) {
    (void)state;
    files metrics;
    sifr_error error = {0};
    assert_int_equal(open_files(&metrics, scratch_path("nowhere"), 0, NULL, &error), SIFR_FAILED);
    assert_message(&error, "metrics.jsonl: cannot write: No such file");
    close_files(&metrics);
    open_metrics(&metrics, 0);
    fill_disk(metrics.jsonl);
    assert_int_equal(add(&metrics, record(1, 1), &error), SIFR_FAILED);
    assert_message(&error, "metrics.jsonl: cannot write: No space left");
    /* What is missing comes with the next record. */
    assert_true(((train_lines *)metrics.jsonl)->behind);
    assert_int_equal(add(&metrics, record(2, 2), &error), SIFR_OK);
    assert_false(((train_lines *)metrics.jsonl)->behind);
    char *text;
    size_t size;
    assert_int_equal(base_read_file(scratch_path("metrics.jsonl"), 1 << 16, &text, &size, &error),
                     SIFR_OK);
    assert_non_null(strstr(text, "{\"step\":1,"));
    assert_non_null(strstr(text, "\n{\"step\":2,"));
    free(text);
    close_files(&metrics);
}

/* A torn write is gone before what follows it: neither file has half a record. */
static void a_torn_record_goes(void **state) {
    (void)state;
    files metrics;
    sifr_error error = {0};
    open_metrics(&metrics, 0);
    assert_int_equal(add(&metrics, record(1, 1), &error), SIFR_OK);
    fill_disk(metrics.csv);
    assert_int_equal(add(&metrics, record(2, 2), &error), SIFR_FAILED);
    assert_int_equal(add(&metrics, record(3, 3), &error), SIFR_OK);
    close_files(&metrics);
    assert_file("metrics.jsonl", "{\"step\":1,\"loss\":1.0,\"skipped\":0}\n"
                                 "{\"step\":2,\"loss\":2.0,\"skipped\":0}\n"
                                 "{\"step\":3,\"loss\":3.0,\"skipped\":0}\n");
    char csv[1024];
    snprintf(csv, sizeof csv,
             "%s1,,1,,,,,,,0,,,,,,,,,,,,,,\n2,,2,,,,,,,0,,,,,,,,,,,,,,\n"
             "3,,3,,,,,,,0,,,,,,,,,,,,,,\n",
             head);
    assert_file("metrics.csv", csv);
}

/* What a run records in `steps` steps, with an evaluation after every thousand. */
static void add_steps(files *metrics, int64_t from, int64_t to) {
    for (int64_t step = from; step <= to; step++) {
        json_t *one =
            json_pack("{s:f, s:I, s:f, s:f, s:f, s:f, s:I}", "epoch", (double)step / 7, "step",
                      (json_int_t)step, "loss", 2.0, "grad_norm", 1.0, "learning_rate", 1e-4,
                      "tokens_per_second", 1e5, "memory_bytes", (json_int_t)1 << 30);
        assert_int_equal(add(metrics, one, NULL), SIFR_OK);
        if (step % 1000) continue;
        json_t *two = json_pack("{s:I, s:f}", "step", (json_int_t)step, "eval_loss", 1.5);
        assert_int_equal(add(metrics, two, NULL), SIFR_OK);
    }
}

static int64_t entry_step(train_history *history, size_t index, bool *evaluated) {
    json_t *entry = train_history_entry(history, index);
    int64_t step = json_integer_value(json_object_get(entry, "step"));
    *evaluated = json_object_get(entry, "eval_loss");
    json_decref(entry);
    return step;
}

static int64_t count_lines(const char *name) {
    FILE *file = fopen(scratch_path(name), "r");
    int64_t lines = 0;
    for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    return lines;
}

/* 2.9 KB a step once: a million steps would have taken 3 GB. The file has all of them. */
static void a_long_run_stays_small(void **state) {
    (void)state;
    files metrics;
    base_process before, after;
    open_metrics(&metrics, 0);
    add_steps(&metrics, 1, 100);
    assert_true(base_process_read(&before));
    add_steps(&metrics, 101, 20100);
    assert_true(base_process_read(&after));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (after.own > before.own + (1 << 20))
        fail_msg("%lld bytes in 20,000 steps", (long long)(after.own - before.own));
#endif
    add_steps(&metrics, 20101, 30000);
    train_history *h = &metrics.history;
    assert_true(h->count <= TRAIN_HISTORY_MOST);
    assert_true(h->count > TRAIN_HISTORY_MOST / 3);
    assert_true(h->capacity * sizeof(double) <= TRAIN_HISTORY_BYTES + (1 << 16));
    int64_t last = 0, evaluations = 0;
    for (size_t i = 0; i < h->count; i++) {
        bool evaluated;
        int64_t step = entry_step(h, i, &evaluated);
        assert_true(evaluated ? step == last || step % 1000 == 0 : step > last);
        evaluations += evaluated;
        last = step;
    }
    assert_int_equal(last, 30000);
    assert_int_equal(evaluations, 30);
    assert_int_equal(h->last_step, 30000);
    assert_int_equal(count_lines("metrics.jsonl"), 30030);
    close_files(&metrics);

    open_metrics(&metrics, 24000); /* goes on from there, with the files of all before it */
    assert_true(metrics.history.count <= TRAIN_HISTORY_MOST);
    assert_int_equal(metrics.history.last_step, 24000);
    assert_int_equal(count_lines("metrics.jsonl"), 24024);
    assert_int_equal(count_lines("metrics.csv"), 24025);
    close_files(&metrics);
}

/* trainer_state.json is written entry by entry, as though it were one value. */
static void is_written_by_pieces(void **state) {
    (void)state;
    files metrics;
    open_metrics(&metrics, 0);
    for (int n = 0; n < 2; n++) {
        if (n) add_steps(&metrics, 999, 1000);
        base_json_list list = {"log_history", metrics.history.count, train_history_entry,
                               &metrics.history};
        json_t *object = json_pack("{s:n, s:i}", "best_metric", "global_step", 7);
        assert_int_equal(base_json_save_with(object, &list, scratch_path("by-pieces"), NULL),
                         SIFR_OK);
        json_t *all = json_array();
        for (size_t i = 0; i < list.count; i++)
            json_array_append_new(all, train_history_entry(&metrics.history, i));
        json_object_set_new(object, "log_history", all);
        assert_int_equal(base_json_save(object, scratch_path("at-once"), NULL), SIFR_OK);
        json_decref(object);
        char *text;
        size_t size;
        assert_int_equal(base_read_file(scratch_path("at-once"), 1 << 16, &text, &size, NULL),
                         SIFR_OK);
        assert_file("by-pieces", text);
        free(text);
    }
    close_files(&metrics);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_reach_the_disk_at_once),
                                       cmocka_unit_test(goes_on_from_a_step),
                                       cmocka_unit_test(has_rewards_of_preferences),
                                       cmocka_unit_test(cannot_write),
                                       cmocka_unit_test(a_torn_record_goes),
                                       cmocka_unit_test(a_long_run_stays_small),
                                       cmocka_unit_test(is_written_by_pieces)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
