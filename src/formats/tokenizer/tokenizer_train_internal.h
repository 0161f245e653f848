#ifndef FORMATS_TOKENIZER_TRAIN_INTERNAL_H
#define FORMATS_TOKENIZER_TRAIN_INTERNAL_H

#include "formats/tokenizer/tokenizer_internal.h"
#include "formats/tokenizer/tokenizer_train.h"

#define FORMATS_END_OF_TEXT "<|endoftext|>"

typedef struct formats_train_merge {
    int32_t left, right;
} formats_train_merge;

struct formats_tokenizer_trainer {
    formats_tokenizer_options options;
    formats_split_kind split;
    formats_unicode unicode;
    formats_table words; /* distinct pieces, raw bytes */
    int64_t *counts;
    size_t count_room;
    formats_tokenizer_text repaired, normal;
    uint64_t invalid;
    formats_table tokens; /* by id, raw bytes */
    formats_train_merge *merges;
    size_t merge_count, merge_room;
};

/* tokenizer_merges.c */
sifr_status formats_train_merges(formats_tokenizer_trainer *trainer,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
