/* The fields of a file's rows: what the source names otherwise, what it leaves out, what no form
 * reads, and marks of bad answers. */
#ifndef DATA_CHAT_FIELDS_H
#define DATA_CHAT_FIELDS_H

#include "data/chat/chat_render.h"
#include "data/records/conversation.h"

enum { DATA_CHAT_IGNORED = 2 };

/* Of one file; start with its source's part, else {0}. */
typedef struct data_chat_fields {
    const json_t *names;                      /* here, with the file's own; NULL: none */
    const json_t *ignored[DATA_CHAT_IGNORED]; /* lists of the file's names; NULL: none */
    const data_chat_templates *templates;     /* NULL: none */
    json_t *seen;                             /* names of fields that held something, and so on */
    json_t *unread;                           /* of those, what was not read, in order */
    json_t *members;                          /* of messages: what was not read, in order */
    json_t *variables;                        /* that the template does not have, in order */
    json_t *taken;                            /* names that some row has, of those left out */
    json_t *replaced; /* of the last row: its own fields that others have taken the names of */
    int64_t rows;
    int64_t bad_tags, bad_labels; /* answers that 'kto_tag' and 'label' mark as bad */
    bool classes;                 /* some 'label' is neither good nor bad, so none is a mark */
} data_chat_fields;

/* Takes out of a row what the source leaves out, and gives fields the names that they have here.
 * SIFR_FAILED, with file, row and field, where one is missing. */
sifr_status data_chat_fields_name(data_chat_fields *fields, json_t *row,
                                  const data_row_place *place, sifr_error *error) SIFR_MUST_CHECK;

/* Notes what the form and the template do not read of a row, and whether its answer is marked. */
sifr_status data_chat_fields_note(data_chat_fields *fields, const data_form *form,
                                  const json_t *row, sifr_error *error) SIFR_MUST_CHECK;

/* Notes what is for a chat template, of a row that none has written. */
sifr_status data_chat_fields_untemplated(data_chat_fields *fields, const json_t *row,
                                         sifr_error *error) SIFR_MUST_CHECK;

/* Notes fields of the row last named, whose names others have taken. */
sifr_status data_chat_fields_note_replaced(data_chat_fields *fields,
                                           sifr_error *error) SIFR_MUST_CHECK;

/* Notes names, each with a line feed behind it, of variables that a row gives and the template does
 * not have. */
sifr_status data_chat_fields_variables(data_chat_fields *fields, const char *names,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* "alpaca", or "alpaca (question_answer: question, answer)" by a row's own fields. */
const char *data_chat_fields_form(const data_form *form, const json_t *row, char out[256]);

/* Says, behind the last row, what was not read and what no row has. SIFR_FAILED where an answer is
 * marked as bad. */
sifr_status data_chat_fields_end(const data_chat_fields *fields, const char *file,
                                 const sifr_log *log, sifr_error *error) SIFR_MUST_CHECK;
void data_chat_fields_free(data_chat_fields *fields); /* harmless on a zeroed one */

#endif
