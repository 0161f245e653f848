/* What becomes of one key of another program's config. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "config/config_private.h"
#include "config/import/import_private.h"

enum { IMPORT_LIMIT = 16 << 20 };

sifr_status import_put(import_state *s, const char *path, json_t *value) {
    bool put = value && config_put_path(s->out, path, value);
    json_decref(value);
    if (put) return SIFR_OK;
    return base_fail(s->error, SIFR_USAGE,
                     "%s: %s cannot be set: the section it is in is no object", s->name, path);
}

/* The object that holds the last part of the path, and that part. */
static json_t *import_holder(const import_state *s, const char *path, const char **leaf) {
    json_t *object = s->out;
    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        char part[64];
        snprintf(part, sizeof part, "%.*s", (int)(dot - path), path);
        object = json_object_get(object, part);
    }
    *leaf = path;
    return object;
}

json_t *import_get(const import_state *s, const char *path) {
    const char *leaf;
    const json_t *holder = import_holder(s, path, &leaf);
    json_t *value = json_object_get(holder, leaf);
    return json_is_null(value) ? NULL : value;
}

void import_drop(const import_state *s, const char *path) {
    const char *leaf;
    json_t *holder = import_holder(s, path, &leaf);
    if (holder) json_object_del(holder, leaf);
}

/* Of "datasets[0].path" the key is datasets. */
static void note_said(import_state *s, const char *key) {
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(key, "["), key);
    json_object_set_new(s->said, name, json_true());
}

char *import_value_text(const char *key, const json_t *value, char *out, size_t size) {
    if (!config_names_secret(key) || !json_is_string(value) || !*json_string_value(value))
        return config_value_text(value, out, size);
    snprintf(out, size, "\"…\"");
    return out;
}

static void import_say(import_state *s, const char *key, const json_t *value, const char *verb,
                       const char *rest) {
    char text[96], quoted[80], line[640];
    bool plain = strlen(key) < 72 && !key[strcspn(key, "\n\r\t\"\\")];
    note_said(s, key);
    for (const char *c = key; *c; c++) plain &= (unsigned char)*c > 31;
    snprintf(line, sizeof line, "%s = %s%s%.300s", plain ? key : config_quote(key, quoted, 80),
             import_value_text(key, value, text, sizeof text), verb, rest);
    s->say(s->user, line);
}

void import_say_kept(import_state *s, const char *key, const json_t *value, const char *to) {
    import_say(s, key, value, ": ", to);
}

void import_say_idle(import_state *s, const char *key, const json_t *value, const char *why) {
    import_say(s, key, value, ": no effect here: ", why);
}

void import_say_left(import_state *s, const char *key, const json_t *value, const char *why) {
    s->left++;
    import_say(s, key, value, ": not taken over: ", why);
}

bool import_is_allowed(const import_state *s, const char *key) {
    for (size_t i = 0; i < s->allow_count; i++)
        if (strcmp(s->allow[i], key) == 0) return true;
    return false;
}

sifr_status import_refuse(import_state *s, const char *key, const json_t *value, const char *why) {
    char text[96], quoted[80];
    sifr_error fault;
    if (import_is_allowed(s, key)) {
        import_say_left(s, key, value, "allowed by --allow");
        return SIFR_OK;
    }
    bool plain = strlen(key) < 72 && !key[strcspn(key, "\n\r\t\"\\")];
    note_said(s, key);
    sifr_status status =
        base_fail(&fault, SIFR_USAGE,
                  "%.200s: %s is %s: %s; take the key out, change it, or pass --allow KEY", s->name,
                  plain ? key : config_quote(key, quoted, sizeof quoted),
                  import_value_text(key, value, text, sizeof text), why);
    return config_faults_add(&s->faults, status, &fault);
}

bool import_is_given(const json_t *value) {
    return value && !json_is_null(value) &&
           !(json_is_string(value) && json_string_length(value) == 0);
}

bool import_asks(const json_t *value) {
    static const char *const nothing[] = {"", "none", "no", "false", "off", "null"};
    const char *text = json_string_value(value);
    if (!value || json_is_null(value) || json_is_false(value)) return false;
    if (json_is_number(value)) return json_number_value(value) != 0;
    if (json_is_array(value)) return json_array_size(value) > 0;
    if (json_is_object(value)) return json_object_size(value) > 0;
    for (size_t i = 0; text && i < sizeof nothing / sizeof *nothing; i++)
        if (strcasecmp(text, nothing[i]) == 0) return false;
    return true;
}

bool import_row_asks(const import_row *row, const json_t *value) {
    return import_asks(value) || (json_is_number(value) && !row->zero_is_none);
}

/* Another key of the source for the same of sifr; "another key" where there is none. */
static const char *find_twin(const import_state *s, const import_row *row) {
    for (size_t i = 0; i < s->kind->count; i++) {
        const import_row *other = &s->kind->rows[i];
        bool same = other != row && other->to && strcmp(other->to, row->to) == 0;
        if (same && strcmp(other->from, row->from) != 0 && other->action == row->action &&
            import_is_given(json_object_get(s->source, other->from)))
            return other->from;
    }
    return "another key";
}

/* Two keys that the source would not have both, with different values. */
static sifr_status refuse_twin(import_state *s, const import_row *row, const char *key,
                               const json_t *value) {
    char why[160];
    snprintf(why, sizeof why, "%.60s gives %.60s another value; give one of them",
             find_twin(s, row), row->to);
    return import_refuse(s, key, value, why);
}

static sifr_status import_copy(import_state *s, const import_row *row, const char *key,
                               json_t *value) {
    json_t *there = import_get(s, row->to);
    bool scalar = !json_is_object(value) && !json_is_array(value);
    if (row->action == IMPORT_COPY && scalar && there && !config_value_equal(there, value))
        return refuse_twin(s, row, key, value);
    if (row->action == IMPORT_FILL && there && !config_value_is_auto(there)) {
        if (config_value_equal(there, value))
            import_say_kept(s, key, value, row->to);
        else
            import_say_left(s, key, value, "the DeepSpeed config gives another value");
        return SIFR_OK;
    }
    if (json_is_object(value) || json_is_array(value)) {
        import_say_left(s, key, value, "a single value is expected");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, row->to);
    return import_put(s, row->to, json_incref(value));
}

static sifr_status import_expect(import_state *s, const import_row *row, const char *key,
                                 const json_t *value) {
    char text[96];
    if (!import_is_given(value)) return SIFR_OK;
    const char *word = json_is_string(value) ? json_string_value(value)
                                             : config_value_text(value, text, sizeof text);
    if (config_key_has_word(row->words, word, NULL, NULL))
        import_say_idle(s, key, value, row->to);
    else if (row->action == IMPORT_NEED)
        return import_refuse(s, key, value, row->note);
    else
        import_say_left(s, key, value, row->note);
    return SIFR_OK;
}

sifr_status import_apply(import_state *s, const import_row *row, const char *key, json_t *value) {
    bool truth = json_is_true(value);
    double number = json_number_value(value);
    switch (row->action) {
    case IMPORT_COPY:
    case IMPORT_FILL:
        return import_copy(s, row, key, value);
    case IMPORT_STEPS:
        if (!json_is_number(value) || number < 1 || number > 1e15) {
            if (import_asks(value)) import_say_left(s, key, value, "give a number of steps");
            if (json_is_number(value) && number == 0) import_say_idle(s, key, value, "0 is none");
            return SIFR_OK;
        }
        import_say_kept(s, key, value, row->to);
        return import_put(s, row->to, json_integer((json_int_t)number));
    case IMPORT_SWITCH:
        if (!truth && !config_value_is_auto(value)) {
            if (import_asks(value)) import_say_left(s, key, value, "true or false is expected");
            return SIFR_OK;
        }
        import_say_kept(s, key, value, row->to);
        return import_put(s, row->to, json_loads(row->words, JSON_DECODE_ANY, NULL));
    case IMPORT_IGNORE:
        if (import_asks(value)) import_say_idle(s, key, value, row->note);
        return SIFR_OK;
    case IMPORT_EXPECT:
    case IMPORT_NEED:
        return import_expect(s, row, key, value);
    case IMPORT_NONE:
        if (import_row_asks(row, value)) import_say_left(s, key, value, row->note);
        return SIFR_OK;
    case IMPORT_REFUSE:
        return import_row_asks(row, value) ? import_refuse(s, key, value, row->note) : SIFR_OK;
    case IMPORT_SPECIAL:
        return row->special(s, key, value);
    case IMPORT_LATER:
        break;
    }
    return SIFR_OK;
}

sifr_status import_kwargs(import_state *s, const char *key, json_t *value) {
    static const char *const to = "sifr.lr_scheduler_kwargs";
    json_t *object =
        json_is_string(value) ? json_loads(json_string_value(value), 0, NULL) : json_incref(value);
    if (!json_is_object(object)) {
        json_decref(object);
        import_say_left(s, key, value, "an object is expected");
        return SIFR_OK;
    }
    if (json_object_size(object) == 0) {
        json_decref(object);
        return SIFR_OK;
    }
    import_say_kept(s, key, value, to);
    return import_put(s, to, object);
}

sifr_status import_clipping(import_state *s, const char *key, json_t *value) {
    static const import_row row = FILL("max_grad_norm", "gradient_clipping");
    if (!json_is_number(value) || json_number_value(value) >= 0)
        return import_apply(s, &row, key, value);
    json_t *none = json_integer(0);
    sifr_status status = import_apply(s, &row, key, none);
    json_decref(none);
    return status;
}

/* The file in the working directory, or else beside the config. */
static sifr_status import_read(import_state *s, const char *path, json_t **out) {
    char beside[4096], *text;
    size_t size;
    const char *slash = strrchr(s->name, '/');
    snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - s->name + 1) : 0, s->name,
             path);
    bool here = access(path, R_OK) == 0 || path[0] == '/';
    BASE_TRY(base_read_file(here ? path : beside, IMPORT_LIMIT, &text, &size, s->error));
    sifr_status status = config_read_text(text, size, path, out, s->error);
    free(text);
    return status;
}

/* Keys that are there already are those of a DeepSpeed config, which is read first. */
sifr_status import_deepspeed(import_state *s, const char *key, json_t *value) {
    json_t *object = NULL;
    const char *text = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (text && text[strspn(text, " \t\r\n")] == '{')
        BASE_TRY(config_read_text(text, strlen(text), s->name, &object, s->error));
    else if (text)
        BASE_TRY(import_read(s, text, &object));
    else
        object = json_deep_copy(value);
    if (!json_is_object(object)) {
        json_decref(object);
        return base_fail(s->error, SIFR_USAGE, "%s: %s: a DeepSpeed config is an object {…}",
                         s->name, key);
    }
    import_say_kept(s, key, value, "the DeepSpeed config, whose keys are taken as they are");
    int failed = json_object_update_missing(s->out, object);
    json_decref(object);
    return failed ? base_fail_alloc(s->error, 64) : SIFR_OK;
}
