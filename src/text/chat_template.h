/* The chat template of a model folder, and the names that its tokenizer gives to special tokens. */
#ifndef TEXT_CHAT_TEMPLATE_H
#define TEXT_CHAT_TEMPLATE_H

#include "text/template/template.h"

typedef struct text_chat_template {
    text_template *parsed;
    json_t *variables; /* bos_token, eos_token … : those that the folder names */
} text_chat_template;

/* `given` (NULL: none) is a file, a name or a template to take in place of the folder's
 * (text/chat_template_given.h). Else from chat_template.jinja and additional_chat_templates/,
 * else tokenizer_config.json, else chat_template.json, as transformers finds it. Where there are
 * several, "tool_use" is for messages with tools and "default" for the others. SIFR_USAGE if the
 * folder has none. */
sifr_status text_chat_template_load(const char *folder, const char *given, bool tools,
                                    text_chat_template *out, sifr_error *error) SIFR_MUST_CHECK;
/* Whether the folder has any, which may still be one that is refused. */
sifr_status text_chat_template_exists(const char *folder, bool *out,
                                      sifr_error *error) SIFR_MUST_CHECK;
void text_chat_template_free(text_chat_template *chat); /* harmless on a zeroed one */

/* As text_template_render; input->variables win over the folder's. */
sifr_status text_chat_template_render(const text_chat_template *chat,
                                      const text_template_input *input, text_template_output *out,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Writes the template that is given, if any, into a folder that was made from `folder`:
 * chat_template.jinja in place of all templates that it has. */
sifr_status text_chat_template_put(const char *given, const char *folder, const char *to,
                                   sifr_error *error) SIFR_MUST_CHECK;

#endif
