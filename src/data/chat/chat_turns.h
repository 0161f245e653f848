/* Whose turns of a conversation are learned, and which tokens that end turns, as axolotl's
 * chat_template strategy has it (0.19.0, prompt_strategies/chat_template.py).
 *
 * A turn is what the text has of it: where the text differs from the one that the template makes
 * with a placeholder in place of the turn's message. Two placeholders without a common edge show
 * all of it. So a turn is found in any template that writes it, wherever it stands there, and has
 * none of what the template puts around it. What ends a turn is a token of its own: the first one
 * of its kind from the turn's end on, at most three tokens behind it. */
#ifndef TRAIN_CHAT_TURNS_H
#define TRAIN_CHAT_TURNS_H

#include "data/chat/chat_render.h"
#include "text/tokenizer/tokenizer.h"

typedef enum train_chat_ends {
    TRAIN_ENDS_TURN, /* of turns that are learned */
    TRAIN_ENDS_ALL,
    TRAIN_ENDS_LAST, /* the last one that is found */
    TRAIN_ENDS_NONE
} train_chat_ends;

typedef struct train_chat_turns {
    bool asked;          /* else nothing of this acts */
    const json_t *roles; /* a list of names; NULL: the assistant */
    bool every;          /* turns of all roles */
    train_chat_ends eos; /* of the end-of-text token */
    train_chat_ends eot; /* of the tokens that are said to end turns */
} train_chat_turns;

/* The tokens that end turns. */
typedef struct train_chat_end_ids {
    int32_t eos; /* -1: the tokenizer names none */
    int32_t *eot;
    size_t count;
    bool alone; /* the end-of-text token is all there is, since no others are given */
} train_chat_end_ids;

/* `tokens` is a list of texts; NULL: the end-of-text token. SIFR_USAGE for one that is not a single
 * token. */
sifr_status train_chat_ends_open(const formats_tokenizer *tokenizer,
                                 formats_tokenizer_scratch *scratch, const json_t *tokens,
                                 train_chat_end_ids *out, sifr_error *error) SIFR_MUST_CHECK;
void train_chat_ends_close(train_chat_end_ids *ends); /* harmless on a zeroed one */
/* SIFR_USAGE where two keys say of one token what cannot both be. */
sifr_status train_chat_ends_check(const train_chat_end_ids *ends, const train_chat_turns *turns,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* A turn that was sought. */
typedef struct train_chat_turn {
    formats_template_span span; /* in the text; without a byte: it is not there */
    bool learned;
} train_chat_turn;

/* Start with {0}; may be used again. */
typedef struct train_chat_turn_list {
    train_chat_turn *turns;
    size_t count, room;
} train_chat_turn_list;

/* The text of a conversation of messages, and its turns that count. SIFR_FAILED, with file and row,
 * where the template raises an error, or does not write a turn of a role that is to learn. */
sifr_status train_chat_turns_find(const train_chat_templates *templates,
                                  const train_chat_turns *asked,
                                  const formats_conversation *conversation,
                                  const formats_row_place *place, train_chat_text *text,
                                  train_chat_turn_list *out, sifr_error *error) SIFR_MUST_CHECK;

/* Sets learned[i] for each id of the text; *ends counts the ends that are learned. *placed as of
 * train_chat_align. */
sifr_status train_chat_turns_learn(const formats_tokenizer *tokenizer,
                                   formats_tokenizer_scratch *scratch, const train_chat_text *text,
                                   const train_chat_turn_list *list, const train_chat_turns *asked,
                                   const train_chat_end_ids *end_ids,
                                   const formats_tokenizer_ids *ids, bool *learned, size_t *ends,
                                   bool *placed, sifr_error *error) SIFR_MUST_CHECK;

#endif
