/* A model folder opened for another task: labels, a head that is made or left out, config.json of
 * the folder that comes out, and what is refused. */
#include "support/scratch.h"

#include "engine/handle.h"

static char source[1024];
static sifr_error error;
static char said[2048];

static void hear(void *user, sifr_log_level level, const char *line) {
    (void)user;
    (void)level;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static int setup(void **state) {
    snprintf(source, sizeof source, "%s/tests/golden/families/models/mistral",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    return scratch_setup(state);
}

static model_labels labels_of(int64_t count, const char *const *names) {
    model_labels labels = {0};
    assert_int_equal(model_labels_make(names, count, "test", &labels, &error), SIFR_OK);
    return labels;
}

static void open_as(const char *path, const engine_folder_options *options, engine_folder *out) {
    if (engine_folder_open_as(path, options, out, &error) != SIFR_OK) fail_msg("%s", error.message);
    said[0] = '\0';
    engine_folder_warn(out, &(sifr_log){hear, NULL});
}

static void refuse(const char *path, engine_folder_options options, const char *part) {
    engine_folder folder;
    if (engine_folder_open_as(path, &options, &folder, &error) == SIFR_OK)
        fail_msg("accepted, not: %s", part);
    assert_message(&error, part);
    assert_int_equal(strncmp(error.message, path, strlen(path)), 0);
}

static sifr_engine *make_engine(const engine_folder *folder, uint64_t seed) {
    sifr_settings settings = sifr_settings_defaults();
    sifr_engine *engine;
    settings.seq_length = 8;
    settings.seed = seed;
    assert_int_equal(sifr_engine_create(folder->model, &settings, &engine, &error), SIFR_OK);
    if (engine_load_opened(engine, folder, &error) != SIFR_OK) fail_msg("%s", error.message);
    return engine;
}

static size_t last(const engine_folder *folder) {
    return (size_t)folder->model->nodes[folder->model->node_count - 1].w[0];
}

/* The folder that a run leaves. */
static const char *put(const char *name, const char *from, const engine_folder *folder) {
    const char *to = scratch_path(name);
    sifr_engine *engine = make_engine(folder, 7);
    assert_int_equal(base_make_directories(to, &error), SIFR_OK);
    assert_int_equal(formats_folder_carry(from, to, NULL, NULL, &error), SIFR_OK);
    assert_int_equal(engine_folder_put_config(folder, from, to, &error), SIFR_OK);
    assert_int_equal(
        engine_save_folder(engine, folder->architecture, folder->weights, BASE_FP32, to, &error),
        SIFR_OK);
    sifr_engine_free(engine);
    return to;
}

/* `text` with its part from `begin` to before `end` replaced, in place. */
static void replace(char *text, const char *begin, const char *end, const char *with) {
    char *from = strstr(text, begin), rest[4096];
    assert_non_null(from);
    char *to = strstr(from, end);
    assert_non_null(to);
    strcpy(rest, to);
    strcpy(from, with);
    strcat(from, rest);
}

static void expect_config(const char *folder, const char *wanted) {
    char path[BASE_PATH_LENGTH], *text;
    size_t size;
    assert_int_equal(base_path_join(path, folder, "config.json", &error), SIFR_OK);
    assert_int_equal(base_read_file(path, 1 << 20, &text, &size, &error), SIFR_OK);
    assert_string_equal(text, wanted);
    free(text);
}

static char *config_of(const char *folder) {
    static char text[8192];
    char path[BASE_PATH_LENGTH], *read;
    size_t size;
    assert_int_equal(base_path_join(path, folder, "config.json", &error), SIFR_OK);
    assert_int_equal(base_read_file(path, 4096, &read, &size, &error), SIFR_OK);
    memcpy(text, read, size + 1);
    free(read);
    return text;
}

static const char *const names[] = {"good", "bad", "so so"};

/* A causal language model becomes a classifier. */
static void head_is_made(void **state) {
    (void)state;
    engine_folder folder, plain;
    model_labels three = labels_of(3, names), two = labels_of(2, names);
    engine_folder_options options = {.choice.has_task = true,
                                     .choice.task = MODEL_SEQUENCE_CLASSES,
                                     .labels = &three,
                                     .found = &two};
    open_as(source, &options, &folder);
    assert_non_null(strstr(said, "1 weight of the head for 3 labels made from the seed, "
                                 "score.weight\n"));
    assert_non_null(strstr(said, "1 tensor of another head left out, lm_head.weight\n"));
    assert_int_equal(folder.made_count, 1);
    size_t head = last(&folder);
    assert_true(folder.made[head]);
    assert_string_equal(folder.model->weights[head].name, "score.weight");

    /* The head depends on the seed alone, and all else is the folder's. */
    sifr_engine *a = make_engine(&folder, 7), *b = make_engine(&folder, 8);
    int64_t count = folder.model->weights[head].rows * folder.model->weights[head].columns;
    float *made = malloc((size_t)count * sizeof *made);
    model_initial_values(folder.model, head, 7, 0, count, made);
    assert_memory_equal(engine_state(a, head, ENGINE_MASTER), made, (size_t)count * sizeof *made);
    assert_memory_not_equal(engine_state(b, head, ENGINE_MASTER), made,
                            (size_t)count * sizeof *made);
    free(made);
    const formats_tensor *table = formats_weights_find(folder.weights, "model.embed_tokens.weight");
    assert_memory_equal(engine_state(a, 0, ENGINE_MASTER), table->data, table->bytes);
    sifr_engine_free(a);
    sifr_engine_free(b);

    const char *out = put("classifier", source, &folder);
    char *wanted = config_of(source);
    replace(wanted, "\"MistralForCausalLM\"", "\n", "\"MistralForSequenceClassification\"");
    char rest[8192];
    strcpy(rest, wanted + 1);
    sprintf(wanted,
            "{\n  \"problem_type\": \"single_label_classification\",\n"
            "  \"label2id\": {\n    \"bad\": 1,\n    \"good\": 0,\n    \"so so\": 2\n  },\n"
            "  \"id2label\": {\n    \"0\": \"good\",\n    \"1\": \"bad\",\n    \"2\": \"so "
            "so\"\n  },%s",
            rest);
    expect_config(out, wanted);
    engine_folder_close(&folder);

    /* It opens as what it is, and comes out of another run byte for byte. */
    assert_int_equal(engine_folder_open(out, &plain, &error), SIFR_OK);
    assert_int_equal(plain.config.task, MODEL_SEQUENCE_CLASSES);
    assert_true(model_labels_equal(&plain.labels, &three));
    engine_folder_close(&plain);
    open_as(out, &(engine_folder_options){.found = &two}, &plain);
    assert_string_equal(said, "config.json has no pad_token_id: with this model transformers "
                              "classifies one text at a time\n");
    assert_int_equal(plain.made_count, 0);
    expect_config(put("again", out, &plain), wanted);
    engine_folder_close(&plain);
    model_labels_free(&three);
    model_labels_free(&two);
}

/* The classifier of the test before. */
static void head_is_there(void **state) {
    (void)state;
    const char *const numbers[] = {"LABEL_0", "LABEL_1"};
    const char *const turned[] = {"bad", "good", "so so"};
    engine_folder folder;
    model_labels two = labels_of(2, names), other = labels_of(3, turned),
                 same = labels_of(3, names);
    model_labels numbered = labels_of(2, numbers);
    const char *path = scratch_path("classifier");
    refuse(path, (engine_folder_options){.labels = &two}, "its head has 3 labels, but 2 are given");
    refuse(path, (engine_folder_options){.labels = &other},
           "label 0 of its head is \"good\", but \"bad\" is given");
    refuse(path, (engine_folder_options){.choice.has_task = true, .choice.task = MODEL_NEXT_TOKEN},
           "tensor lm_head.weight: missing");
    refuse(path,
           (engine_folder_options){.choice.has_task = true, .choice.task = MODEL_TOKEN_CLASSES},
           "a head for token_classification is made, which needs its labels");
    open_as(path, &(engine_folder_options){.labels = &same}, &folder);
    assert_int_equal(folder.made_count, 0);
    engine_folder_close(&folder);

    open_as(path, &(engine_folder_options){.labels = &numbered, .new_head = true}, &folder);
    assert_int_equal(folder.made_count, 1);
    assert_int_equal(folder.config.num_labels, 2);
    assert_non_null(strstr(said, "1 tensor of another head left out, score.weight\n"));
    const char *out = put("numbered", path, &folder);
    engine_folder_close(&folder);
    /* Numbered labels may be given names. */
    open_as(out, &(engine_folder_options){.labels = &two}, &folder);
    assert_int_equal(folder.made_count, 0);
    assert_string_equal(folder.labels.names[1], "bad");
    put("named", out, &folder);
    engine_folder_close(&folder);
    assert_int_equal(engine_folder_open(scratch_path("named"), &folder, &error), SIFR_OK);
    assert_true(model_labels_equal(&folder.labels, &two));
    engine_folder_close(&folder);

    /* A head of the same name, but for another task. */
    open_as(path,
            &(engine_folder_options){
                .choice.has_task = true, .choice.task = MODEL_TOKEN_CLASSES, .found = &same},
            &folder);
    assert_int_equal(folder.made_count, 2);
    put("tokens", path, &folder);
    engine_folder_close(&folder);
    assert_int_equal(engine_folder_open(scratch_path("tokens"), &folder, &error), SIFR_OK);
    assert_int_equal(folder.config.task, MODEL_TOKEN_CLASSES);
    engine_folder_close(&folder);
    model_labels_free(&two);
    model_labels_free(&other);
    model_labels_free(&same);
    model_labels_free(&numbered);
}

static void refused(void **state) {
    (void)state;
    engine_folder folder;
    model_labels two = labels_of(2, names), one = labels_of(1, names);
    refuse(source, (engine_folder_options){.labels = &two}, "causal_lm has neither labels");
    refuse(source, (engine_folder_options){.choice.has_problem = true},
           "causal_lm has neither labels");
    refuse(source, (engine_folder_options){.new_head = true}, "\"new_head\" is for labels");
    refuse(source,
           (engine_folder_options){.choice.has_task = true, .choice.task = MODEL_SEQUENCE_CLASSES},
           "needs its labels: name them");
    refuse(source,
           (engine_folder_options){.choice.has_task = true, .choice.task = MODEL_MASKED_TOKEN},
           "no class for masked_lm");
    refuse(source,
           (engine_folder_options){.choice.has_task = true,
                                   .choice.task = MODEL_SEQUENCE_CLASSES,
                                   .choice.has_problem = true,
                                   .choice.problem = MODEL_SINGLE_LABEL,
                                   .labels = &one},
           "needs at least two labels");
    /* Evaluation makes no head. */
    scratch_text("bare.json", "");
    char *text = config_of(source), path[BASE_PATH_LENGTH];
    replace(text, "\"MistralForCausalLM\"", "\n", "\"MistralForSequenceClassification\"");
    assert_int_equal(base_make_directories(scratch_path("headless"), &error), SIFR_OK);
    scratch_text("headless/config.json", text);
    assert_int_equal(base_path_join(path, source, "model.safetensors", &error), SIFR_OK);
    assert_int_equal(base_copy_file(path, scratch_path("headless/model.safetensors"), &error),
                     SIFR_OK);
    assert_int_equal(engine_folder_open(scratch_path("headless"), &folder, &error), SIFR_FAILED);
    assert_message(&error, "tensor score.weight: missing");
    open_as(scratch_path("headless"), &(engine_folder_options){0}, &folder);
    assert_int_equal(folder.made_count, 1);
    assert_string_equal(folder.labels.names[1], "LABEL_1");
    engine_folder_close(&folder);
    model_labels_free(&two);
    model_labels_free(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(head_is_made),
                                       cmocka_unit_test(head_is_there), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
