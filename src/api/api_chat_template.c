#include "api/api_chat_template.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_context.h"
#include "base/heap.h"
#include "base/inside.h"
#include "base/json.h"
#include "data/records/conversation.h"

enum { TOOLS_LIMIT = 16 << 20 };

static bool are_objects(const json_t *array) {
    bool objects = json_is_array(array) && json_array_size(array) > 0;
    for (size_t i = 0; i < json_array_size(array); i++)
        objects &= json_is_object(json_array_get(array, i));
    return objects;
}

static sifr_status read_tools(const sifr_chat_template_options *options, json_t **out,
                              sifr_error *error) {
    const char *name = options->tools_file ? options->tools_file : "JSON";
    if (options->tools && options->tools_file)
        return base_fail(error, SIFR_USAGE, "--tools: give a text or a file, not both");
    if (options->tools_file) BASE_TRY(base_json_load(options->tools_file, TOOLS_LIMIT, out, error));
    if (options->tools)
        BASE_TRY(base_json_parse(options->tools, strlen(options->tools), "--tools", out, error));
    if (!*out || are_objects(*out)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "--tools %s: must be an array of JSON objects, each the description of a "
                     "function",
                     name);
}

static sifr_status read_variables(const infer_chat_prompt *chat, const char *text, json_t **out,
                                  sifr_error *error) {
    static const char flag[] = "--chat-template-kwargs";
    const char *name;
    json_t *value;
    BASE_TRY(base_json_parse(text, strlen(text), flag, out, error));
    if (!json_is_object(*out))
        return base_fail(error, SIFR_USAGE,
                         "%s: must be an object such as {\"enable_thinking\": "
                         "false}",
                         flag);
    const char *wrong = data_variables_refused(*out);
    json_object_foreach(*out, name, value) {
        (void)value;
        if (!strcmp(name, "tools") || !text_template_names(chat->template.parsed, name))
            wrong = name;
    }
    if (!wrong) return SIFR_OK;
    if (!strcmp(wrong, "tools"))
        return base_fail(error, SIFR_USAGE, "%s: give 'tools' as a file, by --tools", flag);
    return base_fail(error, SIFR_USAGE, "%s: the chat template has no variable '%s'", flag, wrong);
}

static sifr_status fill(infer_chat_prompt *prompt, const sifr_chat_template_options *options,
                        sifr_error *error) {
    if (options->variables)
        BASE_TRY(read_variables(prompt, options->variables, &prompt->variables, error));
    prompt->documents = json_incref(json_object_get(prompt->variables, "documents"));
    if (prompt->documents) json_object_del(prompt->variables, "documents");
    return read_tools(options, &prompt->tools, error);
}

sifr_status api_chat_template_make(const char *folder, const char *own,
                                   const sifr_chat_template_options *options,
                                   sifr_chat_template **out, sifr_error *error) {
    sifr_chat_template_options known;
    sifr_chat_template *chat;
    BASE_TRY(api_take_options("sifr_chat_template_options", options, sizeof known, &known, error));
    BASE_TRY(base_alloc(1, sizeof *chat, &chat, error));
    const char *given = known.chat_template ? known.chat_template : own;
    sifr_status status =
        text_chat_template_load(folder, given, false, &chat->prompt.template, error);
    if (status == SIFR_OK) status = fill(&chat->prompt, &known, error);
    if (status == SIFR_OK) *out = chat;
    if (status != SIFR_OK) sifr_chat_template_free(chat);
    return status;
}

sifr_status sifr_chat_template_open(sifr_context *context, const char *folder,
                                    const sifr_chat_template_options *options,
                                    sifr_chat_template **out, sifr_error *error) {
    BASE_ENTER(error, folder, out);
    (void)context;
    return api_chat_template_make(folder, NULL, options, out, error);
}

void sifr_chat_template_free(sifr_chat_template *chat) {
    BASE_ENTER_VOID(chat);
    text_template_output_free(&chat->out);
    infer_chat_close(&chat->prompt);
    free(chat);
}

sifr_status api_read_messages(const char *text, size_t size, json_t **out, sifr_error *error) {
    BASE_TRY(base_json_parse(text, size, "messages", out, error));
    if (are_objects(*out)) return SIFR_OK;
    json_decref(*out);
    return base_fail(error, SIFR_USAGE,
                     "messages: must be an array of JSON objects, each with \"role\" and "
                     "\"content\"");
}

sifr_status sifr_chat_template_render(sifr_chat_template *chat, const char *messages,
                                      size_t messages_size, bool prompt, const char **text,
                                      size_t *size, sifr_error *error) {
    BASE_ENTER(error, chat, text, size);
    BASE_TRY(BASE_GIVEN_FOR(error, messages_size, messages));
    json_t *read;
    BASE_TRY(api_read_messages(messages, messages_size, &read, error));
    text_template_output_free(&chat->out);
    chat->out = (text_template_output){0};
    sifr_status status = infer_chat_render(&chat->prompt, read, prompt, &chat->out, error);
    json_decref(read);
    BASE_TRY(status);
    *text = chat->out.text;
    *size = chat->out.size;
    return SIFR_OK;
}
