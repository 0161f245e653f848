/* Whose turns of a conversation are learned, and which tokens that end turns, as axolotl's
 * chat_template strategy has it (0.19.0, prompt_strategies/chat_template.py).
 *
 * A turn is what the text has of it: where the text differs from the one that the template makes
 * with a placeholder in place of the turn's message. Two placeholders without a common edge show
 * all of it. So a turn is found in any template that writes it, wherever it stands there, and has
 * none of what the template puts around it. What ends a turn is a token of its own: the first one
 * of its kind from the turn's end on, at most three tokens behind it. */
#ifndef DATA_CHAT_TURNS_H
#define DATA_CHAT_TURNS_H

#include "data/chat/chat_render.h"
#include "text/tokenizer/tokenizer.h"

typedef enum data_chat_ends {
    DATA_ENDS_TURN, /* of turns that are learned */
    DATA_ENDS_ALL,
    DATA_ENDS_LAST, /* the last one that is found */
    DATA_ENDS_NONE
} data_chat_ends;
bool data_chat_ends_find(const char *word, data_chat_ends *out); /* as data_chat_mask_find */

typedef struct data_chat_turns {
    bool asked;          /* else nothing of this acts */
    const json_t *roles; /* a list of names; NULL: the assistant */
    bool every;          /* turns of all roles */
    data_chat_ends eos;  /* of the end-of-text token */
    data_chat_ends eot;  /* of the tokens that are said to end turns */
} data_chat_turns;

/* The tokens that end turns. */
typedef struct data_chat_end_ids {
    int32_t eos; /* -1: the tokenizer names none */
    int32_t *eot;
    size_t count;
    bool alone; /* the end-of-text token is all there is, since no others are given */
} data_chat_end_ids;

/* `tokens` is a list of texts; NULL: the end-of-text token. SIFR_USAGE for one that is not a single
 * token. */
sifr_status data_chat_ends_open(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                                const json_t *tokens, data_chat_end_ids *out,
                                sifr_error *error) SIFR_MUST_CHECK;
void data_chat_ends_close(data_chat_end_ids *ends); /* harmless on a zeroed one */
/* SIFR_USAGE where two keys say of one token what cannot both be. */
sifr_status data_chat_ends_check(const data_chat_end_ids *ends, const data_chat_turns *turns,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* A turn that was sought. */
typedef struct data_chat_turn {
    text_template_span span; /* in the text; without a byte: it is not there */
    bool learned;
} data_chat_turn;

/* Start with {0}; may be used again. */
typedef struct data_chat_turn_list {
    data_chat_turn *turns;
    size_t count, capacity;
} data_chat_turn_list;

/* The text of a conversation of messages, and its turns that count. SIFR_FAILED, with file and row,
 * where the template raises an error, or does not write a turn of a role that is to learn. */
sifr_status data_chat_turns_find(const data_chat_templates *templates, const data_chat_turns *asked,
                                 const data_conversation *conversation, const data_row_place *place,
                                 data_chat_text *text, data_chat_turn_list *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Sets learned[i] for each id of the text; *ends counts the ends that are learned. *placed as of
 * data_chat_align. */
sifr_status data_chat_turns_learn(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                                  const data_chat_text *text, const data_chat_turn_list *list,
                                  const data_chat_turns *asked, const data_chat_end_ids *end_ids,
                                  const text_tokenizer_ids *ids, bool *learned, size_t *ends,
                                  bool *placed, sifr_error *error) SIFR_MUST_CHECK;

#endif
