/* The forms of rows: one table, a row a form. It says which fields a row of the form has, under
 * which names, and of which type the row is: how its fields are put together. */
#ifndef FORMATS_ROW_FORMS_H
#define FORMATS_ROW_FORMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum formats_row_type {
    FORMATS_ROW_TEXT,
    FORMATS_ROW_PROMPT_COMPLETION,
    FORMATS_ROW_ALPACA,
    FORMATS_ROW_SHAREGPT,
    FORMATS_ROW_MESSAGES,
    FORMATS_ROW_PREFERENCE,
    FORMATS_ROW_TYPES /* as a type that is asked for: any */
} formats_row_type;

/* What a field is for. */
typedef enum formats_part {
    FORMATS_PART_TURNS, /* a list of messages, or of ShareGPT's turns */
    FORMATS_PART_SYSTEM,
    FORMATS_PART_TOOLS,
    FORMATS_PART_HISTORY,
    FORMATS_PART_PROMPT,
    FORMATS_PART_INPUT, /* what the prompt is about */
    FORMATS_PART_ANSWER,
    FORMATS_PART_REJECTED, /* beside an answer that was chosen */
    FORMATS_PARTS
} formats_part;

/* What a field must hold, so that a row is of the form. */
typedef enum formats_field_kind {
    FORMATS_FIELD_ANY,
    FORMATS_FIELD_TURNS, /* a list, or the JSON of one, whose elements have "from" and no "role" */
    FORMATS_FIELD_OTHERS /* anything else */
} formats_field_kind;

enum { FORMATS_FIELD_NAMES = 4 };

typedef struct formats_field {
    const char *names[FORMATS_FIELD_NAMES]; /* of which a row has one; none: no such field */
    formats_field_kind kind;
    bool optional;
} formats_field;

typedef struct formats_form {
    const char *name;
    formats_row_type type;
    formats_field fields[FORMATS_PARTS];
} formats_form;

/* "messages", "sharegpt" … */
const char *formats_row_type_name(formats_row_type type);

/* The first form that a row is of, among those of a type or any; NULL: none. */
const formats_form *formats_form_match(const json_t *row, formats_row_type type);
/* The form that has the type's name. */
const formats_form *formats_form_of(formats_row_type type);

/* The name that a part's field has in a row: the first whose value is not null, else the first that
 * is there, else the first of the form. NULL: the form has no such field. */
const char *formats_form_field(const formats_form *form, formats_part part, const json_t *row);

/* The first element of a list, or of the list that a text holds, as in a CSV file; a new reference,
 * or NULL. */
json_t *formats_first_of(const json_t *row, const char *field);

#endif
