/* roles_to_train, train_on_eos, train_on_eot and eot_tokens: what they give a run and its sources,
 * and what is refused. tests/data/test_axolotl_rows.c has what they learn. */
#include "config/config_case.h"

#define OF(text) "{\"sifr\": " text "}"

static void check(const config_turns *turns, size_t roles, const char *eos, const char *eot) {
    assert_true(turns->given);
    assert_int_equal(json_array_size(turns->roles), roles);
    assert_string_equal(turns->eos ? turns->eos : "turn", eos);
    assert_string_equal(turns->eot ? turns->eot : "turn", eot);
}

static void nothing_is_asked_for(void **state) {
    (void)state;
    config_case *c = config_case_text("{}");
    assert_int_equal(c->status, SIFR_OK);
    assert_false(c->config.turns.given);
    assert_null(c->config.eot_tokens);
    config_case_free(c);
}

static void of_a_run(void **state) {
    (void)state;
    config_case *c = config_case_text(OF("{\"roles_to_train\": [\"user\", \"assistant\"], "
                                         "\"eot_tokens\": [\"<|im_end|>\"]}"));
    assert_int_equal(c->status, SIFR_OK);
    check(&c->config.turns, 2, "turn", "turn");
    assert_int_equal(json_array_size(c->config.eot_tokens), 1);
    config_case_free(c);
    /* What ends turns is as what ends texts, unless it is said. */
    c = config_case_flags("{}", 1, "train-on-eos", "last", NULL);
    check(&c->config.turns, 0, "last", "last");
    config_case_free(c);
    c = config_case_flags("{}", 1, "train-on-eos", "none", "train-on-eot", "all", "roles-to-train",
                          "user", NULL);
    check(&c->config.turns, 1, "none", "all");
    config_case_free(c);
}

static void of_sources(void **state) {
    (void)state;
    config_case *c = config_case_text(
        OF("{\"train_on_eos\": \"last\", \"dataset\": [{\"path\": \"a.jsonl\"}, {\"path\": "
           "\"b.jsonl\", \"roles_to_train\": [\"system\"]}, {\"path\": \"c.jsonl\", "
           "\"roles_to_train\": [], \"train_on_eos\": \"all\"}, {\"path\": \"d.jsonl\", "
           "\"train_on_eot\": \"none\"}]}"));
    assert_int_equal(c->status, SIFR_OK);
    check(&c->config.dataset[0].turns, 0, "last", "last");
    assert_null(c->config.dataset[0].turns.roles);
    check(&c->config.dataset[1].turns, 1, "last", "last");
    check(&c->config.dataset[2].turns, 0, "all", "all");
    assert_non_null(c->config.dataset[2].turns.roles);
    check(&c->config.dataset[3].turns, 0, "last", "none");
    config_case_free(c);
}

static void refused(void **state) {
    (void)state;
    config_refused(OF("{\"roles_to_train\": [\"model\"]}"),
                   "ds.json: sifr.roles_to_train: \"model\" is no role of a message (roles: "
                   "assistant|user|system|tool|gpt|human|developer|function|ipython|context|"
                   "documents|document|tool_call)");
    config_refused(OF("{\"roles_to_train\": [\"user\"], \"train_on\": \"last\"}"),
                   "ds.json: sifr.roles_to_train: it says what of messages is learned, and so does "
                   "train_on last; leave one of them out");
    config_refused(OF("{\"train_on_eos\": \"all\", \"train_on\": \"assistant_only\"}"),
                   "ds.json: sifr.train_on_eos: it says what of messages is learned, and so does "
                   "train_on assistant_only; leave one of them out");
    config_refused(OF("{\"roles_to_train\": [\"user\"], \"train_on\": \"all\"}"),
                   "ds.json: sifr.roles_to_train: with train_on all every role is learned; leave "
                   "one of them out");
    config_refused(OF("{\"eot_tokens\": [\"<|im_end|>\"]}"),
                   "ds.json: sifr.eot_tokens: it acts beside roles_to_train, train_on_eos or "
                   "train_on_eot, and none is given; leave it out, or give train_on_eos turn");
    config_refused(OF("{\"dataset\": [{\"path\": \"a.jsonl\", \"train_on_eos\": \"each\"}]}"),
                   "ds.json: sifr.dataset[0].train_on_eos must be one of turn|all|last|none");
    config_refused(OF("{\"dataset\": [{\"path\": \"a.jsonl\", \"roles_to_train\": \"user\"}]}"),
                   "ds.json: sifr.dataset[0].roles_to_train must be a list of roles, such as "
                   "[\"assistant\"]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_asked_for),
        cmocka_unit_test(of_a_run),
        cmocka_unit_test(of_sources),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
