/* Rows to fine-tune on, from one file or several, encoded once: each is a sequence of a batch,
 * padded on its right; packed, a sequence holds several (chat_packs.h), each a segment whose
 * positions begin at 0, and so does what is left of the sequence. What is longer than a sequence is
 * cut at its end, and a row of which nothing is learned is left out; both are counted and said.
 *
 * An epoch has of each source its rows times the source's weight, in an order that is a function of
 * the seed. With weights of 1 these are all rows once. Packed, it has of each source its sequences
 * times the weight: a sequence has rows of one source.
 *
 * Preferences are pairs: the chosen answer behind its prompt, and the rejected one behind it. An
 * epoch has the sequences of a pair one behind the other, and whole pairs are split and drawn. */
#ifndef DATA_CHAT_ROWS_H
#define DATA_CHAT_ROWS_H

#include "data/chat/chat_turns.h"
#include "data/rows.h"

typedef struct data_chat_source {
    const char *path; /* a file or a glob of files */
    bool typed;
    data_row_type type;       /* where not typed: found by the fields of the file's first row */
    double weight;            /* above 0 */
    const json_t *fields;     /* names of fields here, with the files' own names; NULL: none */
    const json_t *ignored[2]; /* lists of fields of the files that are left out; NULL: none */
    data_row_format format;   /* of Alpaca rows */
    data_chat_turns turns;    /* of messages, in place of the mask */
} data_chat_source;

/* What is put between texts that are joined. */
typedef enum data_chat_joint {
    DATA_JOIN_NONE, /* each row is a sequence */
    DATA_JOIN_EOS,  /* the end-of-text token alone, and a BOS in place of each sequence's first */
    DATA_JOIN_PLAIN /* the tokenizer's special tokens, and no others */
} data_chat_joint;
bool data_chat_joint_find(const char *word, data_chat_joint *out); /* as data_chat_mask_find */

typedef struct data_chat_options {
    const data_chat_source *sources;
    size_t count;
    const char *tokenizer; /* folder; with the chat template */
    int64_t vocab_size, length;
    int64_t separator; /* ends a text, unless the tokenizer names its own end; -1: none */
    int64_t padding;   /* the id that fills up a sequence */
    data_chat_mask mask;
    const json_t *eot_tokens; /* a list of texts that end turns; NULL: the end-of-text token */
    const char *template;     /* in place of the folder's; NULL: its own */
    const char *asked;        /* the user's key of one of these four; NULL: none is given */
    const json_t *variables;  /* of the chat template in every row, an object; NULL: none */
    const char *date;         /* that the chat template gets; NULL: the usual one */
    bool special;             /* the tokenizer's special tokens around texts */
    bool whole;               /* nothing is cut; for looking at the rows */
    bool odds;                /* answers of preferences as TRL's ORPOTrainer cuts them */
    bool skip_bad_rows;       /* those that cannot be read or used are counted, not refused */
    data_chat_joint joint;    /* of rows of text, all of which are then kept whole */
    int64_t max_rows;         /* of each source, the first; 0: all */
    bool drop_long;           /* rows longer than `length` are left out, not cut */
    int threads;              /* 0: every core */
    const sifr_log *log;
} data_chat_options;

typedef struct data_chat data_chat;

typedef struct data_chat_counts {
    int64_t rows, tokens, learned; /* of those that are kept, cut */
    int64_t truncated, cut_tokens; /* rows that were cut, and what was cut off all of them */
    int64_t dropped;               /* rows of which nothing is learned */
    int64_t long_rows;             /* rows that are left out for their length */
    int64_t dropped_cut;           /* of those, because of the cut */
    int64_t bad, merged, longest;
    int64_t unfilled;                  /* tokens that fill no sequence of joined texts */
    int64_t left_out, quoted, doubled; /* data_chat_odd */
    int64_t twice;                     /* data_chat_lost */
} data_chat_counts;

/* Reads and encodes every row. SIFR_FAILED, with file and row, for one that cannot be used. */
sifr_status data_chat_open(const data_chat_options *options, data_chat **out,
                           sifr_error *error) SIFR_MUST_CHECK;
void data_chat_close(data_chat *chat); /* NULL is harmless */

/* Moves a share of the rows, or a number of them from 1 on, chosen by the seed, to a set of their
 * own, in the order of the files: at least one row stays on each side. SIFR_FAILED where there are
 * too few. */
sifr_status data_chat_split(data_chat *chat, double share, uint64_t seed, data_chat **held_out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Joins the rows and cuts them into full sequences, once and after any split; rows that were read
 * for it. SIFR_FAILED where they fill none. */
sifr_status data_chat_join(data_chat *chat, sifr_error *error) SIFR_MUST_CHECK;
bool data_chat_is_joined(const data_chat *chat);

/* Packs the rows, once and after any split; rows that were kept whole count as cut. */
sifr_status data_chat_pack(data_chat *chat, sifr_error *error) SIFR_MUST_CHECK;
/* Puts rows of about the same length into a step of `batch` sequences (chat_groups.h), once, after
 * any split; not of packed ones. */
sifr_status data_chat_group(data_chat *chat, int64_t batch, sifr_error *error) SIFR_MUST_CHECK;
bool data_chat_is_packed(const data_chat *chat);
bool data_chat_is_paired(const data_chat *chat);    /* rows count twice as many as pairs */
int64_t data_chat_sequences(const data_chat *chat); /* of all rows once */

const data_chat_counts *data_chat_count(const data_chat *chat);
int64_t data_chat_windows(const data_chat *chat); /* sequences of an epoch */
uint64_t data_chat_hash(const data_chat *chat);

/* Row 0 ≤ index < rows: its ids and which are learned; *whole is its length before the cut. */
int64_t data_chat_row_at(const data_chat *chat, int64_t index, const int32_t **ids,
                         const bool **learned, int64_t *whole);

/* The number of a row (of a pair: of each of its answers) in its file, of rows that were read to be
 * looked at and not split. *file: NULL where there is one alone. */
int64_t data_chat_place(const data_chat *chat, int64_t index, const char **file);

/* The rows of sequence `index`, in their order, by their numbers in the data before any split. */
int64_t data_chat_members(const data_chat *chat, int64_t index);
int64_t data_chat_member(const data_chat *chat, int64_t index, int64_t member);
int64_t data_chat_rows_before_split(const data_chat *chat);

/* Of pairs, once: a chosen answer is learned with its prompt, and which labels belong to an answer
 * stands in targets, 1 or 0. */
void data_chat_learn_prompts(data_chat *chat);

/* The sequence, a row or a pack, that a run's epoch has at place 0 ≤ place < windows. */
int64_t data_chat_draw(const data_chat *chat, uint64_t seed, int64_t epoch, int64_t place);

/* Sequence `index` as that number `at` of a batch. Safe from several threads. */
void data_chat_read(const data_chat *chat, int64_t index, const data_rows *rows, int64_t at);

#endif
