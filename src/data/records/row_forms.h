/* The forms of rows: one table, a row a form. It says which fields a row of the form has, under
 * which names, of which type the row is (how its fields are put together), whose documentation has
 * the form, and which other fields would change the text if they were read. */
#ifndef DATA_ROW_FORMS_H
#define DATA_ROW_FORMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum data_row_type {
    DATA_ROW_TEXT,
    DATA_ROW_PROMPT_COMPLETION,
    DATA_ROW_ALPACA,
    DATA_ROW_SHAREGPT,
    DATA_ROW_MESSAGES,
    DATA_ROW_PREFERENCE,
    DATA_ROW_TYPES /* as a type that is asked for: any */
} data_row_type;

/* What a field is for. */
typedef enum data_form_part {
    DATA_PART_TURNS, /* a list of messages, or of ShareGPT's turns */
    DATA_PART_SYSTEM,
    DATA_PART_TOOLS,
    DATA_PART_HISTORY,
    DATA_PART_PROMPT,
    DATA_PART_INPUT, /* what the prompt is about */
    DATA_PART_ANSWER,
    DATA_PART_REJECTED, /* beside an answer that was chosen */
    DATA_PART_MARK,     /* whether the answer is a good one */
    DATA_PARTS
} data_form_part;

/* What a field must hold, so that a row is of the form. A list may be written as JSON in a text. */
typedef enum data_field_kind {
    DATA_FIELD_ANY,
    DATA_FIELD_TURNS,  /* a list of objects with "from" and no "role" */
    DATA_FIELD_OTHERS, /* anything but those */
    DATA_FIELD_TEXTS,  /* a list of texts */
    DATA_FIELD_PAIRS,  /* a list of objects with "input" and "output" */
    DATA_FIELD_TEXT,   /* a text that holds no list of messages */
    DATA_FIELD_LIST,   /* a list of messages */
    DATA_FIELD_WHOLE,  /* a text, or a list */
    DATA_FIELD_ONE,    /* a text, a message, or a list that the assistant begins */
    DATA_FIELD_CALLS   /* a list of objects with "name" */
} data_field_kind;

enum { DATA_FIELD_NAMES = 4, DATA_FORM_UNREAD = 8 };

typedef struct data_field {
    /* Of which a row has one; none: no such field. A dot goes into an object, or to an element of a
     * list by its number. */
    const char *names[DATA_FIELD_NAMES];
    data_field_kind kind;
    bool optional;
} data_field;

typedef struct data_form {
    const char *name;
    data_row_type type;
    data_field fields[DATA_PARTS];
    const char *source;                   /* whose documentation has it */
    const char *refused;                  /* why such rows are not trained on; NULL: they are */
    const char *unread[DATA_FORM_UNREAD]; /* what must not be lost, where it is not read */
} data_form;

/* "messages", "sharegpt" … */
const char *data_row_type_name(data_row_type type);
bool data_row_type_find(const char *name, data_row_type *out);

/* Row `index` of the table; NULL behind the last. */
const data_form *data_form_at(size_t index);
/* The first form that a row is of, among those of a type or any; NULL: none. */
const data_form *data_form_match(const json_t *row, data_row_type type);
/* The form that has the type's name. */
const data_form *data_form_of(data_row_type type);

/* The name that a part's field has in a row: the first whose value is not null (of a field that may
 * be absent, nor an empty text), else the first that is there, else the first of the form. NULL:
 * the form has no such field. */
const char *data_form_field(const data_form *form, data_form_part part, const json_t *row);
/* Whether the row's field of that name is read. */
bool data_form_reads(const data_form *form, const json_t *row, const char *name);
/* Whether the row's answer is marked: -1 no mark, 0 as bad, 1 as good. */
int data_form_mark(const data_form *form, const json_t *row);

/* A member by its name, which may have dots; NULL: none. */
json_t *data_row_get(const json_t *row, const char *name);
/* Whether the name is of an element of a list that is there, and empty; `list`: its name. */
bool data_row_emptied(const json_t *row, const char *name, char list[64]);
/* The first element of a list, or of the list that a text holds, as in a CSV file; a new reference,
 * or NULL. */
json_t *data_first_of(const json_t *row, const char *field);

#endif
