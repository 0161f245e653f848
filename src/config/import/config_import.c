#include "config/import/config_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/config_private.h"
#include "config/import/import_private.h"

enum { IMPORT_FILE_LIMIT = 16 << 20 };

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

static const import_row *import_row_of(const import_source *source, const char *key) {
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->rows[i].from, key) == 0) return &source->rows[i];
    return NULL;
}

static bool is_empty(const json_t *value) {
    return !import_is_given(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* A key without a row: kept for the refusal that lists all of them, unless it asks for nothing. */
static void import_unknown(import_state *s, const char *key, json_t *value, bool nested) {
    if (is_empty(value)) return;
    const char *why = !nested && import_knows(s->kind, key) ? import_idle_reason(key) : NULL;
    if (!nested && import_is_default(s->kind, key, value))
        import_say_idle(s, key, value, "its default");
    else if (why)
        import_say_idle(s, key, value, why);
    else if (import_is_allowed(s, key))
        import_say_left(s, key, value, "allowed by --allow");
    else
        json_object_set(s->unknown, key, value);
}

/* A row whose value would be refused or reported, where it is what the program takes anyway. */
static bool is_usual(const import_state *s, const import_row *row, const char *key,
                     const json_t *value) {
    bool judged = row->action == IMPORT_REFUSE || row->action == IMPORT_NONE ||
                  row->action == IMPORT_NEED || row->action == IMPORT_EXPECT;
    return judged && import_row_asks(row, value) && import_is_default(s->kind, key, value);
}

static sifr_status import_key(import_state *s, const char *key, json_t *value, bool nested) {
    const import_row *row = import_row_of(s->kind, key);
    if (!row || (!nested && !import_knows(s->kind, key))) {
        import_unknown(s, key, value, nested);
        return SIFR_OK;
    }
    if (json_is_null(value)) return SIFR_OK;
    if (is_usual(s, row, key, value)) {
        import_say_idle(s, key, value, "its default");
        return SIFR_OK;
    }
    return import_apply(s, row, key, value);
}

enum { KEY_LENGTH = 256 };

/* Writes the key's whole name; whether it is a section, whose keys come one by one. */
static bool name_key(const import_state *s, const char *prefix, const char *name,
                     const json_t *value, char key[KEY_LENGTH]) {
    snprintf(key, KEY_LENGTH, "%s%s%.120s", prefix, prefix[0] ? "." : "", name);
    return !prefix[0] && config_key_has_word(s->kind->section, name, NULL, NULL) &&
           json_is_object(value);
}

static sifr_status import_walk(import_state *s, json_t *object, const char *prefix) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        char key[KEY_LENGTH];
        if (name_key(s, prefix, name, value, key))
            BASE_TRY(import_walk(s, value, name));
        else
            BASE_TRY(import_key(s, key, value, prefix[0]));
    }
    return SIFR_OK;
}

/* "learning_rat = 3 (did you mean learning_rate?), …": all of them, as many as a line has room for.
 */
static sifr_status refuse_unknown(import_state *s) {
    enum { ITEM = 160 };
    char list[SIFR_ERROR_LENGTH / 2], item[ITEM], text[96], quoted[80];
    size_t used = 0, shown = 0, count = json_object_size(s->unknown);
    const char *key;
    json_t *value;
    sifr_error fault;
    if (count == 0) return SIFR_OK;
    list[0] = '\0';
    json_object_foreach(s->unknown, key, value) {
        bool plain = strlen(key) < 72 && !key[strcspn(key, "\n\r\t\"\\")];
        bool known = import_knows(s->kind, key);
        const char *near = known ? NULL : import_nearest(s->kind, key);
        snprintf(item, sizeof item, "%s%s = %.40s%s%s%s", shown ? ", " : "",
                 plain ? key : config_quote(key, quoted, sizeof quoted),
                 import_value_text(key, value, text, sizeof text), near ? " (did you mean " : "",
                 near ? near : "", near ? "?)" : "");
        if (used + strlen(item) + 40 > sizeof list) break;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s", item);
        shown++;
    }
    if (shown < count) snprintf(list + used, sizeof list - used, " and %zu more", count - shown);
    sifr_status status = base_fail(&fault, SIFR_USAGE,
                                   "%.200s: no counterpart is known of %zu key%s of %s (%s): %s; "
                                   "take them out, or let them pass with --allow KEY",
                                   s->name, count, count == 1 ? "" : "s", s->kind->name,
                                   import_version(s->kind), list);
    return config_faults_add(&s->faults, status, &fault);
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

/* Whose file it is. */
static sifr_status import_choose(import_state *s, const char *from) {
    char line[120];
    if (!from) {
        s->kind = json_is_object(s->source) ? import_find(s) : NULL;
        if (s->kind) return SIFR_OK;
        return base_fail(s->error, SIFR_USAGE,
                         "%s: is no config of axolotl, of accelerate or of the Hugging Face "
                         "Trainer: none of their keys is there",
                         s->name);
    }
    s->kind = import_by_word(from);
    if (!s->kind)
        return base_fail(s->error, SIFR_USAGE, "--from %.60s: no such program (known: %s)", from,
                         SIFR_IMPORT_FROM);
    if (!json_is_object(s->source))
        return base_fail(s->error, SIFR_USAGE, "%s: has no keys", s->name);
    snprintf(line, sizeof line, "read as %s (%s), as --from says", s->kind->name,
             import_version(s->kind));
    s->say(s->user, line);
    return SIFR_OK;
}

/* Whether a word of --allow may be a key: of the file, of a program, or a member of one. */
static bool is_key(const import_state *s, const char *word) {
    static const char info[] = "dataset_info.json.";
    char first[128];
    size_t size = strlen(word);
    if (json_object_get(s->source, word) || json_object_get(s->said, word)) return true;
    if (strchr(word, '/') || (size > 5 && strcmp(word + size - 5, ".json") == 0)) return false;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(word, ".["), word);
    return json_object_get(s->source, first) || import_any_knows(first) ||
           strncmp(word, info, strlen(info)) == 0;
}

/* A key that was to pass, and is not there: a line. A word that is no key at all is misspelt, or
 * the path of the file to write, which would be missed without a word. */
static sifr_status check_allowed(import_state *s) {
    char line[160];
    sifr_error fault;
    for (size_t i = 0; i < s->allow_count; i++) {
        const char *word = s->allow[i];
        if (!is_key(s, word)) {
            sifr_status status = base_fail(&fault, SIFR_USAGE,
                                           "--allow %.200s: there is no such key; all words behind "
                                           "--allow are keys, so OUT stands before it",
                                           word);
            BASE_TRY(config_faults_add(&s->faults, status, &fault));
            continue;
        }
        if (json_object_get(s->source, word) || json_object_get(s->said, word) ||
            strpbrk(word, ".["))
            continue;
        snprintf(line, sizeof line, "--allow %.80s: the file has no such key", word);
        s->say(s->user, line);
    }
    return SIFR_OK;
}

/* What no line was about, so that each key has one. */
static void say_rest(import_state *s, json_t *object, const char *prefix) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        char key[KEY_LENGTH];
        if (name_key(s, prefix, name, value, key))
            say_rest(s, value, name);
        else if (!json_is_null(value) && !json_object_get(s->said, key) &&
                 !json_object_get(s->said, name))
            import_say_idle(s, key, value,
                            import_asks(value) ? "other keys say what it does"
                                               : "it asks for nothing");
    }
}

static sifr_status import_root(import_state *s, const char *from, json_t **out) {
    const json_t *root = s->source;
    if (json_is_object(root) && json_object_get(root, "zero_optimization"))
        return base_fail(s->error, SIFR_USAGE,
                         "%s: is a DeepSpeed config; sifr train --config takes it as it is",
                         s->name);
    BASE_TRY(import_choose(s, from));
    if (s->kind->begin) BASE_TRY(s->kind->begin(s));
    BASE_TRY(import_read_deepspeed(s));
    BASE_TRY(import_walk(s, s->source, ""));
    if (s->kind->finish) BASE_TRY(s->kind->finish(s));
    BASE_TRY(check_allowed(s));
    BASE_TRY(refuse_unknown(s));
    if (s->faults.count == 0) say_rest(s, s->source, "");
    BASE_TRY(config_faults_end(&s->faults, s->error));
    *out = json_incref(s->out);
    return SIFR_OK;
}

sifr_status config_import(const char *text, size_t size, const char *name,
                          const config_import_options *options, config_line *say, void *user,
                          config_imported *out, sifr_error *error) {
    static const config_import_options none = {0};
    if (!options) options = &none;
    import_state s = {.name = name,
                      .say = say,
                      .user = user,
                      .error = error,
                      .allow = options->allow,
                      .allow_count = options->allow_count};
    memset(out, 0, sizeof *out);
    BASE_TRY(import_refuse_pickle(text, size, name, error));
    BASE_TRY(import_parse(text, size, name, &s.source, error));
    s.out = json_object();
    s.unknown = json_object();
    s.said = json_object();
    sifr_status status = s.out && s.unknown && s.said ? SIFR_OK : base_fail_alloc(error, 64);
    if (status == SIFR_OK) status = import_root(&s, options->from, &out->config);
    if (status == SIFR_OK) {
        out->source = s.kind->name;
        out->left = s.left;
        out->tokens = s.tokens;
    }
    json_decref(s.source);
    json_decref(s.out);
    json_decref(s.unknown);
    json_decref(s.said);
    return status;
}

sifr_status config_import_file(const char *path, const config_import_options *options,
                               config_line *say, void *user, config_imported *out,
                               sifr_error *error) {
    char *text;
    size_t size;
    memset(out, 0, sizeof *out);
    BASE_TRY(base_read_file(path, IMPORT_FILE_LIMIT, &text, &size, error));
    sifr_status status = config_import(text, size, path, options, say, user, out, error);
    free(text);
    return status;
}
