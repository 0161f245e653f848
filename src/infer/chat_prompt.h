/* A conversation as a prompt: the messages through the model's template, encoded. */
#ifndef INFER_CHAT_PROMPT_H
#define INFER_CHAT_PROMPT_H

#include "infer/generation.h"
#include "text/chat_template.h"

/* Start with {0}; what it has belongs to it. Close with infer_chat_close. */
typedef struct infer_chat_prompt {
    text_chat_template template;
    json_t *tools;     /* descriptions of functions for the template; NULL: none */
    json_t *documents; /* likewise */
    json_t *variables; /* further ones of the template; NULL: none */
} infer_chat_prompt;

void infer_chat_close(infer_chat_prompt *chat); /* harmless on a zeroed one */

/* Appends {"role", "content"} to the array. */
sifr_status infer_chat_add(json_t *messages, const char *role, const char *content, size_t size,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The text of the messages; with `prompt`, also of the beginning of the assistant's next one. Free
 * it with text_template_output_free. */
sifr_status infer_chat_render(const infer_chat_prompt *chat, const json_t *messages, bool prompt,
                              text_template_output *out, sifr_error *error) SIFR_MUST_CHECK;
/* The ids of the messages and of the beginning of the assistant's next one, in place of those in
 * `ids`. */
sifr_status infer_chat_encode(const infer_generation *g, const infer_chat_prompt *chat,
                              const json_t *messages, text_tokenizer_ids *ids,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
