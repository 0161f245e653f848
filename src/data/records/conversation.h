/* A row of fine-tuning data as messages or as texts, by its form (row_forms.h).
 *
 * A preference stands behind a "prompt" of the same kind; without one the prompt is what both begin
 * with. A format of the source may make an Alpaca row a text. A list may also be written as JSON in
 * a string, as in a CSV file. */
#ifndef DATA_CONVERSATION_H
#define DATA_CONVERSATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "data/records/row_forms.h"

/* Where a row stands, for messages. */
typedef struct data_row_place {
    const char *file;
    int64_t row, line; /* line 0: the file has none */
    bool skipped;      /* the user has asked to skip bad rows */
} data_row_place;

/* SIFR_FAILED: "FILE: row R, line L: FIELD MESSAGE", without the line where there is none. */
sifr_status data_row_fail(const data_row_place *place, const char *field, sifr_error *error,
                          const char *format, ...) SIFR_PRINTF(4, 5) SIFR_MUST_CHECK;

/* The ending of a message that names --skip-bad-rows; "" where that is given. */
const char *data_row_or_skip(const data_row_place *place, const char *ending);

typedef struct data_conversation {
    json_t *messages;       /* owned; NULL: a text */
    json_t *tools;          /* owned; NULL: none */
    json_t *documents;      /* owned; NULL: none */
    json_t *variables;      /* owned: further ones of the chat template; NULL: none */
    size_t prompt_messages; /* of them, those that are a prompt: nothing is learned from them */
    const char *prompt;     /* of a text, what nothing is learned from, and what follows it; */
    const char *text;       /* into `strings` or the row */
    size_t prompt_size, text_size;
    bool completion; /* there is a prompt, if only an empty one */
    json_t *strings; /* owned; NULL: none */
} data_conversation;

/* Formats of an Alpaca row's text, as axolotl has them. {instruction}, {input} and {system} stand
 * for the row's fields: the first two in `turn`, {instruction} in `no_input`, {system} in `system`,
 * whose text stands before the others' where the row has a system. {{ and }} are braces. */
typedef struct data_row_format {
    const char *turn;     /* NULL: no format */
    const char *no_input; /* for rows without an input; NULL: `turn` with an empty one */
    const char *system;   /* NULL: "{system}" */
} data_row_format;

/* The form of a row by its fields, among those of a type or any. Where none fits, the one that has
 * the type's name; for any type SIFR_FAILED, with the row's fields. */
sifr_status data_row_form_find(const json_t *row, data_row_type type, const data_row_place *place,
                               const data_form **out, sifr_error *error) SIFR_MUST_CHECK;

/* A preference as two rows of prompt and completion, the chosen one first, new references; of the
 * row they share parts. SIFR_FAILED, with file, row and field. */
sifr_status data_preference_read(const json_t *row, const data_form *form, bool templated,
                                 const data_row_place *place, json_t *out[2],
                                 sifr_error *error) SIFR_MUST_CHECK;

/* The row, which must outlive *out, as `form` says; not of a preference. `templated`: the model has
 * a chat template; without one an Alpaca row becomes the text that Stanford Alpaca made of it.
 * `format` makes the text of Alpaca rows; NULL or without a turn: none.
 * SIFR_FAILED, with file, row and field, for a row that is not of this form. */
sifr_status data_conversation_read(const json_t *row, const data_form *form,
                                   const data_row_format *format, bool templated,
                                   const data_row_place *place, data_conversation *out,
                                   sifr_error *error) SIFR_MUST_CHECK;
/* A content that is a list of parts, all of them text, becomes their text; of the roles in `lists`
 * it stays a list, of {"type": "text", "text"}. What is no list of texts stays as it is. */
typedef enum data_list_roles {
    DATA_LIST_SYSTEM = 1, /* and developer */
    DATA_LIST_USER = 2,
    DATA_LIST_ASSISTANT = 4,
    DATA_LIST_TOOL = 8
} data_list_roles;
sifr_status data_conversation_join(data_conversation *conversation, unsigned lists,
                                   sifr_error *error) SIFR_MUST_CHECK;
/* Whether the message says that it is not to learn: "weight": 0, as OpenAI's and Mistral's rows
 * have it, "train" or "training": false, as axolotl's, or "loss": false or 0, as ms-swift's. */
bool data_message_unlearned(const json_t *message);
/* Whether it says that it is to learn, whoever wrote it: "train" or "training": true. */
bool data_message_learned(const json_t *message);
/* SIFR_FAILED where a message that the assistant did not write says so. */
sifr_status data_messages_answer(const json_t *messages, const data_row_place *place,
                                 sifr_error *error) SIFR_MUST_CHECK;
/* "loss" as true or false; -1: it is something else, or not there. */
int data_message_loss(const json_t *message);

/* Adds what the row gives its chat template beside messages: "chat_template_kwargs", an object
 * whose members win over those of `usual` (NULL: none), and, where `documents` says that the
 * template has a variable for them, "documents". As in TRL, "tools" and "documents" may be members
 * too. */
sifr_status data_conversation_variables(const json_t *row, const json_t *usual, bool documents,
                                        const data_row_place *place,
                                        data_conversation *conversation,
                                        sifr_error *error) SIFR_MUST_CHECK;
/* The first name in such an object that is no variable of a template, but something that sifr or
 * the row decides; NULL: there is none. */
const char *data_variables_refused(const json_t *variables);
void data_conversation_free(data_conversation *conversation); /* harmless on a zeroed one */

#endif
