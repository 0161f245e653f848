/* sifr.dataset: a list of sources of rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/heap.h"
#include "base/text.h"
#include "config/config_private.h"

static const char path_of_key[] = "sifr.dataset";

/* "ds.json: sifr.dataset[2].weight". */
static sifr_status wrong(const sifr_config *config, size_t index, const char *member,
                         const char *must, sifr_error *error) {
    char where[300];
    config_path_where(config, path_of_key, where);
    return base_fail(error, SIFR_USAGE, "%s[%zu]%s%s must be %s", where, index, *member ? "." : "",
                     member, must);
}

static sifr_status check_members(const sifr_config *config, const json_t *item, size_t index,
                                 sifr_error *error) {
    static const char *const known[] = {
        "path",           "type",         "weight",          "fields",
        "ignore_fields",  "format",       "no_input_format", "system_format",
        "roles_to_train", "train_on_eos", "train_on_eot"};
    const char *name;
    json_t *value;
    char where[300];
    json_object_foreach((json_t *)(uintptr_t)item, name, value) {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found |= strcmp(name, known[i]) == 0;
        if (found) continue;
        const char *near = base_nearest(name, known, sizeof known / sizeof *known);
        config_path_where(config, path_of_key, where);
        return base_fail(error, SIFR_USAGE,
                         "%s[%zu].%.60s is unknown%s%s; a source has path, type, weight, fields, "
                         "ignore_fields, format, no_input_format, system_format, "
                         "roles_to_train, train_on_eos and train_on_eot",
                         where, index, name, near ? "; did you mean " : "", near ? near : "");
    }
    return SIFR_OK;
}

/* The names of fields that rows of the known forms have. */
static const char known_fields[] = "messages|conversations|prompt|completion|instruction|input|"
                                   "output|system|history|text|chosen|rejected|tools|"
                                   "documents|chat_template_kwargs";

static sifr_status check_fields(const sifr_config *config, const json_t *fields, size_t index,
                                sifr_error *error) {
    const char *name;
    json_t *value;
    char where[300];
    if (!fields) return SIFR_OK;
    if (!json_is_object(fields) || !json_object_size(fields))
        return wrong(config, index, "fields", "an object such as {\"prompt\": \"question\"}",
                     error);
    config_path_where(config, path_of_key, where);
    json_object_foreach((json_t *)(uintptr_t)fields, name, value) {
        if (!config_key_has_word(known_fields, name, NULL, NULL))
            return base_fail(error, SIFR_USAGE,
                             "%s[%zu].fields.%.60s is no field of a row here (fields: %s); the "
                             "file's name goes to the right, as in {\"prompt\": \"question\"}",
                             where, index, name, known_fields);
        if (!json_string_length(value))
            return base_fail(error, SIFR_USAGE, "%s[%zu].fields.%s must be the name of a field",
                             where, index, name);
    }
    return SIFR_OK;
}

static sifr_status check_ignored(const sifr_config *config, const json_t *names, size_t index,
                                 sifr_error *error) {
    bool texts = json_array_size(names) > 0;
    for (size_t i = 0; i < json_array_size(names); i++)
        texts &= json_string_length(json_array_get(names, i)) > 0;
    if (!names || texts) return SIFR_OK;
    return wrong(config, index, "ignore_fields", "a list of fields such as [\"system\"]", error);
}

/* The first brace in a format that is neither doubled nor around one of `names`; NULL: none. */
static const char *find_stray(const char *format, const char *names) {
    for (const char *c = format; *c; c++) {
        char name[32], spelling[64];
        if (*c != '{' && *c != '}') continue;
        if (c[1] == *c) {
            c++;
            continue;
        }
        const char *end = *c == '{' ? strchr(c, '}') : NULL;
        size_t length = end ? (size_t)(end - c) - 1 : 0;
        if (length == 0 || length >= sizeof name) return c;
        memcpy(name, c + 1, length);
        name[length] = '\0';
        if (!config_key_has_word(names, name, NULL, spelling) || strcmp(name, spelling) != 0)
            return c;
        c = end;
    }
    return NULL;
}

static sifr_status fill_format(const sifr_config *config, const json_t *item, size_t index,
                               const char *member, const char *names, const char **out,
                               sifr_error *error) {
    const json_t *value = json_object_get(item, member);
    char where[300];
    *out = json_string_value(value);
    if (!value) return SIFR_OK;
    if (!*out) return wrong(config, index, member, "a text with {instruction} in it", error);
    const char *stray = find_stray(*out, names);
    if (!stray) return SIFR_OK;
    config_path_where(config, path_of_key, where);
    return base_fail(
        error, SIFR_USAGE,
        "%s[%zu].%s: \"%.20s\" is no field of it (fields in braces: %s); write a brace "
        "that is one as {{ or }}",
        where, index, member, stray, names);
}

/* The text of Alpaca's rows, where the source says it. */
static sifr_status fill_formats(const sifr_config *config, const json_t *item, size_t index,
                                config_source *out, sifr_error *error) {
    BASE_TRY(fill_format(config, item, index, "format", "instruction|input", &out->format, error));
    BASE_TRY(fill_format(config, item, index, "no_input_format", "instruction",
                         &out->no_input_format, error));
    BASE_TRY(
        fill_format(config, item, index, "system_format", "system", &out->system_format, error));
    if (out->format && (!out->type || strcasecmp(out->type, "alpaca") != 0))
        return wrong(config, index, "type", "alpaca, where a format is given", error);
    if (!out->format && (out->no_input_format || out->system_format))
        return wrong(config, index, "format", "given with no_input_format or system_format", error);
    return SIFR_OK;
}

/* "one of messages, …, auto", of "auto|messages|…". */
static const char *list_types(const char *choices, char out[200]) {
    const char *rest = strchr(choices, '|') + 1;
    size_t used = (size_t)snprintf(out, 200, "one of ");
    for (const char *c = rest; *c && used < 180; c++)
        used += (size_t)snprintf(out + used, 200 - used, *c == '|' ? ", " : "%c", *c);
    snprintf(out + used, 200 - used, ", %.*s", (int)(rest - 1 - choices), choices);
    return out;
}

static sifr_status fill_source(const sifr_config *config, const json_t *item, size_t index,
                               config_source *out, sifr_error *error) {
    const config_key *types = config_key_find("sifr.data_type", NULL);
    const json_t *path = json_object_get(item, "path"), *type = json_object_get(item, "type");
    const json_t *weight = json_object_get(item, "weight");
    const json_t *fields = json_object_get(item, "fields");
    const json_t *ignored = json_object_get(item, "ignore_fields");
    int choice = 0;
    char where[300], source[330], known[200];
    if (!json_is_object(item))
        return wrong(config, index, "", "an object {\"path\", \"type\", \"weight\"}", error);
    BASE_TRY(check_members(config, item, index, error));
    if (!json_is_string(path) || json_string_length(path) == 0)
        return wrong(config, index, "path", "a file or a glob of files", error);
    if (type && (!json_is_string(type) ||
                 !config_key_has_word(types->choices, json_string_value(type), &choice, NULL)))
        return wrong(config, index, "type", list_types(types->choices, known), error);
    double number = weight ? json_number_value(weight) : 1;
    if (weight && (!json_is_number(weight) || !isfinite(number) || number <= 0 || number > 1e6))
        return wrong(config, index, "weight", "a number above 0, at most 1000000", error);
    BASE_TRY(check_fields(config, fields, index, error));
    BASE_TRY(check_ignored(config, ignored, index, error));
    *out = (config_source){.path = json_string_value(path),
                           .type = !type    ? config->data_type
                                   : choice ? json_string_value(type)
                                            : NULL,
                           .weight = number,
                           .fields = fields,
                           .ignore_fields = ignored};
    config_path_where(config, path_of_key, where);
    snprintf(source, sizeof source, "%s[%zu]", where, index);
    BASE_TRY(config_fill_source_turns(config, item, source, &out->turns, error));
    return fill_formats(config, item, index, out, error);
}

sifr_status config_fill_dataset(sifr_config *config, sifr_error *error) {
    const json_t *list = config_setting_at(config, path_of_key)->value;
    char where[300];
    free(config->source_list);
    config->source_list = NULL;
    config->dataset = NULL;
    if (!list || json_is_null(list)) return SIFR_OK;
    config_path_where(config, path_of_key, where);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return base_fail(error, SIFR_USAGE, "%s must be a list of {\"path\", \"type\", \"weight\"}",
                         where);
    if (config->data_count)
        return base_fail(error, SIFR_USAGE, "%s and sifr.data are both given; give one of them",
                         where);
    size_t count = json_array_size(list);
    free(config->data_list);
    config->data_list = NULL;
    BASE_TRY(base_alloc(count, sizeof *config->source_list, &config->source_list, error));
    BASE_TRY(base_alloc(count, sizeof *config->data_list, &config->data_list, error));
    for (size_t i = 0; i < count; i++) {
        BASE_TRY(fill_source(config, json_array_get(list, i), i, &config->source_list[i], error));
        config->data_list[i] = config->source_list[i].path;
    }
    config->data_count = count;
    config->dataset = config->source_list;
    return SIFR_OK;
}

sifr_status config_fill_data_fields(sifr_config *config, sifr_error *error) {
    static const char *const path = "sifr.data_fields";
    const json_t *texts = config_setting_at(config, path)->value, *text;
    const json_t *ignored = config_setting_at(config, "sifr.ignore_fields")->value;
    char where[300], name[64];
    size_t i;
    config->data_fields = NULL;
    config->ignore_fields = json_array_size(ignored) ? ignored : NULL;
    json_decref(config->fields_made);
    config->fields_made = NULL;
    if (json_array_size(texts) == 0) return SIFR_OK;
    config->fields_made = json_object();
    config_path_where(config, path, where);
    json_array_foreach(texts, i, text) {
        const char *given = json_string_value(text), *equals = strchr(given, '=');
        size_t length = equals ? (size_t)(equals - given) : sizeof name;
        if (length >= sizeof name || !equals[1])
            return base_fail(error, SIFR_USAGE,
                             "%s: \"%.80s\" must be a field here and the file's name of it, such "
                             "as prompt=question",
                             where, given);
        memcpy(name, given, length);
        name[length] = '\0';
        if (!config_key_has_word(known_fields, name, NULL, NULL))
            return base_fail(error, SIFR_USAGE,
                             "%s: \"%s\" in \"%.80s\" is no field of a row here (fields: %s)",
                             where, name, given, known_fields);
        if (json_object_set_new(config->fields_made, name, json_string(equals + 1)) != 0)
            return base_fail_alloc(error, length);
    }
    config->data_fields = config->fields_made;
    return SIFR_OK;
}
