/* A row of fine-tuning data as token ids, and which of them are learned. */
#ifndef DATA_CHAT_ENCODE_H
#define DATA_CHAT_ENCODE_H

#include "data/chat/chat_check.h"
#include "data/chat/chat_lost.h"
#include "data/chat/chat_turns.h"
#include "text/tokenizer/tokenizer.h"

typedef struct data_chat_encoder {
    const text_tokenizer *tokenizer;
    const data_chat_templates *templates;
    text_tokenizer_scratch *scratch; /* this and what follows belong to one thread */
    data_chat_text text, other;      /* of a pair's second answer, where both are read at once */
    text_tokenizer_text joined;      /* prompt and completion */
    text_tokenizer_ids prompt;
    data_chat_turn_list list;
    data_chat_mask mask;
    data_chat_turns turns;            /* in place of the mask, of messages; the source's */
    const data_chat_end_ids *end_ids; /* where turns are asked for */
    const json_t *variables;          /* of the template in every row; NULL: none */
    data_row_format format;           /* of Alpaca rows; the source's */
    bool special;      /* around texts, not around messages: a template writes its own */
    bool odds;         /* answers are cut as TRL's ORPOTrainer cuts them */
    int64_t separator; /* ends a text; -1: none */
} data_chat_encoder;

/* A row; its memory is used again for the next. */
typedef struct data_chat_row {
    text_tokenizer_ids ids;
    bool *learned; /* one for each id */
    size_t capacity;
    bool templated; /* a chat template wrote it */
    bool merged;    /* the prompt by itself has other tokens than before the completion */
    size_t first;   /* of a completion: where it begins */
    size_t ends;    /* of turns, those that are learned */
    data_chat_odd odd;
    data_chat_lost lost;
    /* Variables that the row gives and the template does not have, each with a line feed. */
    char unread[256];
} data_chat_row;

void data_chat_row_free(data_chat_row *row);
/* What the thread's parts of the encoder hold, but its scratch. */
void data_chat_encoder_free(data_chat_encoder *encoder);

/* SIFR_FAILED, with file, row and field, for a row that is not as `form` says, that the template
 * refuses, or whose turns cannot be told apart. */
sifr_status data_chat_encode(data_chat_encoder *encoder, const json_t *row, const data_form *form,
                             const data_row_place *place, data_chat_row *out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* A preference as two such rows, the chosen answer first. As in TRL, both answers begin at the
 * first token where one of them differs from the prompt by itself; of ORPO each at its own, and
 * such rows have the tokens around a text and its end where they are missing. */
sifr_status data_chat_encode_pair(data_chat_encoder *encoder, const json_t *row,
                                  const data_form *form, const data_row_place *place,
                                  data_chat_row out[2], sifr_error *error) SIFR_MUST_CHECK;

#endif
