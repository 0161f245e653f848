#include "support/scratch.h"

#include <math.h>

#include "train/metrics.h"

static json_t *record(int64_t step, double loss) {
    return json_pack("{s:I, s:o, s:I}", "step", (json_int_t)step, "loss",
                     train_metrics_number(loss), "skipped", (json_int_t)0);
}

static void assert_file(const char *name, const char *text) {
    char *data;
    size_t size;
    assert_int_equal(base_read_file(scratch_path(name), 1 << 20, &data, &size, NULL), SIFR_OK);
    assert_string_equal(data, text);
    free(data);
}

static void open_metrics(train_metrics *metrics, int64_t step) {
    assert_int_equal(train_metrics_open(metrics, scratch, step, false, NULL), SIFR_OK);
}

static const char head[] = "step,epoch,loss,grad_norm,learning_rate,tokens_per_second,tokens,"
                           "limit_share,memory_bytes,skipped,seconds,eval_loss,eval_perplexity,"
                           "loss_scale,eval_accuracy,eval_f1,eval_f1_macro,eval_f1_micro,"
                           "eval_matthews_correlation,eval_precision,eval_recall,eval_mse,"
                           "eval_pearson,eval_spearman\n";

static void records_reach_the_disk_at_once(void **state) {
    (void)state;
    train_metrics metrics;
    char csv[1024];
    open_metrics(&metrics, 0);
    assert_int_equal(train_metrics_add(&metrics, record(1, 2.5), NULL), SIFR_OK);
    assert_int_equal(train_metrics_add(&metrics, record(2, NAN), NULL), SIFR_OK);
    assert_int_equal(
        train_metrics_add(&metrics, json_pack("{s:i, s:f}", "step", 2, "eval_loss", 1.5), NULL),
        SIFR_OK);
    assert_file("metrics.jsonl", "{\"step\":1,\"loss\":2.5,\"skipped\":0}\n"
                                 "{\"step\":2,\"loss\":null,\"skipped\":0}\n"
                                 "{\"step\":2,\"eval_loss\":1.5}\n");
    snprintf(
        csv, sizeof csv,
        "%s1,,2.5,,,,,,,0,,,,,,,,,,,,,,\n2,,,,,,,,,0,,,,,,,,,,,,,,\n2,,,,,,,,,,,1.5,,,,,,,,,,,,\n",
        head);
    assert_file("metrics.csv", csv);
    train_metrics_close(&metrics);
}

/* A run that was killed after its last checkpoint wrote on, and its last line is torn. */
static void goes_on_from_a_step(void **state) {
    (void)state;
    train_metrics metrics;
    char csv[1024];
    scratch_text("metrics.jsonl", "{\"step\":1,\"loss\":5.0}\n{\"step\":2,\"loss\":4.0}\nno json\n"
                                  "[3]\n{\"loss\":1}\n{\"step\":3,\"loss\":3.0}\n{\"step\":2,\"lo");
    open_metrics(&metrics, 2);
    assert_int_equal(json_array_size(metrics.history), 2);
    assert_int_equal(train_metrics_add(&metrics, record(3, 3.5), NULL), SIFR_OK);
    train_metrics_close(&metrics);
    assert_file("metrics.jsonl", "{\"step\":1,\"loss\":5.0}\n{\"step\":2,\"loss\":4.0}\n"
                                 "{\"step\":3,\"loss\":3.5,\"skipped\":0}\n");
    snprintf(
        csv, sizeof csv,
        "%s1,,5,,,,,,,,,,,,,,,,,,,,,\n2,,4,,,,,,,,,,,,,,,,,,,,,\n3,,3.5,,,,,,,0,,,,,,,,,,,,,,\n",
        head);
    assert_file("metrics.csv", csv);

    open_metrics(&metrics, 0); /* anew */
    train_metrics_close(&metrics);
    assert_file("metrics.jsonl", "");
    assert_file("metrics.csv", head);
}

/* Only runs on preferences have the columns of rewards. */
static void has_rewards_of_preferences(void **state) {
    (void)state;
    train_metrics metrics;
    char csv[1024];
    assert_int_equal(train_metrics_open(&metrics, scratch, 0, true, NULL), SIFR_OK);
    assert_int_equal(train_metrics_add(&metrics,
                                       json_pack("{s:i, s:f, s:f}", "step", 1, "rewards/margins",
                                                 0.5, "eval_rewards/chosen", 0.25),
                                       NULL),
                     SIFR_OK);
    train_metrics_close(&metrics);
    snprintf(csv, sizeof csv,
             "%.*s,rewards/chosen,rewards/rejected,rewards/accuracies,rewards/margins,"
             "eval_rewards/chosen,eval_rewards/rejected,eval_rewards/accuracies,"
             "eval_rewards/margins\n1,,,,,,,,,,,,,,,,,,,,,,,,,,,0.5,0.25,,,\n",
             (int)strlen(head) - 1, head);
    assert_file("metrics.csv", csv);
}

static void cannot_write(void **state) {
    (void)state;
    train_metrics metrics;
    sifr_error error = {0};
    assert_int_equal(train_metrics_open(&metrics, scratch_path("nowhere"), 0, false, &error),
                     SIFR_FAILED);
    assert_message(&error, "metrics.jsonl: cannot write: No such file");
    open_metrics(&metrics, 0);
    fclose(metrics.jsonl);
    metrics.jsonl = fopen("/dev/full", "w");
    assert_int_equal(train_metrics_add(&metrics, record(1, 1), &error), SIFR_FAILED);
    assert_message(&error, "metrics.jsonl: cannot write: No space left");
    /* What is missing comes with the next record. */
    assert_true(metrics.behind);
    assert_int_equal(train_metrics_add(&metrics, record(2, 2), &error), SIFR_OK);
    assert_false(metrics.behind);
    char *text;
    size_t size;
    assert_int_equal(base_read_file(scratch_path("metrics.jsonl"), 1 << 16, &text, &size, &error),
                     SIFR_OK);
    assert_non_null(strstr(text, "{\"step\":1,"));
    assert_non_null(strstr(text, "\n{\"step\":2,"));
    free(text);
    train_metrics_close(&metrics);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_reach_the_disk_at_once), cmocka_unit_test(goes_on_from_a_step),
        cmocka_unit_test(has_rewards_of_preferences), cmocka_unit_test(cannot_write)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
