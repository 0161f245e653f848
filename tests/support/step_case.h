/* What tests of golden training steps share: numbers of a JSON file, and elements that never get a
 * gradient. */
#ifndef SUPPORT_STEP_CASE_H
#define SUPPORT_STEP_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static inline double step_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number %s", key);
    return json_number_value(value);
}

static inline double step_item(const json_t *object, const char *key, size_t index) {
    const json_t *value = json_array_get(json_object_get(object, key), index);
    if (!json_is_number(value)) fail_msg("no number %s[%zu]", key, index);
    return json_number_value(value);
}

/* Whether "zero_gradient" has this element of a weight. */
static inline bool step_no_gradient(const json_t *results, const char *name, int64_t element) {
    const json_t *range;
    size_t index;
    json_array_foreach(json_object_get(results, "zero_gradient"), index, range) {
        const char *of = json_string_value(json_object_get(range, "tensor"));
        if (of && !strcmp(of, name) && element >= (int64_t)step_number(range, "begin") &&
            element < (int64_t)step_number(range, "end"))
            return true;
    }
    return false;
}

#endif
