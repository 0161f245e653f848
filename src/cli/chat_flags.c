#include "cli/chat_flags.h"

#include <string.h>

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

sifr_chat_template_options cli_chat_options_given(const cli_chat_flags *flags) {
    return (sifr_chat_template_options){.size = sizeof(sifr_chat_template_options),
                                        .chat_template = flags->template,
                                        .tools_file = flags->tools,
                                        .variables = flags->variables};
}
