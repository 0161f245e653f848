#include "formats/records/row_forms.h"

#include "base/json.h"

#define LIST(...)                                                                                  \
    {                                                                                              \
        .names = { __VA_ARGS__ }                                                                   \
    }
#define MAY_HAVE(...)                                                                              \
    { .names = {__VA_ARGS__}, .optional = true }

/* In the order in which a row is held against them. */
static const formats_form forms[] = {
    {.name = "preference",
     .type = FORMATS_ROW_PREFERENCE,
     .fields = {[FORMATS_PART_PROMPT] = MAY_HAVE("prompt"),
                [FORMATS_PART_ANSWER] = LIST("chosen"),
                [FORMATS_PART_REJECTED] = LIST("rejected"),
                [FORMATS_PART_TOOLS] = MAY_HAVE("tools")}},
    {.name = "messages",
     .type = FORMATS_ROW_MESSAGES,
     .fields = {[FORMATS_PART_TURNS] = {.names = {"messages", "conversations", "conversation"},
                                        .kind = FORMATS_FIELD_OTHERS},
                [FORMATS_PART_TOOLS] = MAY_HAVE("tools")}},
    {.name = "sharegpt",
     .type = FORMATS_ROW_SHAREGPT,
     .fields = {[FORMATS_PART_TURNS] = {.names = {"conversations", "conversation", "messages"},
                                        .kind = FORMATS_FIELD_TURNS},
                [FORMATS_PART_SYSTEM] = MAY_HAVE("system"),
                [FORMATS_PART_TOOLS] = MAY_HAVE("tools")}},
    {.name = "prompt_completion",
     .type = FORMATS_ROW_PROMPT_COMPLETION,
     .fields = {[FORMATS_PART_PROMPT] = LIST("prompt"),
                [FORMATS_PART_ANSWER] = LIST("completion"),
                [FORMATS_PART_TOOLS] = MAY_HAVE("tools")}},
    {.name = "alpaca",
     .type = FORMATS_ROW_ALPACA,
     .fields = {[FORMATS_PART_PROMPT] = LIST("instruction"),
                [FORMATS_PART_ANSWER] = LIST("output", "response"),
                [FORMATS_PART_INPUT] = MAY_HAVE("input"),
                [FORMATS_PART_SYSTEM] = MAY_HAVE("system"),
                [FORMATS_PART_HISTORY] = MAY_HAVE("history")}},
    {.name = "text", .type = FORMATS_ROW_TEXT, .fields = {[FORMATS_PART_ANSWER] = LIST("text")}},
};

enum { FORMS = sizeof forms / sizeof *forms };

static const char *const type_names[FORMATS_ROW_TYPES] = {
    [FORMATS_ROW_TEXT] = "text",         [FORMATS_ROW_PROMPT_COMPLETION] = "prompt_completion",
    [FORMATS_ROW_ALPACA] = "alpaca",     [FORMATS_ROW_SHAREGPT] = "sharegpt",
    [FORMATS_ROW_MESSAGES] = "messages", [FORMATS_ROW_PREFERENCE] = "preference",
};

const char *formats_row_type_name(formats_row_type type) {
    return type_names[type];
}

const char *formats_form_field(const formats_form *form, formats_part part, const json_t *row) {
    const char *const *names = form->fields[part].names, *there = NULL;
    for (size_t i = 0; i < FORMATS_FIELD_NAMES && names[i]; i++) {
        const json_t *value = json_object_get(row, names[i]);
        if (value && !json_is_null(value)) return names[i];
        if (value && !there) there = names[i];
    }
    return there ? there : names[0];
}

json_t *formats_first_of(const json_t *row, const char *field) {
    json_t *value = json_object_get(row, field), *parsed = NULL;
    const char *text = json_string_value(value);
    if (text && base_json_parse(text, json_string_length(value), "", &parsed, NULL) != SIFR_OK)
        return NULL;
    json_t *first = json_incref(json_array_get(parsed ? parsed : value, 0));
    json_decref(parsed);
    return first;
}

/* Of a list of turns: whether they are ShareGPT's. */
static bool are_turns(const json_t *row, const char *field) {
    json_t *first = formats_first_of(row, field);
    bool turns = json_object_get(first, "from") && !json_object_get(first, "role");
    json_decref(first);
    return turns;
}

/* `nulls`: a field that is null is there. */
static bool has_field(const json_t *row, const formats_form *form, formats_part part, bool nulls) {
    const formats_field *field = &form->fields[part];
    const char *name = formats_form_field(form, part, row);
    if (!name || field->optional) return true;
    const json_t *value = json_object_get(row, name);
    if (!value || (json_is_null(value) && !nulls)) return false;
    if (field->kind == FORMATS_FIELD_ANY) return true;
    return are_turns(row, name) == (field->kind == FORMATS_FIELD_TURNS);
}

const formats_form *formats_form_match(const json_t *row, formats_row_type type) {
    for (int nulls = 0; nulls < 2; nulls++) {
        for (size_t i = 0; i < FORMS; i++) {
            bool fits = type == FORMATS_ROW_TYPES || type == forms[i].type;
            for (int part = 0; fits && part < FORMATS_PARTS; part++)
                fits = has_field(row, &forms[i], (formats_part)part, nulls);
            if (fits) return &forms[i];
        }
    }
    return NULL;
}

const formats_form *formats_form_of(formats_row_type type) {
    size_t i = 0;
    while (forms[i].type != type) i++;
    return &forms[i];
}
