/* Training of tokenizers as the trainers of the `tokenizers` library do it: a byte-level BPE with
 * the library's own merges (initial alphabet of all bytes, special tokens first), a WordPiece with
 * its merges but for the order of equals, a Unigram by its method. */
#ifndef TEXT_TOKENIZER_TRAIN_H
#define TEXT_TOKENIZER_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct text_tokenizer_trainer text_tokenizer_trainer;

typedef struct text_tokenizer_options {
    int64_t vocab_size;       /* of BPE: 256 bytes, special tokens and merges; at least 257 */
    int64_t min_frequency;    /* pairs that are rarer are not merged; not for Unigram */
    int64_t model_max_length; /* for tokenizer_config.json; 0: not said */
    const char *type;         /* "bpe" (also NULL), "unigram" or "wordpiece" */
    const char *split;        /* of BPE: "gpt2" (also NULL), "llama3" or "qwen2" (with NFC) */
    bool lowercase;           /* of WordPiece: letters become small and lose their accents */
} text_tokenizer_options;

sifr_status text_tokenizer_trainer_new(const text_tokenizer_options *options,
                                       text_tokenizer_trainer **out,
                                       sifr_error *error) SIFR_MUST_CHECK;
/* Counts the words of one document. Invalid UTF-8 counts as U+FFFD. */
sifr_status text_tokenizer_trainer_feed(text_tokenizer_trainer *trainer, const char *text,
                                        size_t size, sifr_error *error) SIFR_MUST_CHECK;
/* Makes the merges; SIFR_FAILED when nothing was fed. */
sifr_status text_tokenizer_trainer_finish(text_tokenizer_trainer *trainer,
                                          sifr_error *error) SIFR_MUST_CHECK;
/* Tokens made: fewer than asked for where the text has no more pairs. */
int64_t text_tokenizer_trainer_size(const text_tokenizer_trainer *trainer);
uint64_t text_tokenizer_trainer_invalid(const text_tokenizer_trainer *trainer);
/* tokenizer.json and tokenizer_config.json into the directory, which is made if it is not there. */
sifr_status text_tokenizer_trainer_write(const text_tokenizer_trainer *trainer,
                                         const char *directory, sifr_error *error) SIFR_MUST_CHECK;
void text_tokenizer_trainer_free(text_tokenizer_trainer *trainer); /* NULL is fine */

#endif
