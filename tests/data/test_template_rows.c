/* What rows give their chat template beside messages, against transformers' texts
 * (tests/golden/make_template_rows.py): variables of the row and of the run, documents, tools. */
#include "support/scratch.h"

#include "base/json.h"
#include "data/chat/chat_encode.h"
#include "data/chat/chat_rows.h"
#include "text/chat_template_given.h"

enum { VOCAB = 400 };

static char said[4096];

static void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log log_lines = {keep_line, NULL};

static const char *beside(const char *folder, const char *name) {
    static char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/%s/%s", source ? source : ".", folder, name);
    return path;
}

static json_t *load_golden(void) {
    json_t *json;
    sifr_error error = {0};
    if (base_json_load(beside("tests/golden", "template_rows.json"), 1 << 24, &json, &error) !=
        SIFR_OK)
        fail_msg("%s", error.message);
    return json;
}

static void set_template(const char *template, size_t size) {
    static const char config[] = "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}";
    sifr_error error = {0};
    if (base_copy_file(beside("tests/golden/finetune", "byte.json"), scratch_path("tokenizer.json"),
                       &error) != SIFR_OK)
        fail_msg("%s", error.message);
    scratch_write("chat_template.jinja", template, size);
    scratch_write("tokenizer_config.json", config, sizeof config - 1);
}

static void set_text_template(const char *template) {
    set_template(template, strlen(template));
}

/* --- golden texts --- */

/* The text of the row by a template in place of the folder's, or NULL; the caller frees it. */
static char *render_given(const char *given, data_chat_mask mask, const json_t *usual,
                          const json_t *row) {
    const data_row_place place = {.file = "rows", .row = 1, .line = 1};
    data_chat_templates templates;
    text_tokenizer *tokenizer;
    data_chat_row out = {0};
    sifr_error error = {0};
    assert_int_equal(text_tokenizer_load(scratch, &tokenizer, NULL), SIFR_OK);
    assert_int_equal(data_chat_templates_load(scratch, given, &templates, NULL), SIFR_OK);
    data_chat_encoder e = {.tokenizer = tokenizer,
                           .templates = &templates,
                           .separator = -1,
                           .variables = usual,
                           .mask = mask};
    assert_int_equal(text_tokenizer_scratch_new(tokenizer, &e.scratch, NULL), SIFR_OK);
    if (data_chat_encode(&e, row, data_form_of(DATA_ROW_MESSAGES), &place, &out, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    char *text = strndup(e.text.text, e.text.size);
    text_tokenizer_scratch_free(e.scratch);
    data_chat_encoder_free(&e);
    data_chat_row_free(&out);
    data_chat_templates_free(&templates);
    text_tokenizer_free(tokenizer);
    return text;
}

static char *render(const json_t *usual, const json_t *row) {
    return render_given(NULL, DATA_ON_ASSISTANT, usual, row);
}

static uint64_t hash_of(const char *text) {
    uint64_t value = 0xcbf29ce484222325;
    for (; *text; text++) value = (value ^ (uint8_t)*text) * 0x100000001b3;
    return value;
}

static void renders_as_transformers(void **state) {
    (void)state;
    json_t *golden = load_golden(), *row;
    size_t i;
    json_array_foreach(json_object_get(golden, "cases"), i, row) {
        const char *name = json_string_value(json_object_get(row, "template"));
        const json_t *template = json_object_get(json_object_get(golden, "templates"), name);
        const json_t *usual = json_object_get(row, "variables");
        set_template(json_string_value(template), json_string_length(template));
        char *text = render(json_is_null(usual) ? NULL : usual, json_object_get(row, "row"));
        assert_string_equal(text, json_string_value(json_object_get(row, "text")));
        free(text);
    }
    assert_int_equal(i, 17);
    json_decref(golden);
}

static void renders_shared(void **state) {
    (void)state;
    json_t *golden = load_golden(), *row;
    size_t i, size;
    json_array_foreach(json_object_get(golden, "shared"), i, row) {
        char *template, hash[17];
        const char *name = json_string_value(json_object_get(row, "template"));
        if (base_read_file(beside("../shared/data/chat_templates", name), 1 << 20, &template, &size,
                           NULL) != SIFR_OK) {
            json_decref(golden);
            skip();
        }
        set_template(template, size);
        free(template);
        char *text = render(NULL, json_object_get(row, "row"));
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_of(text));
        assert_int_equal(strlen(text), json_integer_value(json_object_get(row, "bytes")));
        assert_string_equal(hash, json_string_value(json_object_get(row, "hash")));
        free(text);
    }
    json_decref(golden);
}

static const char *const asked[] = {"user", "Two and two?", "assistant", "Four.",
                                    "user", " And three? ", "assistant", "\nSix. "};

/* The first `count` turns, behind a system's message. */
static json_t *asked_row(bool system, size_t count) {
    json_t *messages = json_array();
    if (system)
        json_array_append_new(messages,
                              json_pack("{s:s, s:s}", "role", "system", "content", "Brief. "));
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            messages, json_pack("{s:s, s:s}", "role", asked[2 * i], "content", asked[2 * i + 1]));
    return json_pack("{s:o}", "messages", messages);
}

/* Templates by axolotl's names. */
static void renders_named(void **state) {
    (void)state;
    json_t *golden = load_golden(), *named;
    size_t i;
    set_template("{{ 'the folder' }}", 18);
    json_array_foreach(json_object_get(golden, "named"), i, named) {
        const char *name = json_string_value(json_object_get(named, "name"));
        char hash[17];
        assert_string_equal(name, text_chat_template_name_at(i));
        snprintf(hash, sizeof hash, "%016llx",
                 (unsigned long long)hash_of(text_chat_template_named(name)));
        assert_string_equal(hash, json_string_value(json_object_get(named, "hash")));
        for (size_t k = 0; k < 2; k++) {
            json_t *row = asked_row(k && strcmp(name, "gemma") != 0, k ? 4 : 2);
            char *text = render_given(name, DATA_ON_ASSISTANT, NULL, row);
            assert_string_equal(
                text, json_string_value(json_array_get(json_object_get(named, "texts"), k)));
            free(text);
            json_decref(row);
        }
    }
    assert_int_equal(i, 10);
    assert_null(text_chat_template_name_at(i));
    json_decref(golden);
}

/* A file, the text itself, the folder's own by axolotl's names, and what is none of these. */
static void takes_given(void **state) {
    (void)state;
    static const struct {
        const char *given, *text;
    } cases[] = {{"tokenizer_default", "folder"},
                 {"tokenizer_default_fallback_chatml", "folder"},
                 {"{{ messages[0].content }}!", "Two and two?!"}};
    json_t *row = asked_row(false, 2);
    set_template("folder", 6);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = render_given(cases[i].given, DATA_ON_ALL, NULL, row);
        assert_string_equal(text, cases[i].text);
        free(text);
    }
    char *text =
        render_given(scratch_text("own.jinja", "{{ messages | length }}"), DATA_ON_ALL, NULL, row);
    assert_string_equal(text, "2");
    free(text);
    assert_int_equal(remove(scratch_path("chat_template.jinja")), 0);
    text = render_given("tokenizer_default_fallback_exaone", DATA_ON_ALL, NULL, row);
    assert_memory_equal(text, "[|system|]", 10);
    free(text);
    json_decref(row);
    static const char *const refused[][2] = {
        {"qwen3",
         "chat_template qwen3: axolotl's template of this name is not here (here: alpaca, "},
        {"chatmI", "chat_template chatmI: no such file or name; give a file"},
        {"/", "chat_template /: is a folder; give a file"}};
    for (size_t i = 0; i < 3; i++) {
        data_chat_templates templates;
        sifr_error error = {0};
        assert_int_equal(data_chat_templates_load(scratch, refused[i][0], &templates, &error),
                         SIFR_USAGE);
        assert_message(&error, refused[i][1]);
    }
}

/* --- rows of a file --- */

static const char turns_template[] =
    "{% if tone is defined %}{{ tone }} {% endif %}{% for m in messages %}<|im_start|>{{ m.role "
    "}}\n"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static sifr_status open_with(const data_chat_options *given, const char *rows, data_chat **out,
                             sifr_error *error) {
    data_chat_source source = {.path = scratch_text("x.jsonl", rows), .weight = 1};
    data_chat_options options = *given;
    options.sources = &source;
    options.count = 1;
    options.tokenizer = scratch;
    options.vocab_size = VOCAB;
    options.length = 256;
    options.separator = 1;
    options.threads = 2;
    options.log = &log_lines;
    said[0] = 0;
    return data_chat_open(&options, out, error);
}

static data_chat *open_rows(const data_chat_options *options, const char *rows) {
    data_chat *chat;
    sifr_error error = {0};
    if (open_with(options, rows, &chat, &error) != SIFR_OK) fail_msg("%s", error.message);
    return chat;
}

static void refuse(const char *row, const char *message) {
    data_chat_options options = {0};
    data_chat *chat;
    sifr_error error = {0};
    assert_int_equal(open_with(&options, row, &chat, &error), SIFR_FAILED);
    assert_message(&error, message);
    assert_message(&error, "x.jsonl: row 1, line 1: ");
}

#define ASKED                                                                                      \
    "\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "          \
    "\"content\": \"b\"}]"
#define ROW(more) "{" ASKED ", " more "}\n"

static int64_t tokens_of(const data_chat_options *options, const char *rows) {
    data_chat *chat = open_rows(options, rows);
    int64_t tokens = data_chat_count(chat)->tokens;
    data_chat_close(chat);
    return tokens;
}

static void reads_variables(void **state) {
    (void)state;
    set_text_template(turns_template);
    data_chat_options options = {0};
    int64_t plain = tokens_of(&options, "{" ASKED "}\n");
    int64_t toned = tokens_of(&options, ROW("\"chat_template_kwargs\": {\"tone\": \"x\"}"));
    assert_int_equal(toned, plain + 2);
    assert_null(strstr(said, "changes nothing"));
    /* As a CSV file has it. */
    assert_int_equal(
        tokens_of(&options, ROW("\"chat_template_kwargs\": \"{\\\"tone\\\": \\\"x\\\"}\"")), toned);
    assert_int_equal(tokens_of(&options, ROW("\"chat_template_kwargs\": \"\"")), plain);
    assert_int_equal(tokens_of(&options, ROW("\"chat_template_kwargs\": null")), plain);
    /* Both answers of a preference. */
    static const char pair[] = "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}], "
                               "\"chosen\": [{\"role\": \"assistant\", \"content\": \"b\"}], "
                               "\"rejected\": [{\"role\": \"assistant\", \"content\": \"c\"}]%s}\n";
    char rows[512];
    snprintf(rows, sizeof rows, pair, "");
    int64_t both = tokens_of(&options, rows);
    snprintf(rows, sizeof rows, pair, ", \"chat_template_kwargs\": {\"tone\": \"x\"}");
    assert_int_equal(tokens_of(&options, rows), both + 4);
    json_t *usual = json_pack("{s:s}", "tone", "x");
    options.variables = usual;
    assert_int_equal(tokens_of(&options, "{" ASKED "}\n"), toned);
    assert_null(strstr(said, "changes nothing"));
    options.asked = "chat_template_kwargs";
    (void)tokens_of(&options, "{\"text\": \"a\"}\n");
    assert_non_null(
        strstr(said, "data: no row has messages, so chat_template_kwargs changes nothing"));
    json_decref(usual);
}

/* What the template does not have is said once a file; documents that it does not have are not
 * read. */
static void names_unread_variables(void **state) {
    (void)state;
    set_text_template(turns_template);
    data_chat_options options = {0};
    int64_t plain = tokens_of(&options, "{" ASKED "}\n");
    int64_t twice = tokens_of(&options, ROW("\"chat_template_kwargs\": {\"tune\": 1}")
                                            ROW("\"chat_template_kwargs\": {\"tune\": 1}"));
    assert_int_equal(twice, 2 * plain);
    char *line = strstr(said, "x.jsonl: the chat template has no variable 'tune' of "
                              "chat_template_kwargs, which changes nothing\n");
    assert_non_null(line);
    assert_null(strstr(strchr(line, '\n'), "tune"));
    assert_int_equal(tokens_of(&options, ROW("\"documents\": \"a text\"")), plain);
}

static void refuses_variables(void **state) {
    (void)state;
    set_text_template(turns_template);
    refuse(ROW("\"chat_template_kwargs\": [1]"),
           "'chat_template_kwargs' is a list; it must be an object such as");
    refuse(ROW("\"chat_template_kwargs\": \"oops\""), "'chat_template_kwargs' is a string");
    refuse(ROW("\"chat_template_kwargs\": {\"add_generation_prompt\": true}"),
           "'chat_template_kwargs' has 'add_generation_prompt', which is no variable");
    refuse(ROW("\"chat_template_kwargs\": {\"tools\": 1}"), "'tools' is a number");
    json_t *usual = json_pack("{s:b}", "tokenize", 0);
    data_chat_options options = {.variables = usual};
    data_chat *chat;
    sifr_error error = {0};
    assert_int_equal(open_with(&options, "{" ASKED "}\n", &chat, &error), SIFR_USAGE);
    assert_message(&error, "chat_template_kwargs: 'tokenize' is no variable of a chat template");
    json_decref(usual);
    set_text_template("{{ documents }}{{ messages[0].content }}");
    refuse(ROW("\"documents\": \"a text\""), "'documents' is a string that does not hold a list");
}

/* A tokenizer that puts <s> before a text. */
static void put_bos(void) {
    static const char none
        [] = "\"post_processor\":null",
    some[] =
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
        "\"<s>\","
        "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"Sequence\":{"
        "\"id\":"
        "\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],\"special_tokens\":{"
        "\"<s>\":{\"id\":\"<s>\",\"ids\":[0],\"tokens\":[\"<s>\"]}}}";
    char *text, *whole;
    size_t size;
    assert_int_equal(base_read_file(scratch_path("tokenizer.json"), 1 << 20, &text, &size, NULL),
                     SIFR_OK);
    const char *at = strstr(text, none);
    assert_non_null(at);
    assert_true(asprintf(&whole, "%.*s%s%s", (int)(at - text), text, some, at + strlen(none)) > 0);
    scratch_text("tokenizer.json", whole);
    free(text);
    free(whole);
}

/* Texts that hold the template already, before which the tokenizer puts what they begin with. */
static void says_two_begins(void **state) {
    (void)state;
    static const char rows[] = "{\"text\": \"<s>a\"}\n{\"text\": \"a<s>\"}\n{\"text\": \"<s>b\"}\n";
    set_text_template(turns_template);
    put_bos();
    data_chat_options options = {.special = true};
    int64_t with = tokens_of(&options, rows);
    assert_non_null(strstr(said, "data: 2 texts begin with <s>, and the tokenizer puts another one "
                                 "before them; give --no-special-tokens\n"));
    options.special = false;
    assert_int_equal(tokens_of(&options, rows), with - 3);
    assert_null(strstr(said, "begin"));
    options.special = true;
    (void)tokens_of(&options, "{\"prompt\": \"<s>a\", \"completion\": \"b\"}\n");
    assert_non_null(strstr(said, "data: 1 text begins with <s>, and the tokenizer puts another one "
                                 "before it; give --no-special-tokens\n"));
    (void)tokens_of(&options, "{" ASKED "}\n");
    assert_null(strstr(said, "begin"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renders_as_transformers), cmocka_unit_test(renders_shared),
        cmocka_unit_test(renders_named),           cmocka_unit_test(takes_given),
        cmocka_unit_test(reads_variables),         cmocka_unit_test(names_unread_variables),
        cmocka_unit_test(refuses_variables),       cmocka_unit_test(says_two_begins),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
