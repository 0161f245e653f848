/* Private to json*.c. */
#ifndef BASE_JSON_LENIENT_H
#define BASE_JSON_LENIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* An object that is no JSON but what Python's json reads; NULL: it is not that either. Members that
 * are none of JSON are faults. */
json_t *base_json_lenient(const char *text, size_t size);

/* The length of the JSON number at `text`, which a NUL ends; 0 if no number is there. */
size_t base_json_number(const char *text);
/* Whether a number of so many bytes is an integer of 64 bits or a double. */
bool base_json_fits(const char *number, size_t size);

#endif
