/* Private to conversation*.c. */
#ifndef FORMATS_CONVERSATION_INTERNAL_H
#define FORMATS_CONVERSATION_INTERNAL_H

#include "formats/records/conversation.h"

/* A member that must be a string; *out and *size are the row's. `optional`: absent or null is "".
 */
sifr_status formats_row_string(const json_t *row, const char *field, bool optional,
                               const formats_row_place *place, const char **out, size_t *size,
                               sifr_error *error) SIFR_MUST_CHECK;

/* A member that must be a list, or a string that holds one as JSON; *out is a new reference, NULL
 * where the member is absent or null. */
sifr_status formats_row_list(const json_t *row, const char *field, const formats_row_place *place,
                             json_t **out, sifr_error *error) SIFR_MUST_CHECK;

/* Checks a list of {"role", "content"}. */
sifr_status formats_messages_check(const json_t *messages, const char *field,
                                   const formats_row_place *place,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Appends {"role", "content"}. */
sifr_status formats_messages_add(json_t *messages, const char *role, const char *content,
                                 size_t size, sifr_error *error) SIFR_MUST_CHECK;

/* conversation_sharegpt.c */
sifr_status formats_read_sharegpt(const json_t *row, const formats_form *form,
                                  const formats_row_place *place, formats_conversation *out,
                                  sifr_error *error) SIFR_MUST_CHECK;
/* conversation_alpaca.c */
sifr_status formats_read_alpaca(const json_t *row, const formats_form *form,
                                const formats_row_format *format, bool templated,
                                const formats_row_place *place, formats_conversation *out,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
