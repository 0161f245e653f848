/* sifr/run.h: a whole run with its callbacks, each of which may ask it to save and stop; the config
 * stays as it is; what is refused.
 * timeout: 120 */
#include <jansson.h>
#include <math.h>

#include "sifr/run.h"
#include "support/scratch.h"

static sifr_error error;
static sifr_context *context;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

/* What a run told. */
typedef struct seen {
    int lines, begins, polls, steps, evaluations, checkpoints, models;
    int64_t last_step, total_steps;
    double last_loss, eval_loss;
    char path[512];
    /* Which callback asks to stop, at its so manieth call, and with what. */
    enum { NOBODY, STEP, EVALUATION, SAVE, PROGRESS } asks;
    int at;
} seen;

static int answer(const seen *s, int who, int calls) {
    return (int)s->asks == who && calls == s->at ? 40 + who : 0;
}

static void on_line(void *user, const char *text) {
    seen *s = user;
    assert_null(strchr(text, '\n'));
    s->lines++;
}

static int on_progress(void *user, const sifr_train_progress *progress) {
    seen *s = user;
    assert_true(progress->size >= sizeof *progress);
    assert_true(progress->begins == (s->begins == 0)); /* first and once */
    s->begins += progress->begins;
    s->total_steps = progress->total_steps;
    return progress->begins ? 0 : answer(s, PROGRESS, ++s->polls);
}

static int on_step(void *user, const sifr_train_step *step) {
    seen *s = user;
    assert_int_equal(step->step, s->last_step + 1);
    assert_true(step->updated && step->loss > 0 && step->labelled > 0 && step->learning_rate > 0);
    s->last_step = step->step;
    s->last_loss = step->loss;
    return answer(s, STEP, ++s->steps);
}

static int on_evaluation(void *user, const sifr_train_evaluation *evaluation) {
    seen *s = user;
    assert_int_equal(evaluation->step, s->last_step);
    assert_true(evaluation->windows > 0 && evaluation->tokens > 0);
    s->eval_loss = evaluation->loss;
    return answer(s, EVALUATION, ++s->evaluations);
}

static int on_save(void *user, const sifr_train_save *save) {
    seen *s = user;
    assert_int_equal(save->step, s->last_step);
    snprintf(s->path, sizeof s->path, "%s", save->path);
    if (save->model)
        s->models++;
    else
        s->checkpoints++;
    return save->model ? 0 : answer(s, SAVE, s->checkpoints);
}

static sifr_config *make_config(const char *output) {
    static const char text[] = "{\"train_micro_batch_size_per_gpu\": 2,"
                               " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}}}";
    char model[512];
    sifr_config *config;
    snprintf(model, sizeof model, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    const char *const flags[][2] = {{"model", model},
                                    {"data", scratch_path("text")},
                                    {"eval-data", scratch_path("text")},
                                    {"max-eval-windows", "2"},
                                    {"output", output},
                                    {"max-steps", "6"},
                                    {"save-steps", "2"},
                                    {"eval-steps", "3"},
                                    {"seq-length", "16"},
                                    {"threads", "1"},
                                    {"logging-steps", "1"}};
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, sizeof text - 1, "ds.json", &error));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        OK(sifr_config_set(config, flags[i][0], flags[i][1], &error));
    return config;
}

static sifr_status train(const sifr_config *config, seen *s, sifr_train_outcome *outcome) {
    const sifr_train_options options = {.size = sizeof options,
                                        .user = s,
                                        .line = on_line,
                                        .progress = on_progress,
                                        .step = on_step,
                                        .evaluation = on_evaluation,
                                        .saved = on_save,
                                        .report = true};
    *outcome = (sifr_train_outcome){.size = sizeof *outcome};
    return sifr_train(context, config, NULL, &options, outcome, &error);
}

static void tells_of_all(void **state) {
    (void)state;
    seen s = {0};
    sifr_train_outcome outcome;
    sifr_config *config = make_config(scratch_path("whole"));
    OK(train(config, &s, &outcome));
    assert_true(s.begins == 1 && s.polls >= 6 && s.lines > 3);
    assert_true(s.steps == 6 && s.evaluations == 2 && s.checkpoints == 3 && s.models == 1);
    assert_string_equal(s.path, scratch_path("whole"));
    assert_true(outcome.steps == 6 && outcome.stopped == 0 && outcome.ranks == 1);
    assert_true(outcome.loss == s.last_loss && outcome.eval_loss == s.eval_loss);
    json_t *report = json_loads(outcome.report, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(report, "steps")), 6);
    assert_true(json_real_value(json_object_get(report, "loss")) == s.last_loss);
    json_decref(report);
    sifr_text_free(outcome.report);
    /* The same config once more: its output is in use, and so is refused; with a flag it resumes.
     */
    assert_int_equal(train(config, &s, &outcome), SIFR_USAGE);
    assert_non_null(strstr(error.message, "resume"));
    assert_true(isnan(outcome.loss) && !outcome.report);
    OK(sifr_config_set(config, "resume", NULL, &error));
    OK(sifr_config_set(config, "max-steps", "8", &error));
    s = (seen){.last_step = 6};
    OK(train(config, &s, &outcome));
    assert_true(s.steps == 2 && outcome.first_step == 6 && outcome.steps == 8);
    sifr_text_free(outcome.report);
    sifr_config_free(config);
}

static void each_may_stop_it(void **state) {
    (void)state;
    static const struct {
        int who, at;
        int64_t step;
    } cases[] = {{STEP, 3, 3}, {EVALUATION, 1, 3}, {SAVE, 1, 2}, {PROGRESS, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen s = {.asks = cases[i].who, .at = cases[i].at};
        sifr_train_outcome outcome;
        sifr_config *config = make_config(scratch_fresh("stopped"));
        char want[64];
        OK(train(config, &s, &outcome));
        assert_int_equal(outcome.stopped, 40 + cases[i].who);
        assert_int_equal(outcome.steps, cases[i].step);
        assert_int_equal(s.models, 0);
        snprintf(want, sizeof want, "/checkpoint-%d", (int)cases[i].step);
        assert_non_null(strstr(s.path, want));
        sifr_text_free(outcome.report);
        sifr_config_free(config);
    }
}

/* At the last step the output becomes a file, so that nothing can be saved in it. */
static int spoil(void *user, const sifr_train_step *step) {
    (void)user;
    if (step->step < step->total_steps) return 0;
    assert_int_equal(rename(scratch_path("spoilt"), scratch_path("before")), 0);
    scratch_text("spoilt", "");
    return 0;
}

/* What was done is told, also where it could not be saved. */
static void failed_save(void **state) {
    (void)state;
    const sifr_train_options options = {.size = sizeof options, .step = spoil};
    sifr_train_outcome outcome = {.size = sizeof outcome};
    sifr_config *config = make_config(scratch_path("spoilt"));
    assert_int_equal(sifr_train(context, config, NULL, &options, &outcome, &error), SIFR_FAILED);
    assert_true(outcome.steps == 6 && outcome.total_steps == 6 && outcome.tokens == 6 * 2 * 16);
    assert_true(outcome.loss > 0 && outcome.planned_bytes > 0 && outcome.step_seconds > 0);
    sifr_config_free(config);
}

static void refuses(void **state) {
    (void)state;
    seen s = {0};
    sifr_train_outcome outcome = {.size = 0};
    sifr_config *config = make_config(scratch_path("refused"));
    assert_int_equal(sifr_train(context, config, NULL, NULL, &outcome, &error), SIFR_USAGE);
    assert_message(&error, "sifr_train_outcome.size: 0 is no size");
    OK(sifr_config_set(config, "model", "nowhere", &error));
    assert_int_equal(train(config, &s, &outcome), SIFR_FAILED);
    assert_message(&error, "nowhere");
    assert_true(!s.begins && isnan(outcome.loss) && isnan(outcome.eval_loss));
    assert_int_equal(access(scratch_path("refused"), F_OK), -1); /* the output is untouched */
    sifr_config_free(config);
}

static int setup(void **state) {
    char text[4096];
    if (scratch_setup(state) != 0) return -1;
    for (size_t i = 0; i < sizeof text; i++) text[i] = "abc de fgh\n"[i % 11];
    scratch_write("text", text, sizeof text);
    return sifr_context_create(NULL, &context, &error) == SIFR_OK ? 0 : -1;
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tells_of_all),
                                       cmocka_unit_test(each_may_stop_it),
                                       cmocka_unit_test(failed_save), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
