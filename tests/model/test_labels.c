/* Names of labels: of config.json, of a list, and finding them. */
#include "support/scratch.h"

#include "base/json.h"
#include "model/labels.h"

static model_labels labels;
static sifr_error error;

static sifr_status parse(const char *text) {
    json_t *config;
    error = (sifr_error){0};
    assert_int_equal(base_json_parse(text, strlen(text), "config.json", &config, &error), SIFR_OK);
    sifr_status status = model_labels_read(config, "config.json", &labels, &error);
    json_decref(config);
    return status;
}

static void from_config(void **state) {
    (void)state;
    assert_int_equal(parse("{\"id2label\": {\"1\": \"no\", \"0\": \"yes\", \"2\": \"a b\"}, "
                           "\"label2id\": {\"yes\": 0, \"a b\": \"2\", \"no\": 1}}"),
                     SIFR_OK);
    assert_int_equal(labels.count, 3);
    assert_string_equal(labels.names[0], "yes");
    assert_string_equal(labels.names[1], "no");
    assert_int_equal(model_labels_find(&labels, "no, or more", 2), 1);
    assert_int_equal(model_labels_find(&labels, "a b", 3), 2);
    assert_int_equal(model_labels_find(&labels, "a", 1), -1);
    assert_int_equal(model_labels_find(&labels, "yes!", 4), -1);
    assert_int_equal(model_labels_find(&labels, "", 0), -1);
    assert_int_equal(model_labels_find(&labels, "no\0", 3), -1);

    assert_int_equal(parse("{\"num_labels\": 12}"), SIFR_OK);
    assert_int_equal(labels.count, 12);
    for (int64_t i = 0; i < labels.count; i++) {
        char name[16];
        snprintf(name, sizeof name, "LABEL_%d", (int)i);
        assert_string_equal(labels.names[i], name);
        assert_int_equal(model_labels_find(&labels, name, strlen(name)), i);
    }
    assert_int_equal(parse("{\"id2label\": null, \"label2id\": null}"), SIFR_OK);
    assert_int_equal(labels.count, 2);
    model_labels_free(&labels);
}

static void refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"\"id2label\": [\"a\", \"b\"]", "\"id2label\" must be an object"},
        {"\"id2label\": {}", "\"id2label\" must be an object"},
        {"\"id2label\": {\"0\": \"a\", \"2\": \"b\"}", "the key \"2\""},
        {"\"id2label\": {\"0\": \"a\", \"01\": \"b\"}", "the key \"01\""},
        {"\"id2label\": {\"-1\": \"a\"}", "the key \"-1\""},
        {"\"id2label\": {\"99999999999999999999\": \"a\"}", "the key \"99999999999999999999\""},
        {"\"id2label\": {\"a\": 0}", "the key \"a\""},
        {"\"id2label\": {\"0\": 7}", "that of 0 is no string"},
        {"\"id2label\": {\"0\": \"a\", \"1\": \"a\"}",
         "\"id2label\": the label \"a\" stands twice"},
        {"\"id2label\": {\"0\": \"a\"}, \"num_labels\": 2", "\"num_labels\" is 2"},
        {"\"id2label\": {\"0\": \"a\"}, \"label2id\": {\"a\": 1}", "\"label2id\" gives \"a\""},
        {"\"id2label\": {\"0\": \"a\"}, \"label2id\": {\"b\": 0}", "\"label2id\" gives \"b\""},
        {"\"id2label\": {\"0\": \"a\"}, \"label2id\": {\"a\": true}", "\"label2id\" gives \"a\""},
        {"\"label2id\": {\"a\": 0, \"b\": 1}", "\"label2id\" gives \"a\""},
        {"\"label2id\": []", "\"label2id\" must be an object"},
        {"\"num_labels\": 0", "\"num_labels\" is 0, must be in 1"},
        {"\"num_labels\": 9999999999", "\"num_labels\" is 9999999999, must be in 1"},
        {"\"num_labels\": \"3\"", "\"num_labels\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[512];
        snprintf(text, sizeof text, "{%s}", bad[i][0]);
        if (parse(text) != SIFR_USAGE) fail_msg("%s is accepted", text);
        assert_message(&error, bad[i][1]);
        assert_int_equal(strncmp(error.message, "config.json: ", 13), 0);
        assert_null(labels.names);
    }
}

static void made(void **state) {
    (void)state;
    static const char *const names[] = {"b", "a", "a"};
    model_labels two = {0}, other = {0};
    assert_int_equal(model_labels_make(names, 2, "--labels", &two, &error), SIFR_OK);
    assert_int_equal(model_labels_make(names, 2, "--labels", &other, &error), SIFR_OK);
    assert_true(model_labels_equal(&two, &other));
    assert_int_equal(model_labels_find(&two, "a", 1), 1);
    assert_int_equal(model_labels_make(names + 1, 1, "--labels", &other, &error), SIFR_OK);
    assert_false(model_labels_equal(&two, &other));
    assert_int_equal(model_labels_make(names, 3, "--labels", &other, &error), SIFR_USAGE);
    assert_message(&error, "--labels: the label \"a\" stands twice");
    assert_int_equal(model_labels_make(names, 0, "--labels", &other, &error), SIFR_USAGE);
    assert_null(other.names);
    model_labels_free(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(from_config), cmocka_unit_test(refused),
                                       cmocka_unit_test(made)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
