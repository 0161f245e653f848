/* Training and evaluation data: one stream of tokens, read in windows.
 *
 * The stream is all documents one after the other, in the order of the paths, each followed by the
 * end-of-text id (unless it ends with it already); what was text may begin with a BOS. Window i of
 * length T reads the tokens iT … iT+T: T inputs, and the T labels that are the same tokens one
 * place further on. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "train/progress.h"

typedef struct train_data train_data;

typedef struct train_data_options {
    const char *const *paths; /* token stores (PREFIX), text files, directories, globs */
    size_t count;
    const char *tokenizer; /* folder with the tokenizer.json for text */
    const char *cache;     /* folder for the token store made of text; created where needed */
    int64_t vocab_size;    /* ids at or above it are refused */
    int64_t separator;     /* end-of-text id; -1: none */
    bool special;          /* text gets what the tokenizer's post-processor puts around it */
    int threads;           /* 0: every core */
    const train_progress *progress; /* of tokenising; may be NULL */
    const sifr_log *log;
} train_data_options;

/* SIFR_USAGE where a path names nothing, SIFR_FAILED for what cannot be read or has wrong ids. Text
 * is tokenised into a store in `cache`, or found there from an earlier run (same names, sizes,
 * times and tokenizer). Paths that name neither a store nor text change nothing on disk. */
sifr_status train_data_open(const train_data_options *options, train_data **out,
                            sifr_error *error) SIFR_MUST_CHECK;
void train_data_close(train_data *data); /* NULL is harmless */

int64_t train_data_tokens(const train_data *data); /* separators included */
int64_t train_data_documents(const train_data *data);
uint64_t train_data_hash(const train_data *data); /* of the stream: what is in it, not where */

/* Whole windows of `length` tokens, each with the token behind it. */
int64_t train_data_windows(const train_data *data, int64_t length);

/* Window 0 ≤ index < train_data_windows(): `length` tokens and labels. Safe from several threads.
 */
void train_data_window(const train_data *data, int64_t length, int64_t index, int32_t *tokens,
                       int32_t *labels);

/* Sequence `sample` of a run: window number train_permute(seed, epoch, windows, place), where epoch
 * and place are sample / windows and sample % windows. */
void train_data_sample(const train_data *data, int64_t length, uint64_t seed, int64_t sample,
                       int32_t *tokens, int32_t *labels);

#endif
