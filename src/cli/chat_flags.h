/* What `sifr generate --chat` and `sifr chat` are given beside messages. */
#ifndef CLI_CHAT_FLAGS_H
#define CLI_CHAT_FLAGS_H

#include "cli/options.h"
#include "sifr/tokenizer.h"

/* NULL: not given. */
typedef struct cli_chat_flags {
    const char *template;  /* in place of the model's */
    const char *tools;     /* a JSON file with an array of objects */
    const char *variables; /* an object as JSON */
} cli_chat_flags;

enum { CLI_CHAT_OPTIONS = 3 };
/* Puts CLI_CHAT_OPTIONS options at `options`: tools, chat-template, chat-template-kwargs. */
void cli_chat_options(cli_chat_flags *flags, cli_option *options);
/* The option that is given, without its dashes; NULL: none. */
const char *cli_chat_given(const cli_chat_flags *flags);

/* The flags for the library; they are borrowed. */
sifr_chat_template_options cli_chat_options_given(const cli_chat_flags *flags);

#endif
