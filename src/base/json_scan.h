/* Private to json*.c: JSON text before jansson parses it. */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* Shorter than any JSON number that exceeds a double: 2e308 has 5 characters. */
#define BASE_JSON_HUGE "9e307"
#define BASE_JSON_HUGE_VALUE 9e307

/* Why the text is not read, to stand behind "JSON" in a message; NULL: it is within the limits. */
const char *base_json_excess(const char *text, size_t size);

/* The length of the JSON number at `text`, which a NUL ends; 0 if no number is there. */
size_t base_json_number(const char *text);
/* Whether a number of so many bytes is an integer of 64 bits or a double. */
bool base_json_fits(const char *number, size_t size);

/* Replaces numbers that jansson refuses as out of range; `text` ends with a NUL. */
void base_json_narrow_all(char *text, size_t size);

#endif
