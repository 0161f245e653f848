/* A row of fine-tuning data as token ids, and which of them are learned. */
#ifndef TRAIN_CHAT_ENCODE_H
#define TRAIN_CHAT_ENCODE_H

#include "data/chat/chat_check.h"
#include "data/chat/chat_lost.h"
#include "data/chat/chat_turns.h"
#include "text/tokenizer/tokenizer.h"

typedef struct train_chat_encoder {
    const formats_tokenizer *tokenizer;
    const train_chat_templates *templates;
    formats_tokenizer_scratch *scratch; /* this and what follows belong to one thread */
    train_chat_text text, other;        /* of a pair's second answer, where both are read at once */
    formats_tokenizer_text joined;      /* prompt and completion */
    formats_tokenizer_ids prompt;
    train_chat_turn_list list;
    train_chat_mask mask;
    train_chat_turns turns;            /* in place of the mask, of messages; the source's */
    const train_chat_end_ids *end_ids; /* where turns are asked for */
    const json_t *variables;           /* of the template in every row; NULL: none */
    formats_row_format format;         /* of Alpaca rows; the source's */
    bool special;      /* around texts, not around messages: a template writes its own */
    bool odds;         /* answers are cut as TRL's ORPOTrainer cuts them */
    int64_t separator; /* ends a text; -1: none */
} train_chat_encoder;

/* A row; its memory is used again for the next. */
typedef struct train_chat_row {
    formats_tokenizer_ids ids;
    bool *learned; /* one for each id */
    size_t room;
    bool templated; /* a chat template wrote it */
    bool merged;    /* the prompt by itself has other tokens than before the completion */
    size_t first;   /* of a completion: where it begins */
    size_t ends;    /* of turns, those that are learned */
    train_chat_odd odd;
    train_chat_lost lost;
    /* Variables that the row gives and the template does not have, each with a line feed. */
    char unread[256];
} train_chat_row;

void train_chat_row_free(train_chat_row *row);
/* What the thread's parts of the encoder hold, but its scratch. */
void train_chat_encoder_free(train_chat_encoder *encoder);

/* SIFR_FAILED, with file, row and field, for a row that is not as `form` says, that the template
 * refuses, or whose turns cannot be told apart. */
sifr_status train_chat_encode(train_chat_encoder *encoder, const json_t *row,
                              const formats_form *form, const formats_row_place *place,
                              train_chat_row *out, sifr_error *error) SIFR_MUST_CHECK;

/* A preference as two such rows, the chosen answer first. As in TRL, both answers begin at the
 * first token where one of them differs from the prompt by itself; of ORPO each at its own, and
 * such rows have the tokens around a text and its end where they are missing. */
sifr_status train_chat_encode_pair(train_chat_encoder *encoder, const json_t *row,
                                   const formats_form *form, const formats_row_place *place,
                                   train_chat_row out[2], sifr_error *error) SIFR_MUST_CHECK;

#endif
