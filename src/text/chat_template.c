#include "text/chat_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/folder_file.h"
#include "base/json.h"
#include "text/chat_template_given.h"

enum { TEMPLATE_LIMIT = 4 << 20, CONFIG_LIMIT = 64 << 20, NAME_LIMIT = 256 };

/* Names of templates and their texts: {name: [text, where]}. */
typedef struct finder {
    const char *folder, *given;
    json_t *found;
    sifr_error *error;
} finder;

static sifr_status add(const finder *f, const char *name, const char *text, size_t size,
                       const char *where) {
    json_t *string = json_stringn(text, size);
    if (!string)
        return base_fail(f->error, SIFR_USAGE, "%s: the chat template is not valid UTF-8", where);
    if (json_object_set_new(f->found, name, json_pack("[o, s]", string, where)) != 0)
        return base_fail(f->error, SIFR_NO_MEMORY, "out of memory");
    return SIFR_OK;
}

static bool has(const finder *f, const char *name, char path[BASE_PATH_LENGTH]) {
    return base_path_join(path, f->folder, name, NULL) == SIFR_OK && base_is_file(path);
}

static sifr_status add_file(const finder *f, const char *template_name, const char *file) {
    char path[BASE_PATH_LENGTH], *text;
    size_t size;
    BASE_TRY(base_folder_file(f->folder, file, path, f->error));
    BASE_TRY(base_read_file(path, TEMPLATE_LIMIT, &text, &size, f->error));
    sifr_status status = add(f, template_name, text, size, path);
    free(text);
    return status;
}

/* additional_chat_templates/NAME.jinja */
static sifr_status add_directory(const finder *f) {
    static const char directory[] = "additional_chat_templates", ending[] = ".jinja";
    char path[BASE_PATH_LENGTH], file[BASE_PATH_LENGTH], **names;
    size_t count;
    sifr_status status = SIFR_OK;
    BASE_TRY(base_path_join(path, f->folder, directory, f->error));
    if (!base_is_directory(path)) return SIFR_OK;
    BASE_TRY(base_list_directory(path, &names, &count, f->error));
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        char name[NAME_LIMIT];
        size_t size = strlen(names[i]), end = sizeof ending - 1;
        if (size <= end || size >= sizeof name || strcmp(names[i] + size - end, ending) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(size - end), names[i]);
        status = base_path_join(file, directory, names[i], f->error);
        if (status == SIFR_OK) status = add_file(f, name, file);
    }
    base_free_names(names, count);
    return status;
}

static sifr_status wrong(const finder *f, const char *path) {
    return base_fail(f->error, SIFR_USAGE,
                     "%s: \"chat_template\" must be a string, or a list of {\"name\", "
                     "\"template\"}",
                     path);
}

/* A text; texts by name; or a list of {"name", "template"}. */
static sifr_status add_value(const finder *f, const json_t *value, const char *path) {
    const char *name;
    json_t *member;
    if (json_is_string(value))
        return add(f, "default", json_string_value(value), json_string_length(value), path);
    json_object_foreach((json_t *)(uintptr_t)value, name, member) {
        if (!json_is_string(member)) return wrong(f, path);
        BASE_TRY(add(f, name, json_string_value(member), json_string_length(member), path));
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i), *text = json_object_get(item, "template");
        name = json_string_value(json_object_get(item, "name"));
        if (!name || !json_is_string(text)) return wrong(f, path);
        BASE_TRY(add(f, name, json_string_value(text), json_string_length(text), path));
    }
    return json_is_object(value) || json_is_array(value) ? SIFR_OK : wrong(f, path);
}

static sifr_status add_json(const finder *f, const char *file) {
    char path[BASE_PATH_LENGTH];
    json_t *json;
    if (!has(f, file, path)) return SIFR_OK;
    BASE_TRY(base_folder_file(f->folder, file, path, f->error));
    BASE_TRY(base_json_load(path, CONFIG_LIMIT, &json, f->error));
    const json_t *value = json_object_get(json, "chat_template");
    sifr_status status = value && !json_is_null(value) ? add_value(f, value, path) : SIFR_OK;
    json_decref(json);
    return status;
}

static sifr_status find(const finder *f) {
    char path[BASE_PATH_LENGTH];
    if (has(f, "chat_template.jinja", path))
        BASE_TRY(add_file(f, "default", "chat_template.jinja"));
    BASE_TRY(add_directory(f));
    if (json_object_size(f->found) == 0) BASE_TRY(add_json(f, "tokenizer_config.json"));
    if (json_object_size(f->found) == 0) BASE_TRY(add_json(f, "chat_template.json"));
    return SIFR_OK;
}

/* What is given takes the place of all that were found. */
static sifr_status take_given(const finder *f) {
    text_given_template given;
    sifr_status status = SIFR_OK;
    BASE_TRY(text_chat_template_given(f->given, json_object_size(f->found) > 0, &given, f->error));
    if (given.text) {
        json_object_clear(f->found);
        status = add(f, "default", given.text, given.size, given.where);
    }
    free(given.text);
    return status;
}

/* Which of the templates that were found, or why none. */
static sifr_status choose(const finder *f, bool tools, const json_t **out) {
    *out = tools ? json_object_get(f->found, "tool_use") : NULL;
    if (!*out) *out = json_object_get(f->found, "default");
    if (*out) return SIFR_OK;
    if (json_object_size(f->found) == 0)
        return base_fail(f->error, SIFR_USAGE,
                         "%s has no chat template (chat_template.jinja, or \"chat_template\" in "
                         "tokenizer_config.json): it is no chat model; put the template of its "
                         "chat version there, give one with --chat-template, or use `sifr "
                         "generate` without --chat",
                         f->folder);
    return base_fail(f->error, SIFR_USAGE,
                     "%s: none of its chat templates is called \"default\"; rename the one to use",
                     f->folder);
}

/* ---- special tokens ---- */

static const char *const token_names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

/* A token is a string, or an object with its "content". */
static void add_tokens(json_t *variables, const json_t *config) {
    for (size_t i = 0; i < sizeof token_names / sizeof *token_names; i++) {
        json_t *token = json_object_get(config, token_names[i]);
        if (json_is_object(token)) token = json_object_get(token, "content");
        if (json_is_string(token) && !json_object_get(variables, token_names[i]))
            json_object_set(variables, token_names[i], token);
    }
}

static sifr_status read_tokens(const finder *f, json_t *variables) {
    static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[BASE_PATH_LENGTH];
        json_t *json;
        if (!has(f, files[i], path)) continue;
        BASE_TRY(base_folder_file(f->folder, files[i], path, f->error));
        BASE_TRY(base_json_load(path, CONFIG_LIMIT, &json, f->error));
        add_tokens(variables, json);
        json_decref(json);
    }
    return SIFR_OK;
}

static sifr_status load(const finder *f, bool tools, text_chat_template *out) {
    const json_t *row;
    BASE_TRY(find(f));
    BASE_TRY(take_given(f));
    BASE_TRY(choose(f, tools, &row));
    const json_t *text = json_array_get(row, 0);
    BASE_TRY(read_tokens(f, out->variables));
    return text_template_parse(json_string_value(text), json_string_length(text),
                               json_string_value(json_array_get(row, 1)), &out->parsed, f->error);
}

sifr_status text_chat_template_load(const char *folder, const char *given, bool tools,
                                    text_chat_template *out, sifr_error *error) {
    finder f = {.folder = folder, .given = given, .found = json_object(), .error = error};
    *out = (text_chat_template){.variables = json_object()};
    sifr_status status = f.found && out->variables
                             ? load(&f, tools, out)
                             : base_fail(error, SIFR_NO_MEMORY, "out of memory");
    json_decref(f.found);
    if (status != SIFR_OK) text_chat_template_free(out);
    return status;
}

sifr_status text_chat_template_exists(const char *folder, bool *out, sifr_error *error) {
    finder f = {.folder = folder, .found = json_object(), .error = error};
    if (!f.found) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    sifr_status status = find(&f);
    *out = json_object_size(f.found) > 0;
    json_decref(f.found);
    return status;
}

static sifr_status write_text(const text_given_template *given, const char *to, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    base_writer writer;
    BASE_TRY(base_path_join(path, to, "additional_chat_templates", error));
    BASE_TRY(base_remove_tree(path, error));
    BASE_TRY(base_path_join(path, to, "chat_template.jinja", error));
    BASE_TRY(base_writer_open(&writer, path, error));
    sifr_status status = base_writer_write(&writer, given->text, given->size, error);
    if (status == SIFR_OK) return base_writer_commit(&writer, error);
    base_writer_abort(&writer);
    return status;
}

sifr_status text_chat_template_put(const char *given, const char *folder, const char *to,
                                   sifr_error *error) {
    text_given_template found;
    bool own = false;
    if (!given) return SIFR_OK;
    BASE_TRY(text_chat_template_exists(folder, &own, error));
    BASE_TRY(text_chat_template_given(given, own, &found, error));
    sifr_status status = found.text ? write_text(&found, to, error) : SIFR_OK;
    free(found.text);
    return status;
}

void text_chat_template_free(text_chat_template *chat) {
    text_template_free(chat->parsed);
    json_decref(chat->variables);
    *chat = (text_chat_template){0};
}

sifr_status text_chat_template_render(const text_chat_template *chat,
                                      const text_template_input *input, text_template_output *out,
                                      sifr_error *error) {
    text_template_input all = *input;
    json_t *variables = json_copy(chat->variables);
    if (!variables) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    if (input->variables) json_object_update(variables, (json_t *)(uintptr_t)input->variables);
    all.variables = variables;
    sifr_status status = text_template_render(chat->parsed, &all, out, error);
    json_decref(variables);
    return status;
}
