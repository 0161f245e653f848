/* LLaMA-Factory's chat templates by their names: what is imported of each writes the text, and
 * learns the parts, that its own classes do (tests/golden/make_factory_templates.py). */
#include "support/scratch.h"

#include "base/json.h"
#include "config/import/config_import.h"
#include "data/chat/chat_encode.h"

static char lines[8192];
static text_tokenizer *tokenizer; /* of the scratch folder */

static void keep_line(void *user, const char *line) {
    (void)user;
    strncat(lines, line, sizeof lines - strlen(lines) - 2);
    strcat(lines, "\n");
}

static const char *beside(const char *folder, const char *name) {
    static char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/%s/%s", source ? source : ".", folder, name);
    return path;
}

/* The config that is made of "template: NAME" and more keys. */
static sifr_status import(const char *name, const char *more, config_imported *made,
                          sifr_error *error) {
    char text[512];
    snprintf(text, sizeof text,
             "model_name_or_path: m\nfinetuning_type: full\nlearning_rate: 1.0e-5\ntemplate: "
             "%s\n%s",
             name, more);
    lines[0] = '\0';
    return config_import(text, strlen(text), "a.yaml", NULL, keep_line, NULL, made, error);
}

static json_t *template_of(const char *name, const char *more) {
    config_imported made;
    sifr_error error = {0};
    if (import(name, more, &made, &error) != SIFR_OK) fail_msg("%s: %s", name, error.message);
    json_t *sifr = json_object_get(made.config, "sifr");
    json_t *text = json_incref(json_object_get(sifr, "chat_template"));
    assert_null(json_object_get(sifr, "chat_template_kwargs"));
    json_decref(made.config);
    return text;
}

typedef struct rendered {
    data_chat_templates templates;
    data_chat_encoder encoder;
    data_chat_row row;
} rendered;

static void set_up(rendered *r, const json_t *template, data_chat_mask mask) {
    sifr_error error = {0};
    *r = (rendered){0};
    if (data_chat_templates_load(scratch, json_string_value(template), &r->templates, &error) !=
        SIFR_OK)
        fail_msg("%s\n%s", error.message, json_string_value(template));
    r->encoder = (data_chat_encoder){
        .tokenizer = tokenizer, .templates = &r->templates, .separator = -1, .mask = mask};
    assert_int_equal(text_tokenizer_scratch_new(tokenizer, &r->encoder.scratch, NULL), SIFR_OK);
}

static void tear_down(rendered *r) {
    text_tokenizer_scratch_free(r->encoder.scratch);
    data_chat_encoder_free(&r->encoder);
    data_chat_row_free(&r->row);
    data_chat_templates_free(&r->templates);
}

static json_t *row_of(const json_t *talk) {
    json_t *messages = json_array(), *system = json_object_get(talk, "system"), *turn;
    size_t i;
    if (json_is_string(system))
        json_array_append_new(messages,
                              json_pack("{s:s, s:O}", "role", "system", "content", system));
    json_array_foreach(json_object_get(talk, "turns"), i, turn) json_array_append_new(
        messages, json_pack("{s:s, s:O}", "role", i % 2 ? "assistant" : "user", "content", turn));
    return json_pack("{s:o}", "messages", messages);
}

/* The pairs of a prompt and an answer, end to end, and where the answers are. */
static void check(const char *name, const char *which, const json_t *template, const json_t *talk,
                  const json_t *pairs, bool last) {
    rendered r;
    sifr_error error = {0};
    json_t *row = row_of(talk);
    size_t at = 0, span = 0, count = json_array_size(pairs);
    set_up(&r, template, last ? DATA_ON_LAST : DATA_ON_ASSISTANT);
    const data_row_place place = {.file = "rows", .row = 1, .line = 1};
    if (data_chat_encode(&r.encoder, row, data_form_of(DATA_ROW_MESSAGES), &place, &r.row,
                         &error) != SIFR_OK)
        fail_msg("%s, %s: %s", name, which, error.message);
    const data_chat_text *text = &r.encoder.text;
    for (size_t i = 0; i < count; i++) {
        for (size_t side = 0; side < 2; side++) {
            const json_t *part = json_array_get(json_array_get(pairs, i), side);
            size_t size = json_string_length(part);
            if (at + size > text->size || memcmp(text->text + at, json_string_value(part), size))
                fail_msg("%s, %s: at byte %zu of\n%s\nis not\n%s", name, which, at, text->text,
                         json_string_value(part));
            if (side && (!last || i + 1 == count)) {
                assert_true(span < text->span_count);
                assert_int_equal(text->spans[span].begin, at);
                assert_int_equal(text->spans[span++].end, at + size);
            }
            at += size;
        }
    }
    assert_int_equal(at, text->size);
    assert_int_equal(span, text->span_count);
    tear_down(&r);
    json_decref(row);
}

static void as_llama_factory(void **state) {
    (void)state;
    static const char *const thoughts[][2] = {
        {"thoughts", ""},
        {"thoughts off", "enable_thinking: false\n"},
        {"thoughts last", "mask_history: true\n"},
        {"thoughts off, last", "enable_thinking: false\nmask_history: true\n"}};
    json_t *golden, *group, *name;
    size_t i, k, names = 0;
    assert_int_equal(
        base_json_load(beside("tests/golden", "factory_templates.json"), 1 << 24, &golden, NULL),
        SIFR_OK);
    const json_t *talks = json_object_get(golden, "talks");
    json_array_foreach(json_object_get(golden, "cases"), i, group) {
        const json_t *pairs = json_object_get(group, "pairs");
        json_t *first = NULL;
        json_array_foreach(json_object_get(group, "names"), k, name) {
            const char *word = json_string_value(name);
            json_t *template = template_of(word, "enable_thinking: true\n");
            if (!strstr(lines, "\": sifr.chat_template, the text of LLaMA-Factory 0.9.5"))
                fail_msg("%s", lines);
            names++;
            /* Those of a group have the same text. */
            if (first) assert_true(json_equal(first, template));
            if (!first) first = json_incref(template);
            json_decref(template);
            if (k) continue;
            check(word, "short", first, json_object_get(talks, "short"),
                  json_object_get(pairs, "short"), false);
            check(word, "system", first, json_object_get(talks, "system"),
                  json_object_get(pairs, "system"), false);
            for (size_t t = 0; json_object_get(pairs, "thoughts") && t < 4; t++) {
                char talk[80];
                snprintf(talk, sizeof talk, "thoughts of %s", word);
                json_t *own = template_of(word, thoughts[t][1]);
                check(word, thoughts[t][0], own, json_object_get(talks, talk),
                      json_object_get(pairs, thoughts[t][0]), t >= 2);
                json_decref(own);
            }
        }
        json_decref(first);
    }
    print_message("%zu names\n", names);
    assert_int_equal(names, 100);
    json_decref(golden);
}

/* What has no text is refused by name, and passes only where the user says so. */
static void refuses_others(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"glm4", "the labels or tokens that it makes are not those of a text; --allow template "},
        {"qwen9", "LLaMA-Factory 0.9.5 has no template of this name; --allow template "}};
    config_imported made;
    sifr_error error;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(import(names[i][0], "", &made, &error), SIFR_USAGE);
        if (!strstr(error.message, names[i][1])) fail_msg("%s", error.message);
    }
    static const char *const allow[] = {"template"};
    config_import_options how = {.allow = allow, .allow_count = 1};
    static const char text[] =
        "model_name_or_path: m\nfinetuning_type: full\nlearning_rate: 1.0e-5\ntemplate: "
        "glm4\n";
    assert_int_equal(config_import(text, sizeof text - 1, "a", &how, keep_line, NULL, &made, NULL),
                     SIFR_OK);
    assert_int_equal(made.left, 1);
    assert_null(json_object_get(json_object_get(made.config, "sifr"), "chat_template"));
    json_decref(made.config);
    assert_int_equal(import("qwen3", "enable_thinking: null\n", &made, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "enable_thinking is null: empty thoughts are learned"));
}

/* Keys that go into the text; of texts to pre-train on there is none. */
static void other_keys(void **state) {
    (void)state;
    json_t *text = template_of("qwen", "default_system: Be \"kind\".\n");
    assert_non_null(strstr(json_string_value(text), "{% set system = 'Be \"kind\".' %}"));
    json_decref(text);
    assert_null(template_of("qwen", "stage: pt\n"));
    assert_non_null(strstr(lines, "template = \"qwen\": no effect here: texts go through no "));
    text = template_of("qwen", "enable_thinking: false\n");
    json_decref(text);
    assert_non_null(strstr(lines, "enable_thinking = false: no effect here: the template has no"));
    /* Of a preference the last answer alone gets empty thoughts, and others lose theirs. */
    json_t *pairs = template_of("qwen3", "stage: dpo\npref_beta: 0.1\n");
    json_t *last = template_of("qwen3", "mask_history: true\n");
    json_t *kept = template_of("qwen3", "mask_history: true\npreserve_thinking: true\n");
    json_t *plain = template_of("qwen3", "");
    assert_true(json_equal(pairs, last));
    assert_true(json_equal(kept, plain));
    assert_false(json_equal(last, plain));
    json_decref(pairs), json_decref(last), json_decref(kept), json_decref(plain);
}

/* Rows that LLaMA-Factory leaves out are no rows of this text. */
static void refuses_turns(void **state) {
    (void)state;
    rendered r;
    sifr_error error = {0};
    json_t *template = template_of("qwen", "");
    json_t *row =
        json_pack("{s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]}", "messages", "role", "user", "content",
                  "a", "role", "user", "content", "b", "role", "assistant", "content", "c");
    const data_row_place place = {.file = "rows", .row = 1, .line = 1};
    set_up(&r, template, DATA_ON_ASSISTANT);
    assert_int_equal(
        data_chat_encode(&r.encoder, row, data_form_of(DATA_ROW_MESSAGES), &place, &r.row, &error),
        SIFR_FAILED);
    assert_non_null(strstr(error.message, "LLaMA-Factory leaves out rows in which"));
    tear_down(&r);
    json_decref(row);
    json_decref(template);
}

static int set_folder(void **state) {
    int failed = scratch_setup(state);
    scratch_text("tokenizer_config.json", "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}");
    return failed ||
           base_copy_file(beside("tests/golden/finetune", "byte.json"),
                          scratch_path("tokenizer.json"), NULL) != SIFR_OK ||
           text_tokenizer_load(scratch, &tokenizer, NULL) != SIFR_OK;
}

static int free_folder(void **state) {
    text_tokenizer_free(tokenizer);
    return scratch_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_llama_factory), cmocka_unit_test(refuses_others),
        cmocka_unit_test(other_keys), cmocka_unit_test(refuses_turns)};
    return cmocka_run_group_tests(tests, set_folder, free_folder);
}
