/* Private to json*.c. */
#ifndef BASE_JSON_LENIENT_H
#define BASE_JSON_LENIENT_H

#include <jansson.h>
#include <stddef.h>

/* An object that is no JSON but what Python's json reads; NULL: it is not that either. Members that
 * are none of JSON are faults. */
json_t *base_json_lenient(const char *text, size_t size);

#endif
