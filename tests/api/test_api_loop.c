/* sifr/loop.h, data.h and checkpoint.h: a loop of one's own over the data of a config has the bits
 * of the run, also across a checkpoint; what is read and what is refused.
 * timeout: 120 */
#include <jansson.h>
#include <math.h>

#include "sifr/checkpoint.h"
#include "sifr/data.h"
#include "sifr/loop.h"
#include "sifr/run.h"
#include "support/scratch.h"

enum { STEPS = 6, LENGTH = 16 };

static sifr_error error;
static sifr_context *context;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

/* Without max_steps: epochs count. */
static sifr_config *make_config_for(const char *data, const char *extra) {
    char text[512], model[512];
    sifr_config *config;
    snprintf(text, sizeof text,
             "{\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 2,"
             " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}},"
             " \"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\": {\"total_num_steps\": "
             "\"auto\", \"warmup_num_steps\": 2}},"
             " \"sifr\": {\"seq_length\": 16, \"threads\": 1%s}}",
             extra);
    snprintf(model, sizeof model, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, strlen(text), "ds.json", &error));
    OK(sifr_config_set(config, "model", model, &error));
    OK(sifr_config_set(config, "data", scratch_path(data), &error));
    return config;
}

static sifr_config *make_config(const char *extra) {
    return make_config_for("text", extra);
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

/* Steps up to `last`; a checkpoint at its end. */
static void go_on(sifr_loop *loop, sifr_data *data, int64_t last) {
    sifr_engine *engine = sifr_loop_engine(loop);
    const sifr_checkpoint_options options = {.size = sizeof options,
                                             .loop = loop,
                                             .state = "{\"mine\": [1, 2]}",
                                             .facts = "{\"rows\": 7}"};
    while (sifr_engine_steps(engine) < last) {
        sifr_batch batch;
        sifr_step_result result;
        OK(sifr_data_step(data, engine, sifr_engine_steps(engine), &batch, &error));
        OK(sifr_loop_step(loop, &batch, &result, &error));
        assert_true(result.updated && result.micro_batches == 2);
    }
    OK(sifr_checkpoint_save(context, engine, scratch_path("own"), &options, &error));
}

static int stop(void *user) {
    return ++*(int *)user == 2 ? 5 : 0;
}

/* As the run's at its end; and one that is stopped. */
static void evaluate(const sifr_config *config, sifr_engine *engine, double want) {
    const sifr_data_options options = {.size = sizeof options, .evaluation = true};
    sifr_data_evaluation found = {.size = sizeof found};
    sifr_data *held;
    int asked = 0;
    OK(sifr_data_open(context, config, &options, &held, &error));
    OK(sifr_data_evaluate(held, engine, 0, NULL, NULL, &found, &error));
    assert_true(found.loss == want && found.stopped == 0 && found.score_count == 0);
    assert_int_equal(found.tokens, found.windows * LENGTH);
    OK(sifr_data_evaluate(held, engine, 3, NULL, NULL, &found, &error));
    assert_int_equal(found.windows, 3);
    assert_int_equal(sifr_data_evaluate(held, engine, -5, NULL, NULL, &found, &error), SIFR_USAGE);
    assert_message(&error, "sifr_data_evaluate: -5 windows; give 0 for all");
    OK(sifr_data_evaluate(held, engine, 0, stop, &asked, &found, &error));
    assert_int_equal(found.stopped, 5);
    sifr_data_close(held);
}

static void same_bits_as_the_run(void **state) {
    (void)state;
    sifr_config *config = make_config(", \"max_steps\": 6, \"save_steps\": 3");
    sifr_train_outcome outcome = {.size = sizeof outcome};
    OK(sifr_config_set(config, "eval-data", scratch_path("text"), &error));
    sifr_config *run;
    OK(sifr_config_copy(config, &run, &error));
    OK(sifr_config_set(run, "output", scratch_path("run"), &error));
    OK(sifr_train(context, run, NULL, NULL, &outcome, &error));
    sifr_config_free(run);
    for (int64_t last = 3; last <= STEPS; last += 3) { /* the second one goes on */
        sifr_loop *loop;
        sifr_data *data;
        char *mine = NULL;
        const sifr_checkpoint_options options = {.size = sizeof options, .facts = "{\"rows\": 7}"};
        sifr_checkpoint_options with = options;
        OK(sifr_loop_open(context, config, NULL, &loop, &error));
        OK(sifr_data_open(context, config, NULL, &data, &error));
        with.loop = loop;
        OK(sifr_checkpoint_load(context, sifr_loop_engine(loop), scratch_path("own"), &with, &mine,
                                &error));
        assert_true((mine != NULL) == (last > 3));
        if (mine) assert_string_equal(mine, "{\"mine\":[1,2]}");
        sifr_text_free(mine);
        go_on(loop, data, last);
        sifr_data_close(data);
        if (last == STEPS) evaluate(config, sifr_loop_engine(loop), outcome.eval_loss);
        if (last == STEPS) OK(sifr_loop_save_model(loop, scratch_path("own/model"), &error));
        if (last == STEPS)
            assert_int_equal(sifr_loop_save_model(loop, scratch_path("own/model"), &error),
                             SIFR_USAGE);
        sifr_loop_close(loop);
    }
    assert_message(&error, "is not empty");
    expect_same_file("run/model.safetensors", "own/model/model.safetensors");
    expect_same_file("run/checkpoint-6/state-00001-of-00001.safetensors",
                     "own/checkpoint-6/state-00001-of-00001.safetensors");
    expect_same_file("run/config.json", "own/model/config.json");
    sifr_config_free(config);
}

/* After the test above, of what it left. */
static void checkpoints_are_read(void **state) {
    (void)state;
    int64_t steps[2];
    size_t count;
    char *text;
    OK(sifr_checkpoint_list(scratch_path("own"), steps, 1, &count, &error));
    assert_true(count == 2 && steps[0] == 6);
    OK(sifr_checkpoint_inspect(scratch_path("own"), true, &text, &error));
    json_t *json = json_loads(text, 0, NULL);
    sifr_text_free(text);
    assert_int_equal(json_integer_value(json_object_get(json, "step")), 6);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "facts"), "rows")),
                     7);
    assert_true(json_array_size(json_object_get(json, "files")) == 1);
    json_decref(json);
    OK(sifr_checkpoint_inspect(scratch_path("own/checkpoint-3"), false, &text, &error));
    sifr_text_free(text);
    /* A file that was changed is found by its checksum alone. */
    FILE *file = fopen(scratch_path("own/checkpoint-3/state-00001-of-00001.safetensors"), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -8, SEEK_END), 0);
    assert_int_equal(fputc(1, file) + fputc(2, file), 3);
    assert_int_equal(fclose(file), 0);
    OK(sifr_checkpoint_inspect(scratch_path("own/checkpoint-3"), false, &text, &error));
    sifr_text_free(text);
    assert_int_equal(sifr_checkpoint_inspect(scratch_path("own/checkpoint-3"), true, &text, &error),
                     SIFR_FAILED);
    assert_message(&error, "state-00001-of-00001.safetensors");
    assert_int_equal(sifr_checkpoint_inspect(scratch, true, &text, &error), SIFR_FAILED);
    assert_message(&error, "is no checkpoint, nor a folder with any");
}

static void checkpoints_of_an_own_engine(void **state) {
    (void)state;
    sifr_model *model;
    sifr_engine *engine;
    sifr_settings settings = sifr_settings_defaults();
    const char *output = scratch_path("plain");
    char *mine;
    OK(sifr_model_create(&model, &error));
    sifr_unit(model, "all");
    sifr_weight table = sifr_weight_matrix(model, "table", 64, 16, SIFR_INIT_NORMAL, 0.1);
    sifr_value x =
        sifr_embedding(model, (sifr_embedding_args){.ids = sifr_tokens(model), .table = table});
    sifr_head_loss(model, (sifr_head_args){.x = x, .weight = table});
    OK(sifr_model_finish(model, &error));
    settings.seq_length = LENGTH;
    OK(sifr_engine_create(model, &settings, &engine, &error));
    OK(sifr_engine_initialise(engine, 3, &error));
    OK(sifr_checkpoint_load(context, engine, output, NULL, &mine, &error));
    assert_null(mine);
    OK(sifr_checkpoint_save(context, engine, output, NULL, &error));
    OK(sifr_checkpoint_load(context, engine, output, NULL, &mine, &error));
    assert_string_equal(mine, "{}");
    sifr_text_free(mine);
    sifr_checkpoint_options options = {.size = sizeof options, .facts = "{\"rows\": 8}"};
    assert_int_equal(sifr_checkpoint_load(context, engine, output, &options, &mine, &error),
                     SIFR_USAGE);
    assert_message(&error, "saved with rows nothing, but sifr_checkpoint_options.facts has 8; give "
                           "the facts that it was saved with, which sifr_checkpoint_inspect shows");
    assert_null(mine);
    options.keep = -1;
    assert_int_equal(sifr_checkpoint_save(context, engine, output, &options, &error), SIFR_USAGE);
    assert_message(&error, "sifr_checkpoint_options.keep: -1; give 0 to keep all");
    options.keep = 0;
    options.facts = NULL;
    options.state = "[1]";
    assert_int_equal(sifr_checkpoint_save(context, engine, output, &options, &error), SIFR_USAGE);
    assert_message(&error, "sifr_checkpoint_options.state: is no JSON object");
    sifr_engine_free(engine);
    sifr_model_free(model);
}

/* Without data in the config the rows are the caller's: two documents are as two sequences. */
static void packed_rows_of_the_caller(void **state) {
    (void)state;
    static const char text[] = "{\"train_micro_batch_size_per_gpu\": 1,"
                               " \"sifr\": {\"seq_length\": 8, \"threads\": 1, \"packing\": true}}";
    static const int32_t tokens[] = {5, 6, 7, 8, 5, 6, 7, 8}, segments[] = {0, 0, 0, 0, 1, 1, 1, 1},
                         positions[] = {0, 1, 2, 3, 0, 1, 2, 3},
                         labels[] = {6, 7, 8, -100, 6, 7, 8, -100},
                         first[] = {6, 7, 8, -100, -100, -100, -100, -100};
    char model[512];
    sifr_config *config;
    sifr_loop *loop;
    double both, one;
    int64_t count;
    snprintf(model, sizeof model, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, sizeof text - 1, "ds.json", &error));
    OK(sifr_config_set(config, "model", model, &error));
    OK(sifr_loop_open(context, config, NULL, &loop, &error));
    sifr_batch batch = {
        .tokens = tokens, .labels = labels, .segments = segments, .positions = positions};
    OK(sifr_engine_evaluate(sifr_loop_engine(loop), &batch, &both, &count, &error));
    batch.labels = first;
    OK(sifr_engine_evaluate(sifr_loop_engine(loop), &batch, &one, &count, &error));
    assert_true(fabs(both - 2 * one) < 1e-5 * both);
    sifr_loop_close(loop);
    sifr_config_free(config);
}

static void data_are_read(void **state) {
    (void)state;
    sifr_config *config = make_config(", \"num_train_epochs\": 2");
    sifr_data_figures figures = {.size = sizeof figures};
    sifr_data_options options = {.size = sizeof options, .cache = scratch_path("cache")};
    sifr_data *data, *held;
    sifr_loop *loop;
    sifr_batch batch;
    double rate;
    const int64_t two[] = {1, 0};
    OK(sifr_data_open(context, config, &options, &data, &error));
    sifr_data_get(data, &figures);
    assert_true(figures.seq_length == LENGTH && figures.batch_size == 4 && figures.tokens > 1000);
    assert_int_equal(figures.total_steps, 2 * figures.windows / 4);
    OK(sifr_data_read(data, two, 2, &batch, &error));
    for (int i = 0; i + 1 < LENGTH; i++) assert_int_equal(batch.labels[i], batch.tokens[i + 1]);
    assert_int_equal(batch.labels[2 * LENGTH - 1], batch.tokens[0]); /* windows follow each other */
    const int64_t none[] = {figures.windows};
    assert_int_equal(sifr_data_read(data, none, 1, &batch, &error), SIFR_USAGE);
    assert_message(&error, "there is no sequence");
    assert_int_equal(sifr_data_read(data, two, 0, &batch, &error), SIFR_USAGE);
    options.evaluation = true;
    assert_int_equal(sifr_data_open(context, config, &options, &held, &error), SIFR_USAGE);
    assert_message(&error, "nothing is held out");
    /* A schedule by epochs needs their number of steps, once. */
    OK(sifr_loop_open(context, config, NULL, &loop, &error));
    assert_int_equal(sifr_loop_rate(loop, &rate, &error), SIFR_USAGE);
    assert_message(&error, "sifr_loop_set_steps");
    OK(sifr_loop_set_steps(loop, figures.total_steps, &error));
    OK(sifr_loop_rate(loop, &rate, &error));
    assert_int_equal(sifr_loop_set_steps(loop, figures.total_steps + 1, &error), SIFR_USAGE);
    OK(sifr_config_set(config, "eval-data", scratch_path("text"), &error));
    OK(sifr_data_open(context, config, &options, &held, &error));
    assert_int_equal(sifr_data_step(held, sifr_loop_engine(loop), 0, &batch, &error), SIFR_USAGE);
    assert_message(&error, "data to evaluate on");
    OK(sifr_data_read(held, two, 2, &batch, &error));
    double sum;
    int64_t labelled;
    OK(sifr_engine_evaluate(sifr_loop_engine(loop), &batch, &sum, &labelled, &error));
    assert_true(labelled == 2 * LENGTH && sum > 0);
    sifr_data_close(held);
    options = (sifr_data_options){.size = sizeof options, .ranks = 2};
    OK(sifr_data_open(context, config, &options, &held, &error)); /* the batch is the same */
    OK(sifr_data_step(held, sifr_loop_engine(loop), 0, &batch, &error));
    sifr_data_close(held);
    OK(sifr_config_set(config, "train_batch_size", "8", &error));
    OK(sifr_data_open(context, config, NULL, &held, &error));
    assert_int_equal(sifr_data_step(held, sifr_loop_engine(loop), 0, &batch, &error), SIFR_USAGE);
    assert_message(&error, "give both the same config");
    sifr_data_close(held);
    sifr_loop_close(loop);
    sifr_data_close(data);
    sifr_data_close(NULL);
    sifr_config_free(config);
}

/* A reference that the run makes itself, from the model before its first step. */
static void preferences_have_the_bits_of_the_run(void **state) {
    (void)state;
    static const char text[] = "{\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 2,"
                               " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}}}";
    char model[512], pairs[512];
    snprintf(model, sizeof model, "%s/tests/golden/preference/model", getenv("SOURCE"));
    snprintf(pairs, sizeof pairs, "%s/tests/golden/preference/pairs.jsonl", getenv("SOURCE"));
    const char *const flags[][2] = {
        {"model", model},   {"data", pairs},           {"seq-length", "48"}, {"threads", "1"},
        {"max-steps", "3"}, {"preference", "sigmoid"}, {"eval-data", pairs}};
    sifr_config *config, *labels;
    sifr_loop *loop;
    sifr_data *data;
    sifr_train_outcome outcome = {.size = sizeof outcome};
    sifr_data_options options = {.size = sizeof options};
    sifr_data_evaluation found = {.size = sizeof found}, plain = found;
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, sizeof text - 1, "ds.json", &error));
    OK(sifr_config_copy(config, &labels, &error));
    OK(sifr_config_set(labels, "model", model, &error));
    OK(sifr_config_set(labels, "seq-length", "48", &error));
    OK(sifr_config_set(labels, "threads", "1", &error));
    OK(sifr_config_set(labels, "max-steps", "1", &error));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        OK(sifr_config_set(config, flags[i][0], flags[i][1], &error));
    OK(sifr_loop_open(context, config, NULL, &loop, &error));
    assert_int_equal(sifr_data_open(context, config, &options, &data, &error), SIFR_USAGE);
    assert_message(&error, "give sifr_data_options.loop");
    options.loop = loop;
    assert_int_equal(sifr_data_open(context, config, &options, &data, &error), SIFR_USAGE);
    assert_message(&error, "set output");
    OK(sifr_config_set(config, "output", scratch_path("pairs"), &error));
    OK(sifr_data_open(context, config, &options, &data, &error));
    sifr_engine *engine = sifr_loop_engine(loop);
    while (sifr_engine_steps(engine) < 3) {
        sifr_batch batch;
        sifr_step_result result;
        OK(sifr_data_step(data, engine, sifr_engine_steps(engine), &batch, &error));
        assert_non_null(batch.targets);
        OK(sifr_loop_step(loop, &batch, &result, &error));
    }
    sifr_data_close(data);
    options.evaluation = true; /* by the reference that is kept */
    OK(sifr_data_open(context, config, &options, &data, &error));
    OK(sifr_data_evaluate(data, engine, 0, NULL, NULL, &found, &error));
    sifr_loop *other; /* whose engine compares no pairs, so that there are no rewards */
    OK(sifr_loop_open(context, labels, NULL, &other, &error));
    OK(sifr_data_evaluate(data, sifr_loop_engine(other), 0, NULL, NULL, &plain, &error));
    assert_true(plain.score_count == 0 && plain.windows == found.windows && plain.loss > 0);
    sifr_loop_close(other);
    sifr_config_free(labels);
    sifr_data_close(data);
    OK(sifr_loop_save_model(loop, scratch_path("pairs/model"), &error));
    sifr_loop_close(loop);
    OK(sifr_config_set(config, "output", scratch_path("pairs-run"), &error));
    OK(sifr_train(context, config, NULL, NULL, &outcome, &error));
    sifr_config_free(config);
    assert_true(found.loss == outcome.eval_loss && found.score_count > 0);
    expect_same_file("pairs/model/model.safetensors", "pairs-run/model.safetensors");
}

static void rows_are_looked_at(void **state) {
    (void)state;
    sifr_config *config = make_config_for("rows.jsonl", "");
    sifr_chat_rows_figures all = {.size = sizeof all};
    sifr_chat_row row = {.size = sizeof row};
    sifr_chat_rows *rows;
    int64_t count = 0, tokens = 0, learned = 0, longer = 0;
    scratch_text("rows.jsonl",
                 "{\"prompt\": \"abc de\", \"completion\": \" fgh\"}\n"
                 "{\"prompt\": \"abc de fgh abc de fgh abc de fgh\", \"completion\": \" i\"}\n");
    OK(sifr_chat_rows_open(context, config, &rows, &error));
    sifr_chat_rows_get(rows, &all);
    for (; sifr_chat_rows_at(rows, count, &row); count++) {
        assert_true(row.number == count + 1 && row.file == NULL);
        tokens += row.count;
        longer += row.count > LENGTH;
        for (int64_t i = 1; i < row.count; i++) learned += row.learned[i];
    }
    assert_true(count == 2 && all.rows == 2 && !all.paired && all.seq_length == LENGTH);
    assert_true(tokens == all.tokens && learned == all.learned && learned > 0);
    assert_true(longer == 1 && all.cut_rows == 1 && all.cut_tokens == all.longest - LENGTH);
    assert_true(all.lost_rows == 1 && all.packed_sequences == 2);
    assert_non_null(strstr(all.model, "golden/models/gpt2"));
    assert_false(sifr_chat_rows_at(rows, -1, &row));
    sifr_chat_rows_close(rows);
    sifr_chat_rows_close(NULL);
    OK(sifr_config_set(config, "data-type", "messages", &error));
    assert_int_equal(sifr_chat_rows_open(context, config, &rows, &error), SIFR_FAILED);
    assert_message(&error, "rows.jsonl");
    sifr_config_free(config);
}

/* The mean of -log softmax at the labels is the loss, of the same weights. */
static void check_logits(sifr_engine *engine, const sifr_batch *batch) {
    int64_t words = sifr_engine_logits(engine), labelled, again;
    size_t count = (size_t)(2 * LENGTH * words);
    float *logits = calloc(count, sizeof *logits);
    double loss, sum, own = 0;
    assert_non_null(logits);
    OK(sifr_engine_evaluate(engine, batch, &loss, &labelled, &error));
    OK(sifr_engine_evaluate_logits(engine, batch, logits, count, &sum, &again, &error));
    assert_true(sum == loss && again == labelled);
    for (int i = 0; i < 2 * LENGTH; i++) {
        double all = 0;
        if (batch->labels[i] < 0) continue;
        for (int64_t k = 0; k < words; k++) all += exp((double)logits[i * words + k]);
        own += log(all) - (double)logits[i * words + batch->labels[i]];
    }
    assert_true(fabs(own - loss) < 1e-5 * loss);
    assert_int_equal(
        sifr_engine_evaluate_logits(engine, batch, logits, count - 1, &sum, &again, &error),
        SIFR_USAGE);
    assert_message(&error, "a micro batch has 32 tokens with ");
    free(logits);
}

/* A caller that asks for the order of windows, and which micro batches are its own, has the batches
 * of the run. */
static void order_is_that_of_the_run(void **state) {
    (void)state;
    sifr_config *config = make_config(", \"max_steps\": 2, \"seed\": 7");
    sifr_data_figures figures = {.size = sizeof figures};
    sifr_data *data, *other;
    sifr_loop *loop;
    sifr_batch batch, mine;
    OK(sifr_data_open(context, config, NULL, &data, &error));
    OK(sifr_data_open(context, config, NULL, &other, &error));
    OK(sifr_loop_open(context, config, NULL, &loop, &error));
    sifr_data_get(data, &figures);
    for (int64_t step = 0; step < 2; step++) {
        int64_t windows[4];
        for (int64_t i = 0; i < 4; i++)
            windows[i] = sifr_data_order(7, 0, figures.windows, 4 * step + i);
        OK(sifr_data_step(data, sifr_loop_engine(loop), step, &batch, &error));
        OK(sifr_data_read(other, windows, 4, &mine, &error));
        assert_memory_equal(batch.tokens, mine.tokens, 4 * LENGTH * sizeof *mine.tokens);
    }
    assert_int_equal(sifr_data_order(7, 0, 4, 4), -1);
    assert_int_equal(sifr_data_order(7, 0, 4, -1), -1);
    for (int64_t j = -1; j <= 2; j++)
        assert_int_equal(sifr_loop_micro_batch(loop, j), j < 2 ? j : -1);
    check_logits(sifr_loop_engine(loop), &batch);
    sifr_loop_close(loop);
    sifr_data_close(other);
    sifr_data_close(data);
    sifr_config_free(config);
}

static int setup(void **state) {
    char text[8192];
    if (scratch_setup(state) != 0) return -1;
    for (size_t i = 0; i < sizeof text; i++) text[i] = "abc de fgh, i\n"[i * i % 14];
    scratch_write("text", text, sizeof text);
    return sifr_context_create(NULL, &context, &error) == SIFR_OK ? 0 : -1;
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_as_the_run),
                                       cmocka_unit_test(checkpoints_are_read),
                                       cmocka_unit_test(checkpoints_of_an_own_engine),
                                       cmocka_unit_test(data_are_read),
                                       cmocka_unit_test(order_is_that_of_the_run),
                                       cmocka_unit_test(packed_rows_of_the_caller),
                                       cmocka_unit_test(rows_are_looked_at),
                                       cmocka_unit_test(preferences_have_the_bits_of_the_run)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
