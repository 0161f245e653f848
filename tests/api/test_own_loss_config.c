/* sifr_config_set_loss: a loop and a whole run by a loss of the program's have the same bits, and
 * take what their plan says; what a config with one refuses, and what a config
 * without one does. timeout: 120 */
#include <jansson.h>

#include "base/file.h"
#include "sifr/data.h"
#include "sifr/loop.h"
#include "sifr/plan.h"
#include "sifr/run.h"
#include "support/own_losses.h"
#include "support/scratch.h"

enum { STEPS = 4 };

static sifr_error error;
static sifr_context *context;
static own_loss own = {.kind = OWN_FOCAL};
static char said[4096];

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static sifr_config *make_config(const char *extra) {
    char text[512], model[512];
    sifr_config *config;
    snprintf(text, sizeof text,
             "{\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 2,"
             " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}},"
             " \"sifr\": {\"seq_length\": 16, \"threads\": 1, \"max_steps\": 4%s}}",
             extra);
    snprintf(model, sizeof model, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, strlen(text), "ds.json", &error));
    OK(sifr_config_set(config, "model", model, &error));
    OK(sifr_config_set(config, "data", scratch_path("text"), &error));
    return config;
}

static sifr_config *make_own(const char *extra) {
    sifr_config *config = make_config(extra);
    OK(sifr_config_set_loss(config, own_compute, &own, &error));
    return config;
}

static void expect_same_file(const char *a, const char *b) {
    base_map one, other;
    OK(base_map_file(scratch_path(a), &one, &error));
    OK(base_map_file(scratch_path(b), &other, &error));
    assert_int_equal(one.size, other.size);
    assert_memory_equal(one.data, other.data, one.size);
    base_unmap(&one);
    base_unmap(&other);
}

static int64_t planned_bytes(sifr_config *config) {
    const sifr_plan_options options = {.size = sizeof options, .ranks = 1};
    sifr_plan_figures figures = {.size = sizeof figures};
    sifr_plan *plan;
    OK(sifr_plan_create(context, config, &options, &plan, &error));
    sifr_plan_get(plan, &figures);
    sifr_plan_free(plan);
    return figures.bytes;
}

static void train_by_loop(const sifr_config *config, int64_t planned) {
    sifr_loop *loop;
    sifr_data *data;
    OK(sifr_loop_open(context, config, NULL, &loop, &error));
    OK(sifr_data_open(context, config, NULL, &data, &error));
    sifr_engine *engine = sifr_loop_engine(loop);
    assert_int_equal(sifr_engine_planned_bytes(engine), planned);
    for (int64_t step = 0; step < STEPS; step++) {
        sifr_batch batch;
        sifr_step_result result;
        OK(sifr_data_step(data, engine, step, &batch, &error));
        OK(sifr_loop_step(loop, &batch, &result, &error));
        assert_true(result.updated);
    }
    OK(sifr_loop_save_model(loop, scratch_path("by_loop"), &error));
    sifr_data_close(data);
    sifr_loop_close(loop);
}

/* The same bits, of a plan's size, with chunks of one size; other chunks make other sums. */
static void as_planned(void **state) {
    sifr_config *config = make_own(", \"own_loss\": {\"memory\": \"64KiB\"}");
    sifr_train_outcome outcome = {.size = sizeof outcome};
    int64_t planned = planned_bytes(config);
    (void)state;
    own.calls = own.rows = own.most_rows = 0;
    train_by_loop(config, planned);
    assert_int_equal(own.rows, STEPS * 4 * 16);
    OK(sifr_config_set(config, "output", scratch_path("run"), &error));
    OK(sifr_train(context, config, NULL, NULL, &outcome, &error));
    assert_int_equal(outcome.planned_bytes, planned);
    assert_int_equal(own.rows, 2 * STEPS * 4 * 16);
    assert_false(outcome.has_perplexity);
    expect_same_file("by_loop/model.safetensors", "run/model.safetensors");
    assert_non_null(strstr(said, "a run has the same bits again while it is a function of what"));
    /* The plan needs no function. */
    OK(sifr_config_set_loss(config, NULL, NULL, &error));
    assert_int_equal(planned_bytes(config), planned);
    sifr_config_free(config);
}

/* What the run wrote of its config does not train without the function. */
static void is_in_the_effective_config(void **state) {
    sifr_config *config = make_own(""), *again;
    sifr_loop *loop;
    char *value, *text;
    (void)state;
    OK(sifr_config_resolve(config, 1, &error));
    OK(sifr_config_value(config, "own-loss-memory", &value, &error));
    assert_string_equal(value, "67108864");
    sifr_text_free(value);
    OK(sifr_config_json(config, &text, &error));
    OK(sifr_config_create(&again, &error));
    OK(sifr_config_parse(again, text, strlen(text), "effective", &error));
    sifr_text_free(text);
    assert_int_equal(sifr_loop_open(context, again, NULL, &loop, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "sifr.own_loss.memory: the loss is a function of a "
                                          "program's, and none was given"));
    sifr_config_free(again);
    sifr_config_free(config);
}

static void expect_refused(sifr_config *config, const char *message) {
    sifr_loop *loop;
    assert_int_equal(sifr_loop_open(context, config, NULL, &loop, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("\"%s\" lacks \"%s\"", error.message, message);
    sifr_config_free(config);
}

static void is_refused(void **state) {
    char bert[512];
    (void)state;
    expect_refused(make_own(", \"preference\": {\"loss_type\": \"sigmoid\"}"),
                   "preference and own_loss are both given; give one of them");
    expect_refused(make_own(", \"distill\": {\"scores\": \"top\"}"),
                   "distill and own_loss are both given; give one of them");
    expect_refused(make_own(", \"task\": \"sequence_classification\", \"labels\": [\"a\", \"b\"]"),
                   "\"own_loss\" is for causal_lm, not for sequence_classification; leave it out");
    sifr_config *config = make_own("");
    snprintf(bert, sizeof bert, "%s/tests/golden/encoders/models/bert", getenv("SOURCE"));
    OK(sifr_config_set(config, "model", bert, &error));
    expect_refused(config, "\"own_loss\" is for causal_lm, not for masked_lm; leave it out");
    expect_refused(make_own(", \"own_loss\": {\"memory\": 100}"),
                   "own_loss: memory 100 holds no row of logits and gradient");
    assert_int_equal(sifr_config_set_loss(NULL, own_compute, NULL, &error), SIFR_USAGE);
}

/* A loss that fails ends a run, with its reason; the model is not written. */
static void a_run_ends(void **state) {
    sifr_config *config = make_own("");
    sifr_train_outcome outcome = {.size = sizeof outcome};
    (void)state;
    OK(sifr_config_set(config, "output", scratch_path("ended"), &error));
    own.fails_at = own.calls + 5, own.with = SIFR_FAILED;
    assert_int_equal(sifr_train(context, config, NULL, NULL, &outcome, &error), SIFR_FAILED);
    assert_string_equal(error.message, "own_loss: too hot");
    assert_false(base_is_file(scratch_path("ended/model.safetensors")));
    sifr_config_free(config);
}

static void note_line(void *user, sifr_log_level level, const char *line) {
    (void)level;
    size_t used = strlen(user);
    snprintf((char *)user + used, sizeof said - used, "%s\n", line);
}

static int begin(void **state) {
    const sifr_log log = {note_line, said};
    FILE *file;
    if (scratch_setup(state)) return -1;
    const sifr_context_options options = {.size = sizeof options, .log = log};
    OK(sifr_context_create(&options, &context, &error));
    file = fopen(scratch_path("text"), "w");
    for (int i = 0; file && i < 200; i++) fprintf(file, "line %d of %d: %d\n", i, 200, i * i % 97);
    return file ? fclose(file) : -1;
}

static int end(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_planned),
                                       cmocka_unit_test(is_in_the_effective_config),
                                       cmocka_unit_test(is_refused), cmocka_unit_test(a_run_ends)};
    return cmocka_run_group_tests(tests, begin, end);
}
