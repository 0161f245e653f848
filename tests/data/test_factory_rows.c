/* LLaMA-Factory's dataset_info.json: its names become sources of rows of which the same is read and
 * learned as by its own classes (tests/golden/make_factory_rows.py), and what sifr cannot do is
 * refused by name. */
#include "support/scratch.h"

#include <sys/stat.h>

#include "base/json.h"
#include "config/import/config_import.h"
#include "data/chat/chat_rows.h"
#include "text/tokenizer/tokenizer.h"
#include "train/prepare/run_task.h"

enum { VOCAB = 400 };

static char lines[8192], said[8192];
static json_t *golden;

static void keep_line(void *user, const char *line) {
    (void)user;
    strncat(lines, line, sizeof lines - strlen(lines) - 2);
    strcat(lines, "\n");
}

static void keep_log(void *user, sifr_log_level level, const char *line) {
    (void)level;
    keep_line(user, line);
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log log_lines = {keep_log, NULL};

static const char *beside(const char *folder, const char *name) {
    static char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/%s/%s", source ? source : ".", folder, name);
    return path;
}

static void write_json(const char *name, const json_t *value) {
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    scratch_text(name, text);
    free(text);
}

static sifr_status import(const char *more, config_imported *made, sifr_error *error) {
    char text[1024];
    snprintf(text, sizeof text,
             "model_name_or_path: m\nfinetuning_type: full\nlearning_rate: 1.0e-5\ntemplate: "
             "default\ncutoff_len: 512\n%s",
             more);
    lines[0] = '\0';
    return config_import_file(scratch_text("a.yaml", text), NULL, keep_line, NULL, made, error);
}

static json_t *imports(const char *more) {
    config_imported made;
    sifr_error error = {0};
    if (import(more, &made, &error) != SIFR_OK) fail_msg("%s: %s", more, error.message);
    return made.config;
}

static void says(const char *line) {
    if (!strstr(lines, line)) fail_msg("no \"%s\" in\n%s", line, lines);
}

/* --- rows --- */

static data_chat *open_set(const char *name, const char *more, sifr_config *config) {
    char yaml[400];
    data_chat_source *sources;
    data_chat *chat;
    sifr_error error = {0};
    snprintf(yaml, sizeof yaml, "dataset: %s\n%s", name, more);
    json_t *made = imports(yaml);
    char *text = json_dumps(made, 0);
    assert_int_equal(config_create(config, NULL), SIFR_OK);
    if (config_parse(config, text, strlen(text), "ds.json", &error) != SIFR_OK ||
        config_resolve(config, 1, &error) != SIFR_OK)
        fail_msg("%s\n%s", error.message, text);
    free(text);
    json_decref(made);
    assert_int_equal(
        train_chat_sources_make(config, config->data, config->data_count, &sources, NULL), SIFR_OK);
    data_chat_options options = {.sources = sources,
                                 .count = config->data_count,
                                 .tokenizer = scratch,
                                 .vocab_size = VOCAB,
                                 .length = 512,
                                 .separator = 1,
                                 .template = config->chat_template,
                                 .threads = 1,
                                 .log = &log_lines};
    said[0] = '\0';
    if (data_chat_open(&options, &chat, &error) != SIFR_OK)
        fail_msg("%s: %s\n%s", name, error.message, lines);
    free(sources);
    return chat;
}

/* The text of the tokens that are learned, or of all. */
static char *text_of(const text_tokenizer *tokenizer, const int32_t *ids, const bool *learned,
                     int64_t count) {
    char *text = strdup("");
    for (int64_t i = 0; i < count; i++) {
        size_t size, length = strlen(text);
        if (learned && !learned[i]) continue;
        const char *bytes = text_tokenizer_bytes(tokenizer, ids[i], &size);
        text = realloc(text, length + size + 1);
        memcpy(text + length, bytes, size);
        text[length + size] = '\0';
    }
    return text;
}

static char *join(const json_t *pairs, bool answers) {
    char *text = strdup("");
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        for (size_t side = answers; side < 2; side++) {
            const char *part = json_string_value(json_array_get(json_array_get(pairs, i), side));
            text = realloc(text, strlen(text) + strlen(part) + 1);
            strcat(text, part);
        }
    }
    return text;
}

static void check_row(const text_tokenizer *tokenizer, const data_chat *chat, int64_t index,
                      const json_t *pairs) {
    const int32_t *ids;
    const bool *learned;
    int64_t whole, count = data_chat_row_at(chat, index, &ids, &learned, &whole);
    for (int answers = 0; answers < 2; answers++) {
        char *got = text_of(tokenizer, ids, answers ? learned : NULL, count);
        char *wanted = join(pairs, answers);
        assert_string_equal(got, wanted);
        free(got);
        free(wanted);
    }
}

static void as_llama_factory(void **state) {
    (void)state;
    const char *name;
    json_t *rows, *row, *pairs;
    text_tokenizer *tokenizer;
    size_t i, k, sets = 0;
    assert_int_equal(text_tokenizer_load(scratch, &tokenizer, NULL), SIFR_OK);
    json_object_foreach(json_object_get(golden, "rows"), name, rows) {
        sifr_config config;
        bool ranked = json_is_true(
            json_object_get(json_object_get(json_object_get(golden, "info"), name), "ranking"));
        data_chat *chat = open_set(name, ranked ? "stage: dpo\npref_beta: 0.1\n" : "", &config);
        int64_t index = 0;
        json_array_foreach(rows, i, row) json_array_foreach(row, k, pairs)
            check_row(tokenizer, chat, index++, pairs);
        assert_int_equal(data_chat_count(chat)->rows, index);
        data_chat_close(chat);
        config_free(&config);
        sets++;
    }
    assert_int_equal(sets, 9);
    /* Several sets, one behind the other. */
    sifr_config config;
    data_chat *chat = open_set("plain, turns", "max_samples: 1\n", &config);
    assert_int_equal(config.data_count, 2);
    assert_int_equal(config.max_samples, 1);
    assert_int_equal(data_chat_count(chat)->rows, 4);
    says("dataset = \"plain, turns\": sifr.dataset, as ");
    says("/data/dataset_info.json says\n");
    data_chat_close(chat);
    config_free(&config);
    text_tokenizer_free(tokenizer);
}

/* --- what sifr cannot do --- */

static void refuses(const char *name, const char *set, const char *more, const char *message) {
    char yaml[400], wanted[400];
    config_imported made;
    sifr_error error = {0};
    json_t *info = json_pack("{s:o}", name, json_loads(set, 0, NULL));
    assert_non_null(info);
    write_json("data/dataset_info.json", info);
    json_decref(info);
    snprintf(yaml, sizeof yaml, "dataset: %s\n%s", name, more);
    assert_int_equal(import(yaml, &made, &error), SIFR_USAGE);
    snprintf(wanted, sizeof wanted, ": dataset_info.json.%s%s", name, message);
    if (!strstr(error.message, wanted)) fail_msg("%s\nis not\n%s", error.message, wanted);
}

static void refuses_by_name(void **state) {
    (void)state;
    static const char *const sets[][3] = {
        {"{\"hf_hub_url\": \"a/b\"}", "", ".hf_hub_url is \"a/b\": it is on a hub: download it"},
        {"{\"ms_hub_url\": \"a/b\"}", "", ".ms_hub_url is \"a/b\": it is on a hub"},
        {"{\"script_url\": \"a.py\"}", "", ".script_url is \"a.py\": a script is not run"},
        {"{\"file_name\": \"a.txt\"}", "", ".file_name is \"a.txt\": rows are in JSON, "},
        {"{\"file_name\": \"a.arrow\"}", "", ".file_name is \"a.arrow\": rows are in JSON, "},
        {"{\"file_name\": \"a.json\", \"columns\": {\"prompt\": \"p\", \"response\": \"r\", "
         "\"images\": \"i\"}}",
         "", ".images is \"i\": models of text alone are trained"},
        {"{\"file_name\": \"a.json\", \"columns\": {\"prompt\": \"p\", \"response\": \"r\", "
         "\"kto_tag\": \"k\"}}",
         "", ".kto_tag is \"k\": only pairs of answers are learned from yet"},
        {"{\"file_name\": \"a.json\", \"columns\": {\"prompt\": \"p\", \"response\": \"r\", "
         "\"tools\": \"t\"}}",
         "", ".tools is \"t\": LLaMA-Factory writes tools by rules of its own"},
        {"{\"file_name\": \"a.json\", \"columns\": {\"prompt\": \"p\"}}", "",
         ".columns is {\"prompt\":\"p\"}: columns of prompts and responses are expected"},
        {"{\"file_name\": \"a.json\", \"split\": \"test\"}", "", ".split is \"test\": files have "},
        {"{\"file_name\": \"a.json\", \"num_samples\": 7}", "", ".num_samples is 7: rows drawn at"},
        {"{\"file_name\": \"a.json\", \"formatting\": \"openai\"}", "",
         ".formatting is \"openai\": LLaMA-Factory 0.9.5 puts \"detailed thinking off\""},
        {"{\"file_name\": \"a.json\", \"formatting\": \"csv\"}", "",
         ".formatting is \"csv\": rows are in the form alpaca or sharegpt"},
        {"{\"file_name\": \"a.json\", \"formatting\": \"sharegpt\", \"tags\": {\"role_tag\": "
         "\"who\", \"content_tag\": \"what\"}}",
         "",
         ".tags is {\"role_tag\":\"who\",\"content_tag\":\"what\"}: turns have role and content of "
         "user and assistant"},
        {"{\"file_name\": \"a.json\", \"ranking\": true}", "",
         ".ranking is true: pairs of answers are learned from by stage: dpo alone"},
        {"{\"file_name\": \"a.json\"}", "stage: dpo\npref_beta: 0.1\n",
         ".ranking is false: stage: dpo learns from pairs of answers alone"},
        {"{\"file_name\": \"a.json\"}", "stage: pt\npacking: false\n",
         ".columns is null: stage: pt reads one column, prompt"},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        refuses("set", sets[i][0], sets[i][1], sets[i][2]);
    static const char *const allow[] = {"dataset_info.json.set.hf_hub_url"};
    config_import_options how = {.allow = allow, .allow_count = 1};
    json_t *hub = json_pack("{s:{s:s}}", "set", "hf_hub_url", "a/b");
    write_json("data/dataset_info.json", hub);
    json_decref(hub);
    config_imported passed;
    scratch_text("a.yaml", "model_name_or_path: m\ntemplate: default\nlearning_rate: 1.0e-5\n"
                           "dataset: set\n");
    assert_int_equal(
        config_import_file(scratch_path("a.yaml"), &how, keep_line, NULL, &passed, NULL), SIFR_OK);
    assert_int_equal(passed.left, 1);
    json_decref(passed.config);
    /* All at once, and a name that is not there. */
    config_imported made;
    sifr_error error = {0};
    assert_int_equal(import("dataset: other, set\n", &made, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "dataset_info.json.other is null: there is no set of"));
}

/* --- held-out rows, texts, and a file that is not there --- */

static const json_t *sifr_of(const json_t *config, const char *key) {
    return json_object_get(json_object_get(config, "sifr"), key);
}

static void other_rows(void **state) {
    (void)state;
    write_json("data/dataset_info.json", json_object_get(golden, "info"));
    json_t *config = imports("dataset: plain\neval_dataset: plain\n");
    const char *path = json_string_value(sifr_of(config, "eval_data"));
    if (!path) fail_msg("%s", lines);
    assert_non_null(strstr(path, "/data/plain.json"));
    assert_null(strstr(lines, "there is no file"));
    assert_string_equal(json_string_value(sifr_of(config, "data_type")), "alpaca");
    assert_true(json_array_size(sifr_of(config, "ignore_fields")) > 0);
    json_decref(config);
    config = imports("dataset: plain\neval_dataset: turns\n");
    assert_null(sifr_of(config, "eval_data"));
    says("eval_dataset = \"turns\": not taken over: held-out rows are one file");
    json_decref(config);
    json_t *texts = json_pack("{s:{s:s, s:{s:s}}}", "texts", "file_name", "t.jsonl", "columns",
                              "prompt", "body");
    write_json("data/dataset_info.json", texts);
    json_decref(texts);
    config = imports("dataset: texts\nstage: pt\npacking: false\n");
    says("dataset_info.json.texts.file_name = \"t.jsonl\": not taken over: there is no file ");
    says("/data/t.jsonl yet: put it there before the run\n");
    const json_t *source = json_array_get(sifr_of(config, "dataset"), 0);
    assert_string_equal(json_string_value(json_object_get(source, "type")), "text");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(source, "fields"), "text")), "body");
    assert_null(sifr_of(config, "chat_template"));
    json_decref(config);
    config = imports("dataset: texts\nstage: pt\n");
    assert_string_equal(json_string_value(sifr_of(config, "join_texts")), "eos");
    json_decref(config);
    config = imports("dataset: plain\ndataset_dir: nowhere\n");
    assert_null(sifr_of(config, "dataset"));
    says("dataset = \"plain\": not taken over: a name of nowhere/dataset_info.json, which is "
         "neither here nor beside the config: give its files to --data, and fields of theirs that "
         "no column names to --ignore-fields\n");
    json_decref(config);
}

static int set_up(void **state) {
    const char *name;
    json_t *rows, *row;
    size_t i;
    char path[300];
    if (scratch_setup(state) || mkdir(scratch_path("data"), 0700) ||
        base_json_load(beside("tests/golden", "factory_rows.json"), 1 << 24, &golden, NULL) !=
            SIFR_OK ||
        base_copy_file(beside("tests/golden/finetune", "byte.json"), scratch_path("tokenizer.json"),
                       NULL) != SIFR_OK)
        return 1;
    scratch_text("tokenizer_config.json", "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}");
    write_json("data/dataset_info.json", json_object_get(golden, "info"));
    json_object_foreach(json_object_get(golden, "files"), name, rows) {
        char *text = strdup("");
        json_array_foreach(rows, i, row) {
            char *line = json_dumps(row, 0);
            text = realloc(text, strlen(text) + strlen(line) + 2);
            strcat(strcat(text, line), "\n");
            free(line);
        }
        snprintf(path, sizeof path, "data/%s", name);
        if (strstr(name, ".jsonl"))
            scratch_text(path, text);
        else
            write_json(path, rows);
        free(text);
    }
    return 0;
}

static int tear_down(void **state) {
    json_decref(golden);
    return scratch_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_llama_factory),
        cmocka_unit_test(refuses_by_name),
        cmocka_unit_test(other_rows),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
