/* A conversation as a prompt: the messages through the model's template, encoded. */
#ifndef CLI_CHAT_PROMPT_H
#define CLI_CHAT_PROMPT_H

#include "cli/generation.h"
#include "formats/chat_template.h"

/* Appends {"role", "content"} to the array. */
sifr_status cli_chat_add(json_t *messages, const char *role, const char *content, size_t size,
                         sifr_error *error) SIFR_MUST_CHECK;

/* The ids of the messages and of the beginning of the assistant's next one, in place of those in
 * `ids`. */
sifr_status cli_chat_encode(const cli_generation *g, const formats_chat_template *chat,
                            const json_t *messages, formats_tokenizer_ids *ids,
                            sifr_error *error) SIFR_MUST_CHECK;

#endif
