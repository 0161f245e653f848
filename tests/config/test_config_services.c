/* Sections of services that other programs read: which are asked for, and that their secrets are
 * shown nowhere. */
#include "config/config_case.h"

/* Of a section that is off, too: neither --dry-run nor the output's sifr_config.json has it. */
static void a_secret_is_shown_nowhere(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"comet\": {\"api_key\": \"sesame\", \"project\": \"p\"}, "
                                      "\"swanlab\": {\"login\": [{\"api_key\": \"sesame\"}]}}");
    assert_int_equal(c->status, SIFR_OK);
    assert_null(strstr(c->lines, "sesame"));
    assert_non_null(strstr(c->lines, "comet.api_key = (not shown): "));
    assert_non_null(strstr(c->lines, "swanlab = (not shown): "));
    json_t *effective = config_effective(&c->config);
    char *text = json_dumps(effective, 0);
    assert_null(strstr(text, "sesame"));
    assert_non_null(strstr(text, "\"project\""));
    free(text);
    json_decref(effective);
    config_case_free(c);
}

/* sifr does not know SwanLab's keys, and so not which of them is a login. */
static void a_section_without_known_keys_is_shown_nowhere(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"swanlab\": \"sesame\"}",
        "{\"swanlab\": [\"sesame\"]}",
        "{\"swanlab\": {\"enabled\": \"sesame\"}}",
        "{\"swanlab\": {\"login\": {\"api-key\": \"sesame\"}}}",
        "{\"swanlab\": {\"swanlab_key\": \"sesame\"}}",
        "{\"swanlab\": {\"a\": [{\"auth\": \"sesame\"}]}}",
        "{\"swanlab\": {\"host\": \"https://u:sesame@h\"}}",
        "{\"wandb\": {\"team\": \"https://u:sesame@h\"}}",
        "{\"comet\": {\"workspace\": \"https://u:sesame@h\"}}",
        "{\"monitor_config\": {\"comet\": {\"api_key\": \"sesame\"}}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        config_case *c = config_case_text(texts[i]);
        assert_int_equal(c->status, SIFR_OK);
        if (strstr(c->lines, "sesame")) fail_msg("%s", c->lines);
        json_t *effective = config_effective(&c->config);
        char *text = json_dumps(effective, 0);
        if (strstr(text, "sesame")) fail_msg("%s: stored", texts[i]);
        free(text);
        json_decref(effective);
        config_case_free(c);
    }
}

static void services_are_asked_for(void **state) {
    (void)state;
    config_case *c =
        config_case_text("{\"wandb\": {\"enabled\": true}, \"comet\": {\"mode\": \"get\"},"
                         " \"swanlab\": {\"project\": \"p\"}}");
    assert_int_equal(c->status, SIFR_OK);
    assert_true(config_gives_section(&c->config, "wandb"));
    assert_false(config_gives_section(&c->config, "comet"));
    assert_true(config_gives_section(&c->config, "swanlab"));
    config_case_free(c);
    c = config_case_text("{\"swanlab\": {\"enabled\": false}}");
    assert_false(config_gives_section(&c->config, "swanlab"));
    config_case_free(c);
}

/* What has the wrong type may be a token; its place and its type suffice. */
static void a_misplaced_secret_is_shown_nowhere(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"sifr\": {\"mlflow\": \"sesame\"}}",
        "{\"sifr\": {\"mlflow\": {\"token\": \"sesame\"}}}",
        "{\"sifr\": {\"mlflow_artifacts\": \"sesame\"}}",
        "{\"wandb\": \"sesame\"}",
        "{\"comet\": {\"enabled\": \"sesame\"}}",
        "{\"comet\": {\"api_key\": [\"sesame\"]}}",
        "{\"monitor_config\": {\"wandb\": \"sesame\"}}",
        "{\"sifr\": {\"seq_length\": [{\"hf_token\": \"sesame\"}]}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        config_case *c = config_case_text(texts[i]);
        assert_int_equal(c->status, SIFR_USAGE);
        if (strstr(c->error.message, "sesame")) fail_msg("%s", c->error.message);
        assert_non_null(strstr(c->error.message, ", which is not shown"));
        config_case_free(c);
    }
    config_refused("{\"sifr\": {\"mlflow\": \"sesame\"}}",
                   "ds.json: sifr.mlflow must be true or false or \"auto\", not a string, which is "
                   "not shown; its default is false");
}

/* A hint that leads to what is refused helps nobody. */
static void no_hint_leads_to_a_refused_key(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"api_key\": \"sesame\"}");
    assert_int_equal(c->status, SIFR_USAGE);
    assert_null(strstr(c->error.message, "comet"));
    assert_null(strstr(c->error.message, "sesame"));
    assert_non_null(strstr(c->error.message, "ds.json: unknown key api_key; "));
    config_case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_shown_nowhere),
        cmocka_unit_test(a_section_without_known_keys_is_shown_nowhere),
        cmocka_unit_test(a_misplaced_secret_is_shown_nowhere),
        cmocka_unit_test(no_hint_leads_to_a_refused_key), cmocka_unit_test(services_are_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
