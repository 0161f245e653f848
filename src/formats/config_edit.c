#include "formats/config_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"

/* Past the string that begins at text[at] == '"'. The text is known to be valid JSON. */
static size_t skip_string(const char *text, size_t at) {
    for (at++; text[at] != '"'; at++) {
        if (text[at] == '\\') at++;
    }
    return at + 1;
}

static size_t skip_blanks(const char *text, size_t at) {
    return at + strspn(text + at, " \t\r\n");
}

/* Past the value that begins at text[at]. */
static size_t skip_value(const char *text, size_t at) {
    if (text[at] == '"') return skip_string(text, at);
    if (text[at] != '{' && text[at] != '[') return at + strcspn(text + at, ",}] \t\r\n");
    for (int depth = 0;;) {
        char c = text[at];
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        at = c == '"' ? skip_string(text, at) : at + 1;
        if (depth == 0) return at;
    }
}

/* A member of the outermost object: its key at text[*from], its value from text[*begin] to before
 * text[*end]. */
static bool find_member(const char *text, const char *key, size_t *from, size_t *begin,
                        size_t *end) {
    size_t length = strlen(key), at = skip_blanks(text, 0) + 1;
    for (int depth = 1; depth > 0;) {
        char c = text[at];
        if (c != '"') {
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
            at++;
            continue;
        }
        size_t after = skip_string(text, at), colon = skip_blanks(text, after);
        bool found = depth == 1 && text[colon] == ':' && after - at == length + 2 &&
                     memcmp(text + at + 1, key, length) == 0;
        *from = at;
        at = after;
        if (!found) continue;
        *begin = skip_blanks(text, colon + 1);
        *end = skip_value(text, *begin);
        return true;
    }
    return false;
}

/* text with its bytes begin … end replaced; takes `text`, which came from malloc. */
static sifr_status splice(char **text, size_t begin, size_t end, const char *with,
                          sifr_error *error) {
    size_t size = strlen(*text), length = strlen(with);
    char *larger = malloc(size + length + 1);
    if (!larger) return base_fail_alloc(error, size + length + 1);
    memcpy(larger, *text, begin);
    memcpy(larger + begin, with, length);
    strcpy(larger + begin + length, *text + end);
    free(*text);
    *text = larger;
    return SIFR_OK;
}

/* With the comma behind the member, or that before the last one. */
static sifr_status take_out(char **text, size_t from, size_t end, sifr_error *error) {
    size_t after = skip_blanks(*text, end);
    if ((*text)[after] == ',') return splice(text, from, skip_blanks(*text, after + 1), "", error);
    while (strchr(" \t\r\n", (*text)[from - 1])) from--;
    if ((*text)[from - 1] == ',') from--;
    return splice(text, from, end, "", error);
}

/* Members of the outermost object: their number in *members changes with it. */
static sifr_status change(char **text, const json_t *json, const char *name,
                          const formats_config_change *edit, size_t *members, sifr_error *error) {
    size_t from, begin, end;
    if (json_object_get(json, edit->key)) {
        if (find_member(*text, edit->key, &from, &begin, &end))
            return edit->value ? splice(text, begin, end, edit->value, error)
                               : take_out(text, from, end, error);
        return base_fail(error, SIFR_USAGE,
                         "%s: the key \"%s\" is written with escapes: write it plainly", name,
                         edit->key);
    }
    if (!edit->value) return SIFR_OK;
    char *added;
    size_t size = strlen(edit->key) + strlen(edit->value) + 16;
    BASE_TRY(base_alloc(size, 1, &added, error));
    begin = skip_blanks(*text, 0) + 1;
    snprintf(added, size, "\n  \"%s\": %s%s", edit->key, edit->value, *members ? "," : "\n");
    sifr_status status = splice(text, begin, begin, added, error);
    free(added);
    ++*members;
    return status;
}

static sifr_status edit_text(char **text, const json_t *json, const char *name,
                             const formats_config_change *changes, size_t count,
                             sifr_error *error) {
    size_t members = json_object_size(json);
    if (!json_is_object(json))
        return base_fail(error, SIFR_USAGE, "%s: must be a JSON object", name);
    for (size_t i = 0; i < count; i++)
        BASE_TRY(change(text, json, name, &changes[i], &members, error));
    return SIFR_OK;
}

sifr_status formats_config_edit(const char *text, size_t size, const char *name,
                                const formats_config_change *changes, size_t count, char **out,
                                size_t *out_size, sifr_error *error) {
    json_t *json;
    char *copy = NULL;
    BASE_TRY(base_json_parse(text, size, name, &json, error));
    sifr_status status = base_copy_text(text, size, &copy, error);
    if (status == SIFR_OK) status = edit_text(&copy, json, name, changes, count, error);
    json_decref(json);
    if (status != SIFR_OK) return free(copy), status;
    *out = copy;
    *out_size = strlen(copy);
    return SIFR_OK;
}

sifr_status formats_config_set_dtype(const char *text, size_t size, const char *name,
                                     const char *dtype, char **out, size_t *out_size,
                                     sifr_error *error) {
    static const char *const keys[] = {"torch_dtype", "dtype"};
    formats_config_change changes[2];
    json_t *json;
    char value[64];
    size_t count = 0;
    snprintf(value, sizeof value, "\"%s\"", dtype);
    BASE_TRY(base_json_parse(text, size, name, &json, error));
    sifr_status status = SIFR_OK;
    for (int i = 0; i < 2; i++) {
        const json_t *old = json_object_get(json, keys[i]);
        if (!old) continue;
        if (!json_is_string(old) && !json_is_null(old))
            status =
                base_fail(error, SIFR_USAGE, "%s: \"%s\" must be a plain string", name, keys[i]);
        changes[count++] = (formats_config_change){keys[i], value};
    }
    if (!count) changes[count++] = (formats_config_change){keys[0], value};
    json_decref(json);
    if (status != SIFR_OK) return status;
    return formats_config_edit(text, size, name, changes, count, out, out_size, error);
}
