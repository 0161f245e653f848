/* Configs of other programs: which chat template, and its variables. */
#include "config/import_case.h"

/* Both keys of the config that is made, as JSON: "chat_template kwargs". */
static void makes(const char *text, const char *wanted) {
    config_imported made;
    sifr_error error = {0};
    char got[256];
    if (import(text, &made, &error) != SIFR_OK) fail_msg("%s: %s", text, error.message);
    const json_t *sifr = json_object_get(made.config, "sifr");
    const char *template = json_string_value(json_object_get(sifr, "chat_template"));
    char *kwargs = json_dumps(json_object_get(sifr, "chat_template_kwargs"), JSON_COMPACT);
    snprintf(got, sizeof got, "%s %s", template ? template : "-", kwargs ? kwargs : "-");
    assert_string_equal(got, wanted);
    assert_int_equal(made.left, 0);
    free(kwargs);
    json_decref(made.config);
}

static void says(const char *text, const char *line) {
    config_imported made;
    sifr_error error = {0};
    if (import(text, &made, &error) != SIFR_OK) fail_msg("%s: %s", text, error.message);
    if (!strstr(lines, line)) fail_msg("no '%s' in\n%s", line, lines);
    json_decref(made.config);
}

static void refuses(const char *text, const char *part) {
    config_imported made;
    sifr_error error = {0};
    assert_int_equal(import(text, &made, &error), SIFR_USAGE);
    if (!strstr(error.message, part)) fail_msg("%s", error.message);
}

#define CHATS(set) "base_model: m\ndatasets: [{path: a.jsonl, type: chat_template" set "}]\n"

static void of_axolotl(void **state) {
    (void)state;
    makes(CHATS(""), "- -");
    makes(CHATS("") "chat_template: tokenizer_default\n", "- -");
    makes(CHATS("") "chat_template: chatml\n", "chatml -");
    makes(CHATS("") "chat_template: tokenizer_default_fallback_llama3\n",
          "tokenizer_default_fallback_llama3 -");
    makes(CHATS("") "chat_template: jinja\nchat_template_jinja: t.jinja\n", "t.jinja -");
    makes(CHATS("") "chat_template_jinja: '{{ messages }}'\n", "{{ messages }} -");
    makes(CHATS("") "chat_template: gemma\nchat_template_jinja: t.jinja\n", "gemma -");
    makes(CHATS(", chat_template: llama3"), "llama3 -");
    makes(CHATS(", chat_template: tokenizer_default") "chat_template: chatml\n", "- -");
    makes(CHATS("") "chat_template_kwargs: {enable_thinking: false}\n",
          "- {\"enable_thinking\":false}");
    refuses(CHATS("") "chat_template_kwargs: no thinking\n", "an object is expected");
    refuses(
        "base_model: m\ndatasets: [{path: a.jsonl, type: chat_template, chat_template: llama3}, "
        "{path: b.jsonl, type: chat_template}]\n",
        "sources of one run have one chat template here");
    /* A set that goes through no template has none to agree with; text has none at all. */
    says("base_model: m\ndatasets: [{path: a.jsonl, type: chat_template, chat_template: llama3}, "
         "{path: b.jsonl, type: alpaca}]\n",
         "datasets[0].chat_template = \"llama3\": sifr.chat_template\n");
    makes("base_model: m\ndatasets: [{path: a.txt, type: completion}]\nchat_template: chatml\n",
          "- -");
}

static void of_others(void **state) {
    (void)state;
    static const char trl[] = "model_name_or_path: m\ntrain_file: a.jsonl\nuse_peft: false\n";
    char yaml[512];
    snprintf(yaml, sizeof yaml, "%schat_template_path: t.jinja\n", trl);
    makes(yaml, "t.jinja -");
    snprintf(yaml, sizeof yaml, "%schat_template_path: Qwen/Qwen3-0.6B\n", trl);
    refuses(yaml,
            "a template of another tokenizer comes with its tokens, which are not added here; "
            "save the template as a .jinja file");
    static const char factory[] = "model_name_or_path: m\nstage: sft\nfinetuning_type: full\n"
                                  "dataset: x.json\n";
    snprintf(yaml, sizeof yaml, "%senable_thinking: false\n", factory);
    makes(yaml, "- {\"enable_thinking\":false}");
    snprintf(yaml, sizeof yaml, "%senable_thinking: null\n", factory);
    makes(yaml, "- -");
    snprintf(yaml, sizeof yaml, "%senable_thinking: sometimes\n", factory);
    refuses(yaml, "true, false or null is expected");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_axolotl),
        cmocka_unit_test(of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
