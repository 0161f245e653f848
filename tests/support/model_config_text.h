/* For tests of config.json: what a text is read as, and the defaults of transformers' classes. */
#ifndef TESTS_MODEL_CONFIG_TEXT_H
#define TESTS_MODEL_CONFIG_TEXT_H

#include "base/json.h"
#include "model/model_config.h"
#include "model/registry.h"
#include "support/scratch.h"

static model_config config; /* of the last text */
static sifr_error error;

static inline sifr_status parse(const char *text) {
    error = (sifr_error){0};
    return model_config_parse(text, strlen(text), "config.json", &config, &error);
}

/* `members` beside the model_type. */
static inline sifr_status parse_with(const char *type, const char *members) {
    char text[4096];
    snprintf(text, sizeof text, "{\"model_type\": \"%s\"%s%s}", type, *members ? ", " : "",
             members);
    return parse(text);
}

/* What the class of a type says of every key reads as a config that names the type alone: of at
 * least so many types of the file tests/golden/`place`. */
static inline void expect_defaults(const char *place, int least) {
    char path[1024];
    const char *type;
    json_t *all, *written;
    int known = 0;
    snprintf(path, sizeof path, "%s/tests/golden/%s", getenv("SOURCE") ? getenv("SOURCE") : ".",
             place);
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
    assert_true(known >= least);
}

#endif
