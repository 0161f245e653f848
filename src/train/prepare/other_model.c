#include "train/prepare/other_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

enum { LARGEST = 16 << 20, VALUE_LENGTH = 100 };

/* Keys that no step reads: notes of programs, what first values are drawn from, and what a run
 * itself puts into its output (engine_folder_put_config). */
static bool is_idle(const char *key) {
    static const char *const names[] = {
        "transformers_version", "torch_dtype", "dtype",    "use_cache",  "initializer_range",
        "architectures",        "id2label",    "label2id", "num_labels", "problem_type"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i]) == 0) return true;
    return key[0] == '_';
}

static json_t *load(const char *folder) {
    char path[BASE_PATH_LENGTH];
    json_t *json = NULL;
    sifr_error ignored;
    if (base_path_join(path, folder, "config.json", &ignored) != SIFR_OK) return NULL;
    return base_json_load(path, LARGEST, &json, &ignored) == SIFR_OK ? json : NULL;
}

static const char *print(const json_t *value, char out[VALUE_LENGTH]) {
    char *text =
        value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    snprintf(out, VALUE_LENGTH, "%s", text ? text : "nothing");
    free(text);
    return out;
}

/* One that is null is as if it were not there. */
static const json_t *value_of(const json_t *config, const char *key) {
    const json_t *value = json_object_get(config, key);
    return json_is_null(value) ? NULL : value;
}

static void compare(const char *key, const json_t *was, const json_t *now, const char *output,
                    const char *model, const sifr_log *log) {
    const json_t *before = value_of(was, key), *after = value_of(now, key);
    char old[VALUE_LENGTH], new[VALUE_LENGTH];
    bool same = before && after ? json_equal(before, after) : before == after;
    if (same || is_idle(key)) return;
    base_log(log, SIFR_LOG_WARNING,
             "%s was made with %s %s in config.json, %s has %s: continuing, but results will "
             "differ from an unchanged run",
             output, key, print(before, old), model, print(after, new));
}

void train_warn_other_model(const char *output, const char *model, const sifr_log *log) {
    json_t *was = load(output), *now = load(model), *value;
    const char *key;
    if (was && now) {
        json_object_foreach(was, key, value) compare(key, was, now, output, model, log);
        json_object_foreach(now, key, value) {
            if (!json_object_get(was, key)) compare(key, was, now, output, model, log);
        }
    }
    json_decref(was);
    json_decref(now);
}
