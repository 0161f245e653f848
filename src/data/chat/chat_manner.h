/* How a chat template writes turns, found by rendering a few small conversations once. */
#ifndef DATA_CHAT_MANNER_H
#define DATA_CHAT_MANNER_H

#include "text/chat_template.h"

enum { DATA_CHAT_CUE = 128 };

typedef struct data_chat_manner {
    /* Its loop over the messages shows which of them a part of the text is written for. */
    bool known;
    /* It writes what is said otherwise once the conversation goes on, or a turn otherwise than the
     * generation prompt begins it: a turn is not the difference of two renderings. */
    bool anew;
    bool open;      /* nothing of its own ends a turn of the assistant */
    unsigned lists; /* data_list_roles whose contents it takes as lists of parts */
    /* What stands before a turn and is not learned: the header of the generation prompt. */
    char cue[DATA_CHAT_CUE];
} data_chat_manner;

/* Of conversations with tools or without. `eos`, which may be NULL, ends a conversation in some
 * templates. */
sifr_status data_chat_manner_find(const text_chat_template *template, bool tools,
                                  const struct tm *now, const char *eos, data_chat_manner *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

#endif
