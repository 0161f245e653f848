/* Private to chat_rows*.c. */
#ifndef DATA_CHAT_ROWS_INTERNAL_H
#define DATA_CHAT_ROWS_INTERNAL_H

#include "data/chat/chat_encode.h"
#include "data/chat/chat_fields.h"
#include "data/chat/chat_groups.h"
#include "data/chat/chat_packs.h"
#include "data/chat/chat_rows.h"

/* The rows of a source, or its packs, which stand one behind the other. Of pairs each is one here:
 * pair i has rows 2 i and 2 i + 1. */
typedef struct chat_part {
    int64_t first, count;
    double weight;
    int64_t draws; /* of them in an epoch */
} chat_part;

/* Where a row stands: the number of its file, and its own in that. */
typedef struct chat_place {
    size_t file;
    int64_t row;
} chat_place;

struct data_chat {
    int32_t *ids;
    bool *learned;
    int64_t *starts;  /* of each row, and the end */
    int64_t *lengths; /* of each row before the cut */
    int64_t *numbers; /* of each row before the split */
    size_t ids_capacity, learned_capacity, starts_capacity, lengths_capacity, numbers_capacity;
    chat_place *places; /* of each row; NULL: they are not kept */
    char **files;       /* file_count names */
    size_t places_capacity, files_capacity, file_count;
    int64_t unsplit; /* rows before the split */
    bool prompts;    /* data_chat_learn_prompts */
    bool joined;     /* data_chat_join */
    int32_t begin;   /* begins each sequence of joined texts; -1: none */
    chat_part *parts;
    size_t part_count;
    data_chat_packs packs;          /* of all parts; no starts: rows are not packed */
    int64_t padding, length, draws; /* draws: of an epoch */
    bool paired;                    /* rows are pairs: the chosen answer, then the rejected one */
    data_chat_groups *groups;       /* of the order of an epoch; NULL: it is drawn alone */
    data_chat_counts counts;
};

/* chat_rows.c */
sifr_status data_chat_new(int64_t length, int64_t padding, size_t parts, data_chat **out,
                          sifr_error *error) SIFR_MUST_CHECK;
/* Appends a row of ids that are kept. */
sifr_status data_chat_append(data_chat *chat, const int32_t *ids, const bool *learned,
                             int64_t count, int64_t whole, sifr_error *error) SIFR_MUST_CHECK;
/* For looking at the rows: notes a file, and where in it the last row stands. */
sifr_status data_chat_note_file(data_chat *chat, const char *file,
                                sifr_error *error) SIFR_MUST_CHECK;
sifr_status data_chat_note_place(data_chat *chat, int64_t row, sifr_error *error) SIFR_MUST_CHECK;
/* Works out the draws of an epoch. */
void data_chat_settle(data_chat *chat);

#endif
