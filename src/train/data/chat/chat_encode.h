/* A row of fine-tuning data as token ids, and which of them are learned. */
#ifndef TRAIN_CHAT_ENCODE_H
#define TRAIN_CHAT_ENCODE_H

#include "formats/tokenizer/tokenizer.h"
#include "train/data/chat/chat_check.h"
#include "train/data/chat/chat_render.h"

typedef struct train_chat_encoder {
    const formats_tokenizer *tokenizer;
    const train_chat_templates *templates;
    formats_tokenizer_scratch *scratch; /* this and what follows belong to one thread */
    train_chat_text text;
    formats_tokenizer_text joined; /* prompt and completion */
    formats_tokenizer_ids prompt;
    train_chat_mask mask;
    formats_row_format format; /* of Alpaca rows; the source's */
    bool special;              /* around texts, not around messages: a template writes its own */
    int64_t separator;         /* ends a text; -1: none */
} train_chat_encoder;

/* A row; its memory is used again for the next. */
typedef struct train_chat_row {
    formats_tokenizer_ids ids;
    bool *learned; /* one for each id */
    size_t room;
    bool merged;   /* the last token of the prompt holds a part of the completion */
    size_t prompt; /* of a text: so many ids are those of the prompt by itself */
    train_chat_odd odd;
} train_chat_row;

void train_chat_row_free(train_chat_row *row);
/* What the thread's parts of the encoder hold, but its scratch. */
void train_chat_encoder_free(train_chat_encoder *encoder);

/* SIFR_FAILED, with file, row and field, for a row that is not as `form` says, that the template
 * refuses, or whose turns cannot be told apart. */
sifr_status train_chat_encode(train_chat_encoder *encoder, const json_t *row,
                              const formats_form *form, const formats_row_place *place,
                              train_chat_row *out, sifr_error *error) SIFR_MUST_CHECK;

/* A preference as two such rows, the chosen answer first. As in TRL, both answers to a prompt in
 * text begin at the first token where one of them differs from the prompt by itself. */
sifr_status train_chat_encode_pair(train_chat_encoder *encoder, const json_t *row,
                                   const formats_form *form, const formats_row_place *place,
                                   train_chat_row out[2], sifr_error *error) SIFR_MUST_CHECK;

#endif
