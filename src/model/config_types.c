/* Values of a type that transformers' classes refuse. A run would end in a folder that they do not
 * open; and null is not what an absent key means to all of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/model_reader.h"

/* Of a key "NAME:LETTERS", between spaces. */
static const struct {
    const char *model_type, *keys;
} classes[] = {
#define TYPES(model_type, keys) {model_type, keys},
#include "model/config_types.inc"
#undef TYPES
};

static const struct {
    char letter;
    const char *text;
} types[] = {{'v', "a value"},  {'i', "a whole number"}, {'f', "a number"},  {'b', "true or false"},
             {'s', "a string"}, {'l', "a list"},         {'o', "an object"}, {'n', "null"}};

/* 5e8 is whole, and a whole number is a number: they mean the same wherever they stand. */
static bool is_type(char letter, const json_t *value) {
    switch (letter) {
    case 'v':
        return !json_is_null(value);
    case 'i':
        return json_is_integer(value) ||
               (json_is_real(value) && json_real_value(value) == floor(json_real_value(value)));
    case 'f':
        return json_is_number(value);
    case 'b':
        return json_is_boolean(value);
    case 's':
        return json_is_string(value);
    case 'l':
        return json_is_array(value);
    case 'o':
        return json_is_object(value);
    default:
        return json_is_null(value);
    }
}

static sifr_status wrong_type(const model_reader *r, const char *key, const char *letters,
                              size_t count, const json_t *value) {
    char wanted[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        bool listed = memchr(letters, types[i].letter, count) != NULL;
        if (!listed || (types[i].letter == 'i' && memchr(letters, 'f', count))) continue;
        used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s%s", used ? " or " : "",
                                 types[i].text);
    }
    char *text = base_json_text(value);
    sifr_status status = base_fail(r->error, SIFR_USAGE,
                                   "%s: \"%s\" must be %s, not %.80s: transformers' class takes "
                                   "nothing else",
                                   r->name, key, wanted, text ? text : "that");
    free(text);
    return status;
}

static sifr_status check_class(const model_reader *r, const char *keys) {
    for (const char *at = keys, *end; *at; at = *end ? end + 1 : end) {
        char key[64];
        end = at + strcspn(at, " ");
        size_t length = strcspn(at, ":");
        snprintf(key, sizeof key, "%.*s", (int)length, at);
        const json_t *value = json_object_get(r->json, key);
        const char *letters = at + length + 1;
        bool fits = !value;
        for (const char *letter = letters; letter < end && !fits; letter++)
            fits = is_type(*letter, value);
        if (!fits) return wrong_type(r, key, letters, (size_t)(end - letters), value);
    }
    return SIFR_OK;
}

sifr_status model_check_types(const model_reader *r, const char *model_type) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (!strcmp(classes[i].model_type, model_type)) BASE_TRY(check_class(r, classes[i].keys));
    }
    return SIFR_OK;
}
