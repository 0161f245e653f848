/* Private to conversation*.c. */
#ifndef DATA_CONVERSATION_INTERNAL_H
#define DATA_CONVERSATION_INTERNAL_H

#include "data/records/conversation.h"

/* --- conversation_members.c --- */

/* "is a number" … */
const char *data_json_kind(const json_t *value);

/* SIFR_FAILED where the value is a fault (base/json.h). */
sifr_status data_row_sound(const json_t *value, const char *field, const data_row_place *place,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The same of every field of the row that the form reads. */
sifr_status data_row_sound_all(const json_t *row, const data_form *form,
                               const data_row_place *place, sifr_error *error) SIFR_MUST_CHECK;

/* A member that must be a string; *out and *size are the row's. `optional`: absent or null is "".
 */
sifr_status data_row_string(const json_t *row, const char *field, bool optional,
                            const data_row_place *place, const char **out, size_t *size,
                            sifr_error *error) SIFR_MUST_CHECK;

/* A member that must be a list, or a string that holds one as JSON; *out is a new reference, NULL
 * where the member is absent or null. */
sifr_status data_row_list(const json_t *row, const char *field, const data_row_place *place,
                          json_t **out, sifr_error *error) SIFR_MUST_CHECK;

/* Appends {"role", "content"}. */
sifr_status data_messages_add(json_t *messages, const char *role, const char *content, size_t size,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Inserts a system turn in front, unless the text is empty or the messages begin with one. */
sifr_status data_messages_add_system(json_t *messages, const json_t *row, const data_form *form,
                                     const data_row_place *place,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* --- the others --- */

/* conversation.c: checks a list of {"role", "content"}. */
sifr_status data_messages_check(const json_t *messages, const char *field,
                                const data_row_place *place, sifr_error *error) SIFR_MUST_CHECK;

/* conversation_unread.c: SIFR_FAILED where a field that the form must not lose is not read, holds
 * text, and says what no field says that is read. */
sifr_status data_row_check_unread(const json_t *row, const data_form *form,
                                  const data_row_place *place, sifr_error *error) SIFR_MUST_CHECK;

/* The same of a prompt that is not read, since the answers are whole lists of messages: it may also
 * be written out of what those say. */
sifr_status data_row_check_prompt(const json_t *row, const data_form *form,
                                  json_t *const answers[2], const data_row_place *place,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* conversation_flags.c: whether it is learned, as a message says of itself, and that nothing else
 * is said. */
sifr_status data_flags_check(const json_t *message, const char *name, const data_row_place *place,
                             sifr_error *error) SIFR_MUST_CHECK;
/* Copies what a turn says of that. */
sifr_status data_flags_copy(const json_t *turn, json_t *message, sifr_error *error) SIFR_MUST_CHECK;

/* conversation_sharegpt.c */
sifr_status data_read_sharegpt(const json_t *row, const data_form *form,
                               const data_row_place *place, data_conversation *out,
                               sifr_error *error) SIFR_MUST_CHECK;
/* Appends one of ShareGPT's turns, or a message as it stands; `name` is the turn's, for failures.
 */
sifr_status data_turn_add(json_t *messages, json_t *turn, const char *name,
                          const data_row_place *place, sifr_error *error) SIFR_MUST_CHECK;
/* Appends a turn of the assistant that calls functions: {"name", "arguments"}, or a list of them,
 * also as JSON in a text. */
sifr_status data_calls_add(json_t *messages, json_t *value, const char *name,
                           const data_row_place *place, sifr_error *error) SIFR_MUST_CHECK;
/* Tools are written as bare functions too; templates take {"type", "function"}. *out is a new
 * reference, NULL where there are none. */
sifr_status data_tools_read(const json_t *row, const data_form *form, const data_row_place *place,
                            json_t **out, sifr_error *error) SIFR_MUST_CHECK;
/* conversation_alpaca.c */
sifr_status data_read_alpaca(const json_t *row, const data_form *form,
                             const data_row_format *format, bool templated,
                             const data_row_place *place, data_conversation *out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* What is asked, by the same rules, without its answer: a list of messages or, without a template,
 * a text; a new reference. */
sifr_status data_read_asked(const json_t *row, const data_form *form, bool templated,
                            const data_row_place *place, json_t **out,
                            sifr_error *error) SIFR_MUST_CHECK;

#endif
