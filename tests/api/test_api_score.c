/* Scores and evaluations through sifr/score.h and sifr/evaluate.h: both say the same of a text; a
 * caller's refusal leaves no file; what is out of range is refused by name. */
#include "support/scratch.h"

#include <math.h>

#include "sifr/sifr.h"

enum { LENGTH = 16, TOP = 3 };

static sifr_context *context;

typedef struct taken {
    int64_t tokens, last_row, most; /* most: a token behind these is refused; 0: all are taken */
    double sum;
} taken;

static int replaced; /* lines of the log that say so */

static void hear(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    replaced += strstr(line, "scores: the file that is there is replaced") != NULL;
}

static int setup(void **state) {
    const sifr_context_options given = {.size = sizeof given, .log.write = hear};
    char text[1200] = "";
    while (strlen(text) < 1100) strcat(text, "the sea is wide, a key is small; ");
    return scratch_setup(state) || sifr_context_create(&given, &context, NULL) != SIFR_OK ||
           !scratch_text("text", text);
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

static const char *model(void) {
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    return path;
}

static sifr_config *make_config(void) {
    sifr_config *config;
    assert_int_equal(sifr_config_create(&config, NULL), SIFR_OK);
    assert_int_equal(sifr_config_set(config, "data", scratch_path("text"), NULL), SIFR_OK);
    assert_int_equal(sifr_config_set(config, "seq-length", "16", NULL), SIFR_OK);
    return config;
}

static sifr_score_options score_options(const sifr_config *config, const char *output) {
    return (sifr_score_options){.size = sizeof(sifr_score_options),
                                .model = model(),
                                .precision = "fp32",
                                .device = "cpu",
                                .threads = 1,
                                .config = config,
                                .output = output};
}

static sifr_status take(void *user, const sifr_token_score *score, sifr_error *error) {
    taken *t = user;
    assert_non_null(error);
    if (t->most && t->tokens == t->most) return SIFR_FAILED;
    assert_true(score->logprob <= 0);
    assert_true(score->row >= t->last_row && score->row <= t->last_row + 1);
    assert_int_equal(score->top_count, TOP);
    for (int k = 0; k < TOP; k++) {
        assert_true(score->top_ids[k] >= 0);
        if (k) assert_true(score->top_logprobs[k] <= score->top_logprobs[k - 1]);
    }
    assert_true(score->logprob <= score->top_logprobs[0] + 1e-5F);
    t->last_row = score->row;
    t->tokens++;
    t->sum += score->logprob;
    return SIFR_OK;
}

static void count(void *user, int64_t rows, int64_t total) {
    assert_true(rows <= total);
    ++*(int64_t *)user;
}

static void note(void *user, int64_t windows, int64_t total, double loss) {
    assert_true(windows <= total && isfinite(loss));
    ++*(int64_t *)user;
}

/* The mean loss of windows is that of their scores. */
static void test_same(void **state) {
    (void)state;
    const char *path = scratch_path("text");
    sifr_config *config = make_config();
    sifr_score_options options = score_options(config, scratch_path("scores"));
    sifr_scored scored = {.size = sizeof scored};
    sifr_evaluated result = {.size = sizeof result};
    taken t = {0};
    int64_t batches = 0;
    sifr_error error = {0};
    options.top_k = TOP;
    options.token = take;
    options.user = &t;
    if (sifr_score(context, &options, &scored, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(scored.tokens, t.tokens);
    assert_int_equal(scored.rows, t.last_row + 1);
    assert_true(scored.rows > 10);
    assert_string_equal(scored.ran_in, "fp32");
    assert_int_equal(replaced, 0);
    options.token = NULL;
    if (sifr_score(context, &options, NULL, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(replaced, 1); /* the log says it */
    assert_true(base_is_file(options.output));
    sifr_evaluate_options evaluate = {.size = sizeof evaluate,
                                      .model = model(),
                                      .precision = "fp32",
                                      .threads = 1,
                                      .paths = &path,
                                      .path_count = 1,
                                      .seq_length = LENGTH,
                                      .batch_size = 4,
                                      .report = true,
                                      .user = &batches,
                                      .progress = note};
    if (sifr_evaluate(context, &evaluate, &result, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(result.windows, scored.rows);
    assert_int_equal(result.tokens, scored.tokens);
    assert_int_equal(batches, (result.windows + 3) / 4);
    assert_true(fabs(result.loss + t.sum / (double)t.tokens) < 1e-5);
    assert_true(result.has_perplexity);
    assert_int_equal(result.score_count, 0);
    assert_string_equal(result.precision, "fp32");
    assert_string_equal(result.device, "cpu");
    assert_non_null(strstr(result.report, "\"device\": "));
    sifr_text_free(result.report);
    sifr_config_free(config);
}

/* A config serves several calls, and a refusal of the caller leaves no file. */
static void test_ended_by_caller(void **state) {
    (void)state;
    sifr_config *config = make_config();
    sifr_score_options options = score_options(config, scratch_path("never"));
    taken t = {.most = 20};
    int64_t batches = 0;
    sifr_error error = {0};
    options.top_k = TOP;
    options.token = take;
    options.user = &t;
    options.batch_size = 8;
    assert_int_equal(sifr_score(context, &options, NULL, &error), SIFR_FAILED);
    assert_string_equal(error.message, "a callback of the program ended it");
    assert_false(base_is_file(options.output));
    options = score_options(config, scratch_path("plain"));
    options.user = &batches;
    options.progress = count;
    assert_int_equal(sifr_score(context, &options, NULL, &error), SIFR_OK);
    assert_true(batches > 0 && base_is_file(options.output));
    sifr_config_free(config);
}

static void refuse_score(sifr_score_options options, const char *message) {
    sifr_error error = {0};
    assert_int_equal(sifr_score(context, &options, NULL, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
}

static void test_refused(void **state) {
    (void)state;
    const double zero = 0;
    const char *path = scratch_path("text");
    sifr_config *config = make_config(), *empty;
    sifr_score_options options = score_options(config, scratch_path("never"));
    sifr_evaluated result = {.size = sizeof result};
    sifr_error error = {0};
    options.temperature = &zero;
    refuse_score(options, "--temperature 0: it must be above 0");
    options = score_options(config, scratch_path("never"));
    options.top_k = 1 << 20;
    refuse_score(options, "--top-k 1048576: the model has");
    options.top_k = -1;
    refuse_score(options, "--top-k -1");
    assert_int_equal(sifr_config_create(&empty, NULL), SIFR_OK);
    refuse_score(score_options(empty, scratch_path("never")), "--data PATH is needed");
    refuse_score(score_options(config, NULL), "--output: ");
    sifr_config_free(empty);
    sifr_config_free(config);

    sifr_evaluate_options evaluate = {
        .size = sizeof evaluate, .model = model(), .paths = &path, .path_count = 1};
    assert_int_equal(sifr_evaluate(context, &evaluate, &result, &error), SIFR_USAGE);
    assert_string_equal(error.message, "--seq-length 0: a window needs at least one token");
    evaluate.seq_length = 100000;
    assert_int_not_equal(sifr_evaluate(context, &evaluate, &result, &error), SIFR_OK);
    evaluate.seq_length = LENGTH;
    evaluate.path_count = 0;
    assert_int_equal(sifr_evaluate(context, &evaluate, &result, &error), SIFR_USAGE);
    assert_string_equal(error.message, "--data: give a path");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same),
                                       cmocka_unit_test(test_ended_by_caller),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
