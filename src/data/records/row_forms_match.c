/* Which form of the table a row is of, and which of its fields that form reads. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/text.h"
#include "data/records/row_forms.h"

static const char *const type_names[DATA_ROW_TYPES] = {
    [DATA_ROW_TEXT] = "text",         [DATA_ROW_PROMPT_COMPLETION] = "prompt_completion",
    [DATA_ROW_ALPACA] = "alpaca",     [DATA_ROW_SHAREGPT] = "sharegpt",
    [DATA_ROW_MESSAGES] = "messages", [DATA_ROW_PREFERENCE] = "preference",
};

const char *data_row_type_name(data_row_type type) {
    return type_names[type];
}

bool data_row_type_find(const char *name, data_row_type *out) {
    int found;
    bool known = base_find_word(type_names, DATA_ROW_TYPES, name, &found);
    *out = (data_row_type)found;
    return known;
}

/* --- fields --- */

/* A name of the table stands by itself, or goes by dots into objects and lists. */
json_t *data_row_get(const json_t *row, const char *name) {
    json_t *value = json_object_get(row, name);
    const char *dot = value ? NULL : strchr(name, '.');
    char part[32];
    if (!dot || (size_t)(dot - name) >= sizeof part) return value;
    memcpy(part, name, (size_t)(dot - name));
    part[dot - name] = '\0';
    value = json_object_get(row, part);
    name = dot + 1;
    if (!json_is_object(value)) return NULL;
    dot = strchr(name, '.');
    if (!dot || (size_t)(dot - name) >= sizeof part) return json_object_get(value, name);
    memcpy(part, name, (size_t)(dot - name));
    part[dot - name] = '\0';
    return json_array_get(json_object_get(value, part), (size_t)strtoul(dot + 1, NULL, 10));
}

bool data_row_emptied(const json_t *row, const char *name, char list[64]) {
    const char *dot = strrchr(name, '.');
    if (!dot || dot[1] < '0' || dot[1] > '9' || (size_t)(dot - name) >= 64) return false;
    memcpy(list, name, (size_t)(dot - name));
    list[dot - name] = '\0';
    const json_t *value = data_row_get(row, list);
    return json_is_array(value) && json_array_size(value) == 0;
}

/* 2: something is there, of a field that may be absent not an empty text; 1: it is there. */
static int weigh(const json_t *value, bool optional) {
    if (!value) return 0;
    bool empty = optional && json_is_string(value) && json_string_length(value) == 0;
    return json_is_null(value) || empty ? 1 : 2;
}

const char *data_form_field(const data_form *form, data_form_part part, const json_t *row) {
    const data_field *field = &form->fields[part];
    const char *best = field->names[0];
    int most = 0;
    for (size_t i = 0; i < DATA_FIELD_NAMES && field->names[i]; i++) {
        int weight = weigh(data_row_get(row, field->names[i]), field->optional);
        if (weight > most) best = field->names[i], most = weight;
    }
    return best;
}

/* The name of the member that a field of the table is in. */
static bool is_in(const char *field, const char *member) {
    size_t length = strlen(member);
    return strncmp(field, member, length) == 0 && (!field[length] || field[length] == '.');
}

/* Tools have a place in messages alone, not beside a prompt and answers that are texts. */
static bool has_no_tools(const data_form *form, const json_t *row) {
    bool texts = form->type == DATA_ROW_PROMPT_COMPLETION ||
                 (form->type == DATA_ROW_PREFERENCE && !form->fields[DATA_PART_SYSTEM].names[0]);
    const char *answer = data_form_field(form, DATA_PART_ANSWER, row);
    if (!texts || !json_is_string(data_row_get(row, answer))) return false;
    json_t *first = data_first_of(row, answer);
    bool text = !json_is_object(first);
    json_decref(first);
    return text;
}

bool data_form_reads(const data_form *form, const json_t *row, const char *name) {
    for (int part = 0; part < DATA_PARTS; part++) {
        const char *field = data_form_field(form, (data_form_part)part, row);
        if (!field || !is_in(field, name)) continue;
        if (part == DATA_PART_TOOLS) return !has_no_tools(form, row);
        return part != DATA_PART_MARK || data_form_mark(form, row) >= 0;
    }
    return false;
}

/* true or false, or 1 or 0. Columns of CSV are texts. */
static int mark_of(const json_t *value) {
    static const char *const words[2][3] = {{"false", "0", "0.0"}, {"true", "1", "1.0"}};
    const char *text = json_string_value(value);
    double number = json_number_value(value);
    if (json_is_boolean(value)) return json_is_true(value);
    if (json_is_number(value)) return number == 0 || number == 1 ? (int)number : -1;
    for (int i = 0; text && i < 6; i++)
        if (strcasecmp(text, words[i / 3][i % 3]) == 0) return i / 3;
    return -1;
}

int data_form_mark(const data_form *form, const json_t *row) {
    const char *field = data_form_field(form, DATA_PART_MARK, row);
    return field ? mark_of(json_object_get(row, field)) : -1;
}

/* --- kinds --- */

json_t *data_first_of(const json_t *row, const char *field) {
    json_t *value = data_row_get(row, field), *parsed = NULL;
    const char *text = json_string_value(value);
    if (text && base_json_parse(text, json_string_length(value), "", &parsed, NULL) != SIFR_OK)
        return NULL;
    json_t *first = json_incref(json_array_get(parsed ? parsed : value, 0));
    json_decref(parsed);
    return first;
}

static bool has(const json_t *object, const char *name) {
    return json_object_get(object, name) != NULL;
}

/* Whether the assistant says a turn. */
static bool is_answer(const json_t *turn) {
    static const char *const names[] = {"assistant", "gpt", "model"};
    const json_t *who = json_object_get(turn, has(turn, "role") ? "role" : "from");
    for (size_t i = 0; json_is_string(who) && i < sizeof names / sizeof *names; i++)
        if (strcmp(json_string_value(who), names[i]) == 0) return true;
    return false;
}

static bool is_of(const json_t *value, const json_t *first, data_field_kind kind) {
    bool turns = has(first, "from") && !has(first, "role");
    switch (kind) {
    case DATA_FIELD_ANY:
        return true;
    case DATA_FIELD_TURNS:
        return turns;
    case DATA_FIELD_OTHERS:
        return !turns;
    case DATA_FIELD_TEXTS:
        return json_is_string(first);
    case DATA_FIELD_PAIRS:
        return has(first, "input") && has(first, "output");
    case DATA_FIELD_TEXT:
        return json_is_string(value) && !json_is_object(first);
    case DATA_FIELD_LIST:
        return has(first, "role");
    case DATA_FIELD_WHOLE:
        return json_is_string(value) || json_is_array(value);
    case DATA_FIELD_ONE:
        return json_is_object(value) || is_answer(first) ||
               (json_is_string(value) && !json_is_object(first));
    case DATA_FIELD_CALLS:
        return has(first, "name");
    }
    return false;
}

/* `nulls`: a field that is null is there. */
static bool has_field(const json_t *row, const data_form *form, data_form_part part, bool nulls) {
    const data_field *field = &form->fields[part];
    const char *name = data_form_field(form, part, row);
    if (!name || field->optional) return true;
    const json_t *value = data_row_get(row, name);
    char list[64];
    if (!value && data_row_emptied(row, name, list)) return true;
    if (!value || (json_is_null(value) && !nulls)) return false;
    if (field->kind == DATA_FIELD_ANY) return true;
    json_t *first = data_first_of(row, name);
    bool fits = is_of(value, first, field->kind);
    json_decref(first);
    return fits;
}

const data_form *data_form_match(const json_t *row, data_row_type type) {
    const data_form *form;
    for (int nulls = 0; nulls < 2; nulls++) {
        for (size_t i = 0; (form = data_form_at(i)) != NULL; i++) {
            bool fits = type == DATA_ROW_TYPES || type == form->type;
            for (int part = 0; fits && part < DATA_PARTS; part++)
                fits = has_field(row, form, (data_form_part)part, nulls);
            if (fits) return form;
        }
    }
    return NULL;
}

const data_form *data_form_of(data_row_type type) {
    const data_form *form = NULL;
    for (size_t i = 0; !form || strcmp(form->name, type_names[type]) != 0; i++)
        form = data_form_at(i);
    return form;
}
