/* Finds conversations whose text a user would not expect: a chat template leaves something out, or
 * quotes it. This is no error, since transformers writes the same text; such rows are counted. */
#ifndef DATA_CHAT_CHECK_H
#define DATA_CHAT_CHECK_H

#include <stdbool.h>

#include "data/records/conversation.h"

typedef struct data_chat_odd {
    bool left_out; /* a message of the system, a developer or a user is not in the text */
    bool replaced; /* the row has a system prompt in a field, and another one in a turn */
    bool doubled;  /* the tokenizer puts a token before a text that begins with it */
    bool quoted;   /* arguments of a tool call are JSON in a string, and the text has them so */
} data_chat_odd;

data_chat_odd data_chat_check(const data_conversation *conversation, const char *text, size_t size);

/* Whether a list of messages begins with a system prompt that is not that of the row's field. */
bool data_chat_replaces_system(const json_t *row, const json_t *messages);

#endif
