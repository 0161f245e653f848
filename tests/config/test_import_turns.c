/* Whose turns an axolotl config learns, and which ends of turns: the keys of its sets of messages.
 */
#include "config/import_case.h"

static const char head[] = "base_model: m\n";

/* The keys of turns that the config has, and those of its sources. */
static json_t *turns_of(const json_t *config) {
    static const char *const keys[] = {"roles_to_train", "train_on_eos", "train_on_eot",
                                       "eot_tokens", "train_on"};
    const json_t *own = json_object_get(config, "sifr");
    json_t *out = json_array(), *source;
    size_t i;
    json_array_append(out, (json_t *)(uintptr_t)own);
    json_array_foreach(json_object_get(own, "dataset"), i, source) json_array_append(out, source);
    json_t *all = json_array(), *object;
    json_array_foreach(out, i, object) {
        json_t *found = json_object();
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (json_object_get(object, keys[k]))
                json_object_set(found, keys[k], json_object_get(object, keys[k]));
        json_array_append_new(all, found);
    }
    json_decref(out);
    return all;
}

/* What the config and its sources have; the import's lines are in `lines`. */
static void makes(const char *text, const char *wanted) {
    char whole[600];
    config_imported made;
    sifr_error error = {0};
    snprintf(whole, sizeof whole, "%s%s", head, text);
    if (import(whole, &made, &error) != SIFR_OK) fail_msg("%s: %s", whole, error.message);
    json_t *got = turns_of(made.config), *other = json_loads(wanted, 0, NULL);
    assert_non_null(other);
    if (!json_equal(got, other)) fail_msg("%s: made\n%s\n%s", text, json_dumps(got, 0), lines);
    assert_int_equal(made.left, 0);
    json_decref(other);
    json_decref(got);
    json_decref(made.config);
}

static void refuses(const char *text, const char *key, const char *why) {
    char whole[600], wanted[120];
    config_imported made;
    sifr_error error = {0};
    snprintf(whole, sizeof whole, "%s%s", head, text);
    snprintf(wanted, sizeof wanted, "a.yaml: %s is ", key);
    assert_int_equal(import(whole, &made, &error), SIFR_USAGE);
    if (strncmp(error.message, wanted, strlen(wanted)) != 0) fail_msg("%s", error.message);
    if (!strstr(error.message, why)) fail_msg("%s", error.message);
}

static void of_one_set(void **state) {
    (void)state;
    makes("datasets: [{path: a.jsonl, type: chat_template}]\n",
          "[{\"roles_to_train\": [\"assistant\"], \"train_on_eos\": \"turn\"}, {}]");
    assert_non_null(strstr(lines, "its default of train_on_eos = \"turn\": sifr.train_on_eos\n"));
    makes("datasets: [{path: a.jsonl, type: chat_template, roles_to_train: [gpt, user], "
          "train_on_eos: last, train_on_eot: none}]\neot_tokens: ['<|im_end|>']\n",
          "[{\"roles_to_train\": [\"gpt\", \"user\"], \"train_on_eos\": \"last\", "
          "\"train_on_eot\": \"none\", \"eot_tokens\": [\"<|im_end|>\"]}, {}]");
    assert_non_null(strstr(lines, "datasets[0].train_on_eot = \"none\": sifr.train_on_eot\n"));
    makes("datasets: [{path: a.jsonl, type: chat_template, roles_to_train: []}]\n",
          "[{\"roles_to_train\": [], \"train_on_eos\": \"turn\"}, {}]");
    /* Of every role, but the ends as they are said. */
    makes("datasets: [{path: a.jsonl, type: chat_template, roles_to_train: [user], train_on_eos: "
          "all}]\ntrain_on_inputs: true\n",
          "[{\"train_on_eos\": \"all\", \"train_on\": \"all\"}, {}]");
    assert_non_null(strstr(lines, "train_on_inputs learns every role"));
}

/* The first set's count for all that does not say otherwise. */
static void of_several_sets(void **state) {
    (void)state;
    makes(
        "datasets: [{path: t.jsonl, type: alpaca, train_on_eos: all}, {path: a.jsonl, type: "
        "chat_template, train_on_eos: all}, {path: b.jsonl, type: chat_template}, {path: c.jsonl, "
        "type: chat_template, roles_to_train: [assistant], train_on_eos: all}]\n",
        "[{\"roles_to_train\": [\"assistant\"], \"train_on_eos\": \"all\"}, {}, {}, "
        "{\"roles_to_train\": [\"assistant\"], \"train_on_eos\": \"turn\"}, {}]");
    assert_non_null(strstr(lines, "datasets[0].train_on_eos = \"all\": no effect here: rows of its "
                                  "type have no turns\n"));
    makes(
        "datasets: [{path: a.jsonl, type: chat_template, train_on_eot: all}, {path: b.jsonl, type: "
        "chat_template}]\n",
        "[{\"roles_to_train\": [\"assistant\"], \"train_on_eos\": \"turn\", \"train_on_eot\": "
        "\"all\"}, {}, {\"roles_to_train\": [\"assistant\"], \"train_on_eos\": \"turn\", "
        "\"train_on_eot\": \"turn\"}]");
    makes("datasets: [{path: a.jsonl, type: chat_template, train_on_eos: all}]\ntest_datasets: "
          "[{path: t.jsonl, type: chat_template, train_on_eos: all}]\n",
          "[{\"roles_to_train\": [\"assistant\"], \"train_on_eos\": \"all\"}, {}]");
    makes("datasets: [{path: a.jsonl, type: alpaca}]\neot_tokens: ['</s>']\n", "[{}, {}]");
}

static void refused(void **state) {
    (void)state;
    refuses("roles_to_train: [user]\n", "roles_to_train", "in an entry of datasets alone");
    refuses("train_on_eos: all\n", "train_on_eos", "in an entry of datasets alone");
    refuses("datasets: [{path: a.jsonl, type: chat_template, roles_to_train: [model]}]\n",
            "datasets[0].roles_to_train", "messages here have no such role");
    refuses("datasets: [{path: a.jsonl, type: chat_template, roles_to_train: user}]\n",
            "datasets[0].roles_to_train", "axolotl takes a list of roles");
    refuses("datasets: [{path: a.jsonl, type: chat_template, train_on_eos: each}]\n",
            "datasets[0].train_on_eos", "turn, all, last or none is expected");
    refuses("datasets: [{path: a.jsonl, type: chat_template, train_on_eos: all}]\ntest_datasets: "
            "[{path: t.jsonl, type: chat_template}]\n",
            "test_datasets[0]", "held-out rows are learned as those of the first set");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_set),
        cmocka_unit_test(of_several_sets),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
