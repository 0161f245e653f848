#ifndef TEXT_TOKENIZER_TRAIN_INTERNAL_H
#define TEXT_TOKENIZER_TRAIN_INTERNAL_H

#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_train.h"

#define TEXT_END_OF_TEXT "<|endoftext|>"

typedef enum text_train_type {
    TEXT_TRAIN_BPE,
    TEXT_TRAIN_UNIGRAM,
    TEXT_TRAIN_WORDPIECE
} text_train_type;

typedef struct text_train_merge {
    int32_t left, right;
} text_train_merge;

struct text_tokenizer_trainer {
    text_tokenizer_options options;
    text_train_type type;
    /* of UNIGRAM and WORDPIECE, whose texts go through these steps */
    text_normalizer normalizer;
    text_normalizer_state normalizer_state;
    text_pretokenizer pretokenizer;
    text_pretokenizer_state pretokenizer_state;
    text_split_kind split;
    text_unicode unicode;
    text_table words; /* distinct pieces, raw bytes */
    int64_t *counts;
    size_t count_capacity;
    text_tokenizer_text repaired, normal;
    uint64_t invalid;
    text_table tokens; /* by id, raw bytes */
    double *scores;    /* of UNIGRAM, by id */
    text_train_merge *merges;
    size_t merge_count, merge_capacity;
};

/* tokenizer_merges.c */
sifr_status text_train_merges(text_tokenizer_trainer *trainer, sifr_error *error) SIFR_MUST_CHECK;

/* tokenizer_train_kinds.c: what is around the models of UNIGRAM and WORDPIECE */
sifr_status text_train_steps(text_tokenizer_trainer *trainer, sifr_error *error) SIFR_MUST_CHECK;
/* Special tokens and, for WORDPIECE, the characters; then the model is trained. */
sifr_status text_train_kind(text_tokenizer_trainer *trainer, sifr_error *error) SIFR_MUST_CHECK;
json_t *text_train_describe(const text_tokenizer_trainer *trainer);
json_t *text_train_describe_config(const text_tokenizer_trainer *trainer);

/* tokenizer_train_unigram.c: tokens behind those that are there, and all scores */
sifr_status text_train_unigram(text_tokenizer_trainer *trainer, sifr_error *error) SIFR_MUST_CHECK;

typedef struct text_seed {
    const uint8_t *bytes; /* in the table of words */
    uint32_t size;
    double score;
} text_seed;

/* tokenizer_train_seeds.c: the characters of all words, most frequent first, then the substrings
 * that occur at least twice in the words and cannot be made longer without losing an occurrence, of
 * at most 16 characters, by occurrences times length; `limit` of them at most. *characters is how
 * many of *seeds are characters. */
sifr_status text_train_seeds(const text_tokenizer_trainer *trainer, size_t limit, text_seed **seeds,
                             size_t *count, size_t *characters, sifr_error *error) SIFR_MUST_CHECK;

#endif
