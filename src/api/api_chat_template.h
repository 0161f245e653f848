/* Chat templates of callers, for the files that make the C interface. */
#ifndef API_CHAT_TEMPLATE_H
#define API_CHAT_TEMPLATE_H

#include "infer/chat_prompt.h"
#include "sifr/tokenizer.h"

struct sifr_chat_template {
    infer_chat_prompt prompt;
    text_template_output out;
};

/* With the folder's template, or `own` in place of it (NULL: none), where the options give none. */
sifr_status api_chat_template_make(const char *folder, const char *own,
                                   const sifr_chat_template_options *options,
                                   sifr_chat_template **out, sifr_error *error) SIFR_MUST_CHECK;

/* JSON of a caller as messages: an array of objects, at least one. */
sifr_status api_read_messages(const char *text, size_t size, json_t **out,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
