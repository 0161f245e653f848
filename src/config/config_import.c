#include "config/config_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/config_private.h"
#include "config/import_private.h"

enum { IMPORT_FILE_LIMIT = 16 << 20, IMPORT_KEYS = 512 };

static const import_source *const import_sources[] = {&import_accelerate, &import_axolotl,
                                                      &import_trainer};

/* torch.save's archive, or a bare pickle. */
static sifr_status import_refuse_pickle(const char *text, size_t size, const char *name,
                                        sifr_error *error) {
    bool zip = size >= 4 && memcmp(text, "PK\x03\x04", 4) == 0;
    bool pickle = size >= 2 && (unsigned char)text[0] == 0x80 && (unsigned char)text[1] < 8;
    if (!zip && !pickle) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: is a pickle, which sifr does not run; make it JSON where transformers is "
                     "installed: python -c \"import torch; print(torch.load('training_args.bin', "
                     "weights_only=False).to_json_string())\" > args.json",
                     name);
}

/* How many keys of the source's marks there are. */
static int import_marks(const import_source *source, const json_t *root) {
    const char *key;
    json_t *value;
    int found = 0;
    json_object_foreach((json_t *)root, key, value) found +=
        config_key_has_word(source->marks, key, NULL, NULL);
    return found;
}

static const import_source *import_find(const json_t *root) {
    const import_source *best = NULL;
    int most = 0;
    for (size_t i = 0; i < sizeof import_sources / sizeof *import_sources; i++) {
        int found = import_marks(import_sources[i], root);
        if (found > most) best = import_sources[i];
        if (found > most) most = found;
    }
    return best;
}

static const import_row *import_row_of(const import_source *source, const char *key) {
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->rows[i].from, key) == 0) return &source->rows[i];
    return NULL;
}

static void import_unknown(import_state *s, const char *key, const json_t *value) {
    const char *names[IMPORT_KEYS];
    char why[200];
    size_t count = 0;
    for (; count < s->kind->count && count < IMPORT_KEYS; count++)
        names[count] = s->kind->rows[count].from;
    const char *near = strlen(key) < 64 ? base_nearest(key, names, count) : NULL;
    if (!import_asks(value)) return;
    snprintf(why, sizeof why, near ? "it is not known; did you mean %s?" : "it is not known", near);
    import_say_left(s, key, value, why);
}

static sifr_status import_walk(import_state *s, json_t *object, const char *prefix) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        char key[256];
        snprintf(key, sizeof key, "%s%s%.120s", prefix, prefix[0] ? "." : "", name);
        bool section = !prefix[0] && config_key_has_word(s->kind->section, name, NULL, NULL);
        if (section && json_is_object(value)) {
            BASE_TRY(import_walk(s, value, name));
            continue;
        }
        const import_row *row = import_row_of(s->kind, key);
        if (!row)
            import_unknown(s, key, value);
        else if (!json_is_null(value))
            BASE_TRY(import_apply(s, row, key, value));
    }
    return SIFR_OK;
}

/* The DeepSpeed config that the text names comes first: other keys fill it in. */
static sifr_status import_read_deepspeed(import_state *s) {
    static const char *const inner = "deepspeed_config_file";
    json_t *value = json_object_get(s->source, "deepspeed");
    if (value && import_row_of(s->kind, "deepspeed"))
        BASE_TRY(import_deepspeed(s, "deepspeed", value));
    value = json_object_get(json_object_get(s->source, "deepspeed_config"), inner);
    return value ? import_deepspeed(s, inner, value) : SIFR_OK;
}

/* JSON is YAML too, but for pairs of \u escapes, as Python writes what is beyond 16 bits. */
static sifr_status import_parse(const char *text, size_t size, const char *name, json_t **out,
                                sifr_error *error) {
    size_t blank = 0;
    while (blank < size && strchr(" \t\r\n", text[blank])) blank++;
    bool object = blank < size && text[blank] == '{';
    if (object && base_json_parse(text, size, name, out, NULL) == SIFR_OK) return SIFR_OK;
    return base_yaml_parse(text, size, name, out, error);
}

static sifr_status import_root(import_state *s, const json_t *root, json_t **out) {
    if (json_is_object(root) && json_object_get(root, "zero_optimization"))
        return base_fail(s->error, SIFR_USAGE,
                         "%s: is a DeepSpeed config; sifr train --config takes it as it is",
                         s->name);
    s->kind = json_is_object(root) ? import_find(root) : NULL;
    if (!s->kind)
        return base_fail(s->error, SIFR_USAGE,
                         "%s: is no config of axolotl, of accelerate or of the Hugging Face "
                         "Trainer: none of their keys is there",
                         s->name);
    BASE_TRY(import_read_deepspeed(s));
    BASE_TRY(import_walk(s, s->source, ""));
    if (s->kind->finish) BASE_TRY(s->kind->finish(s));
    BASE_TRY(config_faults_end(&s->faults, s->error));
    *out = json_incref(s->out);
    return SIFR_OK;
}

sifr_status config_import(const char *text, size_t size, const char *name, config_line *say,
                          void *user, config_imported *out, sifr_error *error) {
    import_state s = {.name = name, .say = say, .user = user, .error = error};
    memset(out, 0, sizeof *out);
    BASE_TRY(import_refuse_pickle(text, size, name, error));
    BASE_TRY(import_parse(text, size, name, &s.source, error));
    s.out = json_object();
    sifr_status status = s.out ? SIFR_OK : base_fail_alloc(error, 64);
    if (status == SIFR_OK) status = import_root(&s, s.source, &out->config);
    if (status == SIFR_OK) {
        out->source = s.kind->name;
        out->left = s.left;
    }
    json_decref(s.source);
    json_decref(s.out);
    return status;
}

sifr_status config_import_file(const char *path, config_line *say, void *user, config_imported *out,
                               sifr_error *error) {
    char *text;
    size_t size;
    memset(out, 0, sizeof *out);
    BASE_TRY(base_read_file(path, IMPORT_FILE_LIMIT, &text, &size, error));
    sifr_status status = config_import(text, size, path, say, user, out, error);
    free(text);
    return status;
}
