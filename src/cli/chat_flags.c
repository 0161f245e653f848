#include "cli/chat_flags.h"

#include <string.h>

#include "base/json.h"
#include "data/records/conversation.h"

enum { TOOLS_LIMIT = 16 << 20 };

void cli_chat_options(cli_chat_flags *flags, cli_option *options) {
    const cli_option table[CLI_CHAT_OPTIONS] = {
        {"tools", CLI_TEXT, "FILE",
         "of a chat: JSON array of functions that the template describes to the model",
         &flags->tools, NULL, false},
        {"chat-template", CLI_TEXT, "FILE",
         "of a chat: template in place of the model's, a file or a name", &flags->template, NULL,
         false},
        {"chat-template-kwargs", CLI_TEXT, "JSON",
         "of a chat: variables of the template, such as {\"enable_thinking\": false}",
         &flags->variables, NULL, false},
    };
    memcpy(options, table, sizeof table);
}

const char *cli_chat_given(const cli_chat_flags *flags) {
    if (flags->tools) return "tools";
    if (flags->template) return "chat-template";
    return flags->variables ? "chat-template-kwargs" : NULL;
}

static sifr_status read_tools(const char *tools, json_t **out, sifr_error *error) {
    BASE_TRY(base_json_load(tools, TOOLS_LIMIT, out, error));
    bool objects = json_is_array(*out) && json_array_size(*out) > 0;
    for (size_t i = 0; i < json_array_size(*out); i++)
        objects &= json_is_object(json_array_get(*out, i));
    if (objects) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "--tools %s: must be an array of JSON objects, each the description of a "
                     "function",
                     tools);
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

sifr_status cli_chat_open(const infer_generation *g, const cli_chat_flags *flags,
                          infer_chat_prompt *out, sifr_error *error) {
    BASE_TRY(infer_chat_open(g, flags->template, out, error));
    if (flags->variables) BASE_TRY(read_variables(out, flags->variables, &out->variables, error));
    out->documents = json_incref(json_object_get(out->variables, "documents"));
    if (out->documents) json_object_del(out->variables, "documents");
    return flags->tools ? read_tools(flags->tools, &out->tools, error) : SIFR_OK;
}
