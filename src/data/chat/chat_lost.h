/* What a row holds and its chat template does not write: calls of tools and thoughts of the
 * assistant, a list of tools. transformers writes the same text without a word. */
#ifndef DATA_CHAT_LOST_H
#define DATA_CHAT_LOST_H

#include "data/chat/chat_render.h"

enum { DATA_CHAT_LOST_NAME = 48 };

typedef struct data_chat_lost {
    char member[DATA_CHAT_LOST_NAME]; /* of a message, which is not in the text; "": none */
    size_t empty; /* the message that is learned, but has nothing else, from 1 on; 0: none */
    bool tools;   /* the list of tools is not in the text */
    bool twice;   /* the system's turn has the tools that the template writes, too */
} data_chat_lost;

/* `text` is the conversation as the template writes it. */
sifr_status data_chat_find_lost(const data_chat_templates *templates, data_chat_mask mask,
                                const data_conversation *conversation, const char *text,
                                size_t size, data_chat_lost *out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_FAILED, with file and row, where an empty answer would be learned. */
sifr_status data_chat_check_lost(const data_chat_lost *lost, const data_row_place *place,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
