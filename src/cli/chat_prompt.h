/* A conversation as a prompt: the messages through the model's template, encoded. */
#ifndef CLI_CHAT_PROMPT_H
#define CLI_CHAT_PROMPT_H

#include "cli/generation_flags.h"
#include "text/chat_template.h"

typedef struct cli_chat_prompt {
    text_chat_template template;
    json_t *tools;     /* descriptions of functions for the template; NULL: none */
    json_t *documents; /* likewise */
    json_t *variables; /* further ones of the template; NULL: none */
} cli_chat_prompt;

/* What the user gives beside messages; NULL: not given. */
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

/* With the model's template. */
sifr_status cli_chat_open(const infer_generation *g, const cli_chat_flags *flags,
                          cli_chat_prompt *out, sifr_error *error) SIFR_MUST_CHECK;
void cli_chat_close(cli_chat_prompt *chat); /* harmless on a zeroed one */

/* Appends {"role", "content"} to the array. */
sifr_status cli_chat_add(json_t *messages, const char *role, const char *content, size_t size,
                         sifr_error *error) SIFR_MUST_CHECK;

/* The ids of the messages and of the beginning of the assistant's next one, in place of those in
 * `ids`. */
sifr_status cli_chat_encode(const infer_generation *g, const cli_chat_prompt *chat,
                            const json_t *messages, text_tokenizer_ids *ids,
                            sifr_error *error) SIFR_MUST_CHECK;

#endif
