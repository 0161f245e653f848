#include "base/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/json.h"

enum { YAML_ANCHORS = 256 };

/* A value that an alias may repeat; `count` values. */
typedef struct yaml_anchor {
    char name[64];
    json_t *value;
    size_t count;
} yaml_anchor;

typedef struct yaml_reader {
    yaml_parser_t parser;
    const char *name;
    sifr_error *error;
    size_t values;
    int depth, anchors;
    yaml_anchor anchor[YAML_ANCHORS];
} yaml_reader;

static sifr_status yaml_fail(const yaml_reader *r, yaml_mark_t at, const char *what) {
    return base_fail(r->error, SIFR_USAGE, "%s: not valid YAML at line %zu, column %zu: %s",
                     r->name, at.line + 1, at.column + 1, what);
}

static sifr_status yaml_next(yaml_reader *r, yaml_event_t *event) {
    if (yaml_parser_parse(&r->parser, event)) return SIFR_OK;
    if (r->parser.error == YAML_MEMORY_ERROR) return base_fail_alloc(r->error, 64);
    char what[200];
    snprintf(what, sizeof what, "%s", r->parser.problem ? r->parser.problem : "cannot be read");
    for (char *c = what; *c; c++)
        if ((unsigned char)*c < 32) *c = ' ';
    return yaml_fail(r, r->parser.problem_mark, what);
}

/* An integer as YAML 1.1 has them, with 0x and 0o; NULL where it is none, or beyond 64 bits. */
static json_t *yaml_integer(const char *text) {
    char *end;
    bool sign = text[0] == '-' || text[0] == '+';
    bool hex = strncmp(text + sign, "0x", 2) == 0, octal = strncmp(text + sign, "0o", 2) == 0;
    if (!text[sign] || text[sign + strspn(text + sign, "0123456789abcdefABCDEFxo")]) return NULL;
    if (!hex && !octal && strspn(text + sign, "0123456789") != strlen(text + sign)) return NULL;
    errno = 0;
    bool old = !hex && !octal && text[sign] == '0' && text[sign + 1];
    long long value = octal ? strtoll(text + sign + 2, &end, 8)
                            : strtoll(text, &end,
                                      hex   ? 16
                                      : old ? 8
                                            : 10);
    if (*end || errno || (octal && (!text[sign + 2] || text[sign + 2] == '-'))) return NULL;
    return json_integer(octal && text[0] == '-' ? -value : value);
}

static json_t *yaml_plain(const char *text) {
    static const char *const truths[] = {"true", "yes", "on"}, *const lies[] = {"false", "no",
                                                                                "off"};
    if (!text[0] || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0) return json_null();
    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(text, truths[i]) == 0) return json_true();
        if (strcasecmp(text, lies[i]) == 0) return json_false();
    }
    json_t *integer = yaml_integer(text);
    if (integer) return integer;
    char *end;
    bool sign = text[0] == '-' || text[0] == '+', point = strpbrk(text, ".eE") != NULL;
    bool digits = !text[strspn(text, "0123456789+-.eE")] && strpbrk(text, "0123456789") &&
                  (point || text[sign] != '0');
    double real = digits ? strtod(text, &end) : NAN;
    return digits && !*end && isfinite(real) ? json_real(real) : json_string(text);
}

static sifr_status yaml_scalar(yaml_reader *r, const yaml_event_t *event, json_t **out) {
    static const char core[] = "tag:yaml.org,2002:";
    const char *text = (const char *)event->data.scalar.value;
    const char *tag = (const char *)event->data.scalar.tag;
    size_t length = event->data.scalar.length;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (tag && strcmp(tag, "!") != 0 && strncmp(tag, core, sizeof core - 1) != 0)
        return yaml_fail(r, event->start_mark, "a tag of a program's own");
    const char *kind = tag ? strrchr(tag, ':') : NULL;
    if (kind && !strstr(":str:int:float:bool:null:", kind))
        return yaml_fail(r, event->start_mark, "a tag of a program's own");
    if (strlen(text) != length) return yaml_fail(r, event->start_mark, "a string with a NUL");
    bool string = !plain || (tag && (strcmp(tag, "!") == 0 || strcmp(kind, ":str") == 0));
    *out = string ? json_string(text) : yaml_plain(text);
    return *out ? SIFR_OK : base_fail_alloc(r->error, length);
}

static sifr_status yaml_value(yaml_reader *r, yaml_event_t *event, json_t **out);

/* Copies what is not there yet: keys of the mapping itself win, as in PyYAML. */
static sifr_status yaml_merge(yaml_reader *r, yaml_mark_t at, json_t *into, json_t *from) {
    if (json_is_array(from)) {
        for (size_t i = 0; i < json_array_size(from); i++) {
            json_t *part = json_array_get(from, i);
            if (!json_is_object(part)) return yaml_fail(r, at, "<< takes mappings");
            BASE_TRY(yaml_merge(r, at, into, part));
        }
        return SIFR_OK;
    }
    if (!json_is_object(from)) return yaml_fail(r, at, "<< takes a mapping");
    return json_object_update_missing(into, from) == 0 ? SIFR_OK : base_fail_alloc(r->error, 64);
}

/* A key as text: numbers and truths by their spelling. */
static sifr_status yaml_key(yaml_reader *r, const yaml_event_t *event, json_t **out) {
    if (event->type != YAML_SCALAR_EVENT)
        return yaml_fail(r, event->start_mark, "a key that is no text");
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return yaml_fail(r, event->start_mark, "a key with a NUL");
    *out = json_string(text);
    return *out ? SIFR_OK : base_fail_alloc(r->error, event->data.scalar.length);
}

static sifr_status yaml_put(yaml_reader *r, yaml_mark_t at, json_t *object, const char *key,
                            json_t *value, json_t **merged) {
    if (strcmp(key, "<<") == 0 && !*merged) {
        *merged = json_incref(value);
        return SIFR_OK;
    }
    if (json_object_get(object, key)) return yaml_fail(r, at, "a key that is there already");
    return json_object_set(object, key, value) == 0 ? SIFR_OK : base_fail_alloc(r->error, 64);
}

/* Up to the end of the mapping or sequence. */
static sifr_status yaml_members(yaml_reader *r, json_t *into, json_t **merged) {
    bool object = json_is_object(into);
    for (;;) {
        yaml_event_t event;
        json_t *key = NULL, *value = NULL;
        BASE_TRY(yaml_next(r, &event));
        yaml_mark_t at = event.start_mark;
        bool done = event.type == (object ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT);
        sifr_status status = SIFR_OK;
        if (!done && object) {
            status = yaml_key(r, &event, &key);
            yaml_event_delete(&event);
            if (status == SIFR_OK) status = yaml_next(r, &event);
            if (status != SIFR_OK) {
                json_decref(key);
                return status;
            }
        }
        if (!done) status = yaml_value(r, &event, &value);
        yaml_event_delete(&event);
        if (done) return SIFR_OK;
        if (status == SIFR_OK && object)
            status = yaml_put(r, at, into, json_string_value(key), value, merged);
        else if (status == SIFR_OK && json_array_append(into, value) != 0)
            status = base_fail_alloc(r->error, 64);
        json_decref(key);
        json_decref(value);
        if (status != SIFR_OK) return status;
    }
}

static sifr_status yaml_nested(yaml_reader *r, const yaml_event_t *event, json_t **out) {
    bool object = event->type == YAML_MAPPING_START_EVENT;
    const unsigned char *tag =
        object ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    json_t *into = object ? json_object() : json_array(), *merged = NULL;
    sifr_status status = into ? SIFR_OK : base_fail_alloc(r->error, 64);
    if (status == SIFR_OK && tag && strncmp((const char *)tag, "tag:yaml.org,2002:", 18) != 0)
        status = yaml_fail(r, event->start_mark, "a tag of a program's own");
    if (status == SIFR_OK && tag && !strstr("map seq", (const char *)tag + 18))
        status = yaml_fail(r, event->start_mark, "a tag of a program's own");
    if (status == SIFR_OK && ++r->depth > BASE_JSON_DEPTH)
        status = yaml_fail(r, event->start_mark, "nested deeper than 64 levels");
    if (status == SIFR_OK) status = yaml_members(r, into, &merged);
    if (status == SIFR_OK && merged) status = yaml_merge(r, event->start_mark, into, merged);
    r->depth--;
    json_decref(merged);
    if (status == SIFR_OK)
        *out = into;
    else
        json_decref(into);
    return status;
}

static sifr_status yaml_count(yaml_reader *r, yaml_mark_t at, size_t count) {
    r->values += count;
    if (r->values <= BASE_YAML_VALUES) return SIFR_OK;
    return yaml_fail(r, at, "more than 65,536 values, with those that aliases repeat");
}

static sifr_status yaml_alias(yaml_reader *r, const yaml_event_t *event, json_t **out) {
    const char *name = (const char *)event->data.alias.anchor;
    for (int i = r->anchors; i-- > 0;) {
        if (strcmp(r->anchor[i].name, name) != 0) continue;
        BASE_TRY(yaml_count(r, event->start_mark, r->anchor[i].count));
        *out = json_deep_copy(r->anchor[i].value);
        return *out ? SIFR_OK : base_fail_alloc(r->error, 64);
    }
    return yaml_fail(r, event->start_mark, "an alias of nothing that is complete");
}

static sifr_status yaml_keep(yaml_reader *r, yaml_mark_t at, const char *name, json_t *value,
                             size_t count) {
    if (r->anchors == YAML_ANCHORS) return yaml_fail(r, at, "more than 256 anchors");
    yaml_anchor *anchor = &r->anchor[r->anchors];
    if (strlen(name) >= sizeof anchor->name)
        return yaml_fail(r, at, "an anchor whose name is too long");
    snprintf(anchor->name, sizeof anchor->name, "%s", name);
    anchor->value = json_incref(value);
    anchor->count = count;
    r->anchors++;
    return SIFR_OK;
}

/* The value that `event` begins. */
static sifr_status yaml_value(yaml_reader *r, yaml_event_t *event, json_t **out) {
    const unsigned char *anchor = NULL;
    size_t before = r->values;
    BASE_TRY(yaml_count(r, event->start_mark, 1));
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return yaml_alias(r, event, out);
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        BASE_TRY(yaml_scalar(r, event, out));
        break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        anchor = event->type == YAML_MAPPING_START_EVENT ? event->data.mapping_start.anchor
                                                         : event->data.sequence_start.anchor;
        BASE_TRY(yaml_nested(r, event, out));
        break;
    default:
        return yaml_fail(r, event->start_mark, "a value is missing");
    }
    if (!anchor) return SIFR_OK;
    sifr_status status =
        yaml_keep(r, event->start_mark, (const char *)anchor, *out, r->values - before);
    if (status != SIFR_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* The stream's and the document's frame around one value. */
static sifr_status yaml_document(yaml_reader *r, json_t **out) {
    for (;;) {
        yaml_event_t event;
        sifr_status status = SIFR_OK;
        BASE_TRY(yaml_next(r, &event));
        yaml_event_type_t type = event.type;
        bool frame = type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT ||
                     type == YAML_DOCUMENT_END_EVENT || type == YAML_STREAM_END_EVENT;
        if (type == YAML_DOCUMENT_START_EVENT && *out)
            status = yaml_fail(r, event.start_mark, "a second document");
        if (!frame) status = yaml_value(r, &event, out);
        yaml_event_delete(&event);
        if (status != SIFR_OK || type == YAML_STREAM_END_EVENT) return status;
    }
}

sifr_status base_yaml_parse(const char *text, size_t size, const char *name, json_t **out,
                            sifr_error *error) {
    yaml_reader *r = calloc(1, sizeof *r);
    json_t *value = NULL;
    if (!r || !yaml_parser_initialize(&r->parser)) {
        free(r);
        return base_fail_alloc(error, sizeof *r);
    }
    r->name = name;
    r->error = error;
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, size);
    sifr_status status = yaml_document(r, &value);
    for (int i = 0; i < r->anchors; i++) json_decref(r->anchor[i].value);
    yaml_parser_delete(&r->parser);
    free(r);
    if (status == SIFR_OK)
        *out = value ? value : json_null();
    else
        json_decref(value);
    return status;
}
