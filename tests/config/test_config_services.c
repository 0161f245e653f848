/* Sections of services that other programs read: which are asked for, and that their secrets are
 * shown nowhere. */
#include "config/config_case.h"

/* Of a section that is off, too: neither --dry-run nor the output's sifr_config.json has it. */
static void a_secret_is_shown_nowhere(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"comet\": {\"api_key\": \"sesame\", \"project\": \"p\"}}");
    assert_int_equal(c->status, SIFR_OK);
    assert_null(strstr(c->lines, "sesame"));
    assert_non_null(strstr(c->lines, "comet.api_key = (not shown): "));
    json_t *effective = config_effective(&c->config);
    char *text = json_dumps(effective, 0);
    assert_null(strstr(text, "sesame"));
    assert_non_null(strstr(text, "\"project\""));
    free(text);
    json_decref(effective);
    config_case_free(c);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_secret_is_shown_nowhere),
                                       cmocka_unit_test(services_are_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
