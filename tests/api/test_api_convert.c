/* Conversions through sifr/convert.h: what they write is there, their results name it, and an
 * adapter that was merged comes out again. */
#include "support/scratch.h"

#include "sifr/sifr.h"

static sifr_context *context;

static int setup(void **state) {
    return scratch_setup(state) || sifr_context_create(NULL, &context, NULL) != SIFR_OK;
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

static const char *golden(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/tests/golden/%s", getenv("SOURCE"), name);
    return path;
}

static bool has(const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return base_is_file(path);
}

static void test_export(void **state) {
    (void)state;
    sifr_export_options options = {.size = sizeof options,
                                   .source = golden("models/llama3"),
                                   .destination = scratch_path("folder")};
    sifr_exported made = {.size = sizeof made};
    sifr_error error = {0};
    if (sifr_export(context, &options, &made, &error) != SIFR_OK) fail_msg("%s", error.message);
    int64_t parameters = made.parameters;
    assert_true(parameters > 0 && made.bytes > (uint64_t)parameters);
    assert_int_equal(made.step, -1);
    assert_string_equal(made.from, options.source);
    assert_true(has(options.destination, "model.safetensors"));
    assert_int_equal(sifr_export(context, &options, NULL, &error), SIFR_USAGE); /* it is there */

    options.format = "gguf";
    options.type = "q8_0";
    options.destination = scratch_path("model.gguf");
    made = (sifr_exported){.size = sizeof made};
    if (sifr_export(context, &options, &made, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_true(made.parameters >= parameters); /* and rotary factors */
    assert_true(base_is_file(options.destination));
    made.size = 1;
    options.destination = scratch_path("never");
    assert_int_equal(sifr_export(context, &options, &made, &error), SIFR_USAGE);
    assert_false(base_is_file(options.destination)); /* the size is looked at first */
}

static void refuse_export(sifr_export_options options, const char *message) {
    sifr_error error = {0};
    options.size = sizeof options;
    options.source = options.source ? options.source : golden("models/llama3");
    options.destination = scratch_path("never");
    assert_int_equal(sifr_export(context, &options, NULL, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
}

static void test_export_refused(void **state) {
    (void)state;
    refuse_export((sifr_export_options){.format = "onnx"}, "--format onnx is not supported yet");
    refuse_export((sifr_export_options){.format = "gguf", .type = "q2"}, "--type q2 is not");
    refuse_export((sifr_export_options){.type = "f16"}, "--type f16 is for --format gguf");
    refuse_export((sifr_export_options){.format = "gguf", .average = true}, "--ema is for");
    refuse_export((sifr_export_options){.format = "gguf", .source = golden("lora/llama3")},
                  "an adapter, not a model");
}

static void test_merge(void **state) {
    (void)state;
    const char *base = golden("models/llama3"), *adapter = golden("lora/llama3");
    sifr_merge_options options = {.size = sizeof options,
                                  .base = adapter,
                                  .adapter = base,
                                  .destination = scratch_path("merged")};
    sifr_merged made = {.size = sizeof made};
    sifr_error error = {0};
    assert_int_equal(sifr_merge(context, &options, &made, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "the order is BASE ADAPTER DEST"));
    options.base = base;
    options.adapter = adapter;
    if (sifr_merge(context, &options, &made, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_true(made.modules > 0 && made.parameters > 0 && made.bytes > 0);
    options.base = options.destination;
    options.destination = scratch_path("again");
    options.unmerge = true;
    int64_t modules = made.modules;
    if (sifr_merge(context, &options, &made, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(made.modules, modules);
    assert_true(has(options.destination, "config.json"));
}

static void count_line(void *user, const char *line) {
    assert_true(line[0] != '\0');
    ++*(int *)user;
}

static void test_config(void **state) {
    (void)state;
    int lines = 0;
    char *text = NULL;
    sifr_error error = {0};
    sifr_imported_config made = {.size = sizeof made};
    sifr_import_config_options options = {
        .size = sizeof options,
        .path = scratch_text("own.yaml", "base_model: model\nmicro_batch_size: 2\nnum_epochs: 1\n"
                                         "learning_rate: 1e-3\nsequence_len: 32\n"
                                         "datasets: [{path: text, type: completion}]\n"),
        .line = count_line,
        .user = &lines};
    if (sifr_import_config(context, &options, &text, &made, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    assert_string_equal(made.source, "an axolotl config");
    assert_int_equal(made.left, 0);
    assert_true(lines > 3);
    assert_non_null(strstr(text, "\"learning_rate\": 0.001"));
    if (sifr_import_check(text, strlen(text), "it", &error) != SIFR_OK)
        fail_msg("%s", error.message);
    sifr_text_free(text);
    assert_int_equal(sifr_import_check("{\"odd\": 1}", 10, "it", &error), SIFR_USAGE);
    assert_true(strncmp(error.message, "it", 2) == 0);
    options.line = NULL;
    options.from = "nobody";
    assert_int_equal(sifr_import_config(context, &options, &text, NULL, &error), SIFR_USAGE);
    assert_non_null(
        strstr(error.message, "--from nobody: no such program (known: " SIFR_IMPORT_FROM));
}

static void test_checkpoint(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_import_checkpoint_options options = {.size = sizeof options,
                                              .checkpoint = scratch_path("nowhere"),
                                              .destination = scratch_path("never")};
    assert_int_not_equal(sifr_import_checkpoint(context, &options, NULL, &error), SIFR_OK);
    assert_non_null(strstr(error.message, "nowhere"));
    assert_false(base_is_directory(options.destination));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_export),
                                       cmocka_unit_test(test_export_refused),
                                       cmocka_unit_test(test_merge), cmocka_unit_test(test_config),
                                       cmocka_unit_test(test_checkpoint)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
