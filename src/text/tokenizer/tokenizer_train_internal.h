#ifndef FORMATS_TOKENIZER_TRAIN_INTERNAL_H
#define FORMATS_TOKENIZER_TRAIN_INTERNAL_H

#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_train.h"

#define FORMATS_END_OF_TEXT "<|endoftext|>"

typedef enum formats_train_type {
    FORMATS_TRAIN_BPE,
    FORMATS_TRAIN_UNIGRAM,
    FORMATS_TRAIN_WORDPIECE
} formats_train_type;

typedef struct formats_train_merge {
    int32_t left, right;
} formats_train_merge;

struct formats_tokenizer_trainer {
    formats_tokenizer_options options;
    formats_train_type type;
    /* of UNIGRAM and WORDPIECE, whose texts go through these steps */
    formats_normalizer normalizer;
    formats_normalizer_state normalizer_state;
    formats_pretokenizer pretokenizer;
    formats_pretokenizer_state pretokenizer_state;
    formats_split_kind split;
    formats_unicode unicode;
    formats_table words; /* distinct pieces, raw bytes */
    int64_t *counts;
    size_t count_room;
    formats_tokenizer_text repaired, normal;
    uint64_t invalid;
    formats_table tokens; /* by id, raw bytes */
    double *scores;       /* of UNIGRAM, by id */
    formats_train_merge *merges;
    size_t merge_count, merge_room;
};

/* tokenizer_merges.c */
sifr_status formats_train_merges(formats_tokenizer_trainer *trainer,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* tokenizer_train_kinds.c: what is around the models of UNIGRAM and WORDPIECE */
sifr_status formats_train_steps(formats_tokenizer_trainer *trainer,
                                sifr_error *error) SIFR_MUST_CHECK;
/* Special tokens and, for WORDPIECE, the characters; then the model is trained. */
sifr_status formats_train_kind(formats_tokenizer_trainer *trainer,
                               sifr_error *error) SIFR_MUST_CHECK;
json_t *formats_train_describe(const formats_tokenizer_trainer *trainer);
json_t *formats_train_describe_config(const formats_tokenizer_trainer *trainer);

/* tokenizer_train_unigram.c: tokens behind those that are there, and all scores */
sifr_status formats_train_unigram(formats_tokenizer_trainer *trainer,
                                  sifr_error *error) SIFR_MUST_CHECK;

typedef struct formats_seed {
    const uint8_t *bytes; /* in the table of words */
    uint32_t size;
    double score;
} formats_seed;

/* tokenizer_train_seeds.c: the characters of all words, most frequent first, then the substrings
 * that occur at least twice in the words and cannot be made longer without losing an occurrence, of
 * at most 16 characters, by occurrences times length; `limit` of them at most. *characters is how
 * many of *seeds are characters. */
sifr_status formats_train_seeds(const formats_tokenizer_trainer *trainer, size_t limit,
                                formats_seed **seeds, size_t *count, size_t *characters,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
