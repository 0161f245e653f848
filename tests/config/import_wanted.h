/* Imports of other programs' configs beside the config that is wanted, what is said, and what is
 * refused. Included by one test file each. */
#ifndef CONFIG_IMPORT_WANTED_H
#define CONFIG_IMPORT_WANTED_H

#include "config/config_case.h"

#include "config/import/config_import.h"

typedef struct import_case {
    config_imported made;
    sifr_error error;
    sifr_status status;
    char lines[16384];
} import_case;

static void keep_line(void *user, const char *line) {
    import_case *c = user;
    size_t used = strlen(c->lines);
    snprintf(c->lines + used, sizeof c->lines - used, "%s\n", line);
}

static import_case import(const char *text) {
    import_case c = {0};
    c.status = config_import(text, strlen(text), "a.yaml", NULL, keep_line, &c, &c.made, &c.error);
    return c;
}

static void set_usual(json_t *object, const char *section, const char *key, json_t *value) {
    json_t *part = json_object_get(object, section);
    if (!part) json_object_set_new(object, section, part = json_object());
    if (!json_object_get(part, key)) json_object_set(part, key, value);
    json_decref(value);
}

static bool names(const char *text, const char *const *keys) {
    for (; *keys; keys++)
        if (strstr(text, *keys)) return true;
    return false;
}

static bool has_messages(const json_t *sources) {
    bool found = false;
    for (size_t i = 0; i < json_array_size(sources); i++) {
        const json_t *type = json_object_get(json_array_get(sources, i), "type");
        const char *word = json_string_value(type);
        found |= word && (strcmp(word, "messages") == 0 || strcmp(word, "sharegpt") == 0);
    }
    return found;
}

/* What programs take where nothing is said, added to what is wanted. */
static void add_usual(const char *text, json_t *wanted) {
    static const char *const factory[] = {"finetuning_type", "\nstage:", NULL};
    static const char *const trl[] = {"use_peft", "_only_loss", "dataset_text_field", NULL};
    const json_t *own = json_object_get(wanted, "sifr");
    bool warms = json_object_get(own, "warmup_ratio") || json_object_get(own, "warmup_steps");
    if (names(text, factory)) {
        set_usual(wanted, "sifr", "seq_length", json_integer(2048));
    } else if (names(text, trl)) {
        set_usual(wanted, "sifr", "learning_rate", json_real(2e-5));
        set_usual(wanted, "sifr", "seq_length", json_integer(1024));
        set_usual(wanted, "bf16", "enabled", json_true());
        set_usual(wanted, "sifr", "train_on", json_string("completion"));
    }
    if (strncmp(text, "base_model", 10) != 0) return;
    if (has_messages(json_object_get(own, "dataset"))) {
        set_usual(wanted, "sifr", "train_on_eos", json_string("turn"));
        if (!json_object_get(own, "train_on"))
            set_usual(wanted, "sifr", "roles_to_train", json_pack("[s]", "assistant"));
    }
    if (json_object_get(own, "dataset")) set_usual(wanted, "sifr", "drop_long_rows", json_true());
    set_usual(wanted, "sifr", "seq_length", json_integer(512));
    set_usual(wanted, "sifr", "per_device_train_batch_size", json_integer(1));
    if (!json_object_get(own, "max_steps"))
        set_usual(wanted, "sifr", "num_train_epochs", json_integer(1));
    if (!warms) set_usual(wanted, "sifr", "warmup_ratio", json_real(0.03));
    if (!json_object_get(wanted, "fp16")) set_usual(wanted, "bf16", "enabled", json_true());
}

/* Made as this config, and as many keys are left. */
static void makes(const char *text, const char *wanted, size_t left) {
    import_case c = import(text);
    if (c.status != SIFR_OK) fail_msg("%s: %s", text, c.error.message);
    char *got = json_dumps(c.made.config, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
    json_t *other = json_loads(wanted, 0, NULL);
    assert_non_null(other);
    add_usual(text, other);
    char *sorted = json_dumps(other, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
    assert_string_equal(got, sorted);
    if (c.made.left != left) fail_msg("%zu left, not %zu:\n%s", c.made.left, left, c.lines);
    free(got);
    free(sorted);
    json_decref(other);
    json_decref(c.made.config);
}

static void says(const char *text, const char *line) {
    import_case c = import(text);
    if (c.status != SIFR_OK) fail_msg("%s: %s", text, c.error.message);
    if (!strstr(c.lines, line)) fail_msg("no line \"%s\" in:\n%s", line, c.lines);
    json_decref(c.made.config);
}

static void refuses(const char *text, const char *message) {
    import_case c = import(text);
    if (c.status != SIFR_USAGE) fail_msg("not refused: %s", text);
    assert_string_equal(c.error.message, message);
    assert_null(c.made.config);
}

#endif
