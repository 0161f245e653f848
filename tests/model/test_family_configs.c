/* config.json of the decoder families: defaults of transformers' classes, keys in both spellings,
 * refusals by name. */
#include "support/scratch.h"

#include "base/json.h"
#include "model/model_config.h"
#include "model/registry.h"

static model_config config;
static sifr_error error;

static sifr_status parse(const char *text) {
    error = (sifr_error){0};
    return model_config_parse(text, strlen(text), "config.json", &config, &error);
}

/* `members` beside the model_type. */
static sifr_status parse_with(const char *type, const char *members) {
    char text[4096];
    snprintf(text, sizeof text, "{\"model_type\": \"%s\"%s%s}", type, *members ? ", " : "",
             members);
    return parse(text);
}

/* What the class of a type says of every key reads as a config that names the type alone. */
static void defaults(void **state) {
    (void)state;
    char path[1024];
    const char *type;
    json_t *all, *written;
    int known = 0;
    snprintf(path, sizeof path, "%s/tests/golden/families/defaults.json",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    assert_int_equal(base_json_load(path, 1 << 20, &all, &error), SIFR_OK);
    json_object_foreach(all, type, written) {
        if (!model_architecture_find(type)) continue;
        static model_config bare;
        char *text = json_dumps(written, 0);
        if (parse_with(type, "") != SIFR_OK) fail_msg("%s", error.message);
        bare = config;
        if (parse(text) != SIFR_OK) fail_msg("%s", error.message);
        free(text);
        if (memcmp(&bare, &config, sizeof bare) != 0) fail_msg("%s has other defaults", type);
        known++;
    }
    json_decref(all);
    assert_true(known >= 1);
}

static const struct {
    const char *type, *members, *part;
} refusals[] = {
    {"llama", "\"sliding_window\": 8", "\"sliding_window\": 8"},
};

static void refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (parse_with(refusals[i].type, refusals[i].members) != SIFR_USAGE)
            fail_msg("%s: %s is accepted", refusals[i].type, refusals[i].members);
        assert_message(&error, refusals[i].part);
        assert_int_equal(strncmp(error.message, "config.json: ", 13), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
