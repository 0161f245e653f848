/* The forms of rows: one table, a row a form. It says which fields a row of the form has, under
 * which names, of which type the row is (how its fields are put together), whose documentation has
 * the form, and which other fields would change the text if they were read. */
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
    FORMATS_PART_MARK,     /* whether the answer is a good one */
    FORMATS_PARTS
} formats_part;

/* What a field must hold, so that a row is of the form. A list may be written as JSON in a text. */
typedef enum formats_field_kind {
    FORMATS_FIELD_ANY,
    FORMATS_FIELD_TURNS,  /* a list of objects with "from" and no "role" */
    FORMATS_FIELD_OTHERS, /* anything but those */
    FORMATS_FIELD_TEXTS,  /* a list of texts */
    FORMATS_FIELD_PAIRS,  /* a list of objects with "input" and "output" */
    FORMATS_FIELD_TEXT,   /* a text that holds no list of messages */
    FORMATS_FIELD_LIST,   /* a list of messages */
    FORMATS_FIELD_WHOLE,  /* a text, or a list */
    FORMATS_FIELD_ONE,    /* a text, a message, or a list that the assistant begins */
    FORMATS_FIELD_CALLS   /* a list of objects with "name" */
} formats_field_kind;

enum { FORMATS_FIELD_NAMES = 4, FORMATS_FORM_UNREAD = 8 };

typedef struct formats_field {
    /* Of which a row has one; none: no such field. A dot goes into an object, or to an element of a
     * list by its number. */
    const char *names[FORMATS_FIELD_NAMES];
    formats_field_kind kind;
    bool optional;
} formats_field;

typedef struct formats_form {
    const char *name;
    formats_row_type type;
    formats_field fields[FORMATS_PARTS];
    const char *source;                      /* whose documentation has it */
    const char *refused;                     /* why such rows are not trained on; NULL: they are */
    const char *unread[FORMATS_FORM_UNREAD]; /* what must not be lost, where it is not read */
} formats_form;

/* "messages", "sharegpt" … */
const char *formats_row_type_name(formats_row_type type);

/* Row `index` of the table; NULL behind the last. */
const formats_form *formats_form_at(size_t index);
/* The first form that a row is of, among those of a type or any; NULL: none. */
const formats_form *formats_form_match(const json_t *row, formats_row_type type);
/* The form that has the type's name. */
const formats_form *formats_form_of(formats_row_type type);

/* The name that a part's field has in a row: the first whose value is not null (of a field that may
 * be absent, nor an empty text), else the first that is there, else the first of the form. NULL:
 * the form has no such field. */
const char *formats_form_field(const formats_form *form, formats_part part, const json_t *row);
/* Whether the row's field of that name is read. */
bool formats_form_reads(const formats_form *form, const json_t *row, const char *name);
/* Whether the row's answer is marked: -1 no mark, 0 as bad, 1 as good. */
int formats_form_mark(const formats_form *form, const json_t *row);

/* A member by its name, which may have dots; NULL: none. */
json_t *formats_row_get(const json_t *row, const char *name);
/* Whether the name is of an element of a list that is there, and empty; `list`: its name. */
bool formats_row_emptied(const json_t *row, const char *name, char list[64]);
/* The first element of a list, or of the list that a text holds, as in a CSV file; a new reference,
 * or NULL. */
json_t *formats_first_of(const json_t *row, const char *field);

#endif
