/* Training and evaluation data: one stream of tokens, read in windows, or labelled examples
 * (labelled/examples.h) or rows to fine-tune on (chat/chat_rows.h), each of which counts as a
 * window.
 *
 * The stream is the documents in the order of the paths, each followed by the end-of-text id unless
 * it already ends with one; documents made from text may begin with a BOS. Window i of length T
 * reads the tokens iT … iT+T: T inputs, and the T labels that follow them. Of a masked model the
 * window is T tokens, and the labels are those that masking.h hides.
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/progress.h"
#include "data/chat/chat_rows.h"
#include "data/labelled/examples.h"
#include "data/rows.h"
#include "data/token_scores.h"

typedef struct train_data train_data;

typedef struct train_data_options {
    const char *const *paths; /* token stores (PREFIX), text files, directories, globs */
    size_t count;
    const char *tokenizer;         /* folder with the tokenizer.json for text */
    const char *cache;             /* folder for token stores made from text; created if needed */
    int64_t vocab_size;            /* ids at or above this are refused */
    int64_t separator;             /* end-of-text id; -1: none */
    bool special;                  /* add the post-processor's special tokens to text */
    int threads;                   /* 0: every core */
    const base_progress *progress; /* progress of tokenising; may be NULL */
    const sifr_log *log;
    const train_labelled *labelled; /* the paths are rows of examples; NULL: they are text */
    const train_chat_options *chat; /* the sources of rows to fine-tune on, and how they are read;
                                       NULL: there are none */
    double mask_probability;        /* above 0: windows are masked; the stream has no separators */
} train_data_options;

/* SIFR_USAGE if a path names nothing; SIFR_FAILED for data that cannot be read or has wrong ids.
 * Text is tokenised into a store in `cache`, unless one from an earlier run is there (same names,
 * sizes, times and tokenizer). If a path names neither a store nor text, nothing on disk changes.
 */
sifr_status train_data_open(const train_data_options *options, train_data **out,
                            sifr_error *error) SIFR_MUST_CHECK;
void train_data_close(train_data *data); /* NULL is harmless */

/* Rows to fine-tune on, or NULL. */
const train_chat *train_data_chat(const train_data *data);

/* Moves a share of the rows to fine-tune on to data of their own. SIFR_USAGE for other data. */
sifr_status train_data_split(train_data *data, double share, uint64_t seed, train_data **held_out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Joins rows of text that were read for it into full windows. After the split. */
sifr_status train_data_join(train_data *data, sifr_error *error) SIFR_MUST_CHECK;

/* Puts several rows to fine-tune on into each window. SIFR_USAGE for other data. After the split.
 */
sifr_status train_data_pack(train_data *data, sifr_error *error) SIFR_MUST_CHECK;

/* Puts rows to fine-tune on of about the same length into a step of `batch` sequences. The same. */
sifr_status train_data_group(train_data *data, int64_t batch, sifr_error *error) SIFR_MUST_CHECK;

/* The sequences that a file of scores is about, in its order: rows to fine-tune on, each once, or
 * windows of text. Not for labelled examples. */
int64_t train_data_scored(const train_data *data, int64_t length);
void train_data_scored_read(const train_data *data, int64_t index, const train_rows *rows,
                            int64_t at);

/* What the targets of labels are, in rows that are made after train_data_use_scores. */
typedef enum train_data_use {
    TRAIN_USE_NONE,
    TRAIN_USE_LOGPROBS, /* their log-probabilities in a file of scores */
    TRAIN_USE_OWN,      /* likewise, in a file that was made after the data were split */
    TRAIN_USE_TOPS,     /* the top words in the file, then their log-probabilities */
    TRAIN_USE_ANSWERS   /* of pairs, without a file: train_chat_learn_prompts */
} train_data_use;

/* Opens the file of scores (NULL for answers), after any split and packing. SIFR_FAILED if its
 * labels are not those of the data. `words`: number of the model's words. */
sifr_status train_data_use_scores(train_data *data, train_data_use use, const char *path,
                                  int64_t words, int64_t length, sifr_error *error) SIFR_MUST_CHECK;

/* Counts the labels of all sequences for a new file of scores, and lists them. */
sifr_status train_data_begin_scores(const train_data *data, int64_t length, const char *path,
                                    int64_t top, double temperature, train_token_writer *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

int64_t train_data_tokens(const train_data *data);    /* separators included, padding not */
int64_t train_data_documents(const train_data *data); /* or examples */
uint64_t train_data_hash(const train_data *data);     /* of the contents, not their location */

/* How examples were read; NULL: the data are a stream. */
const train_labelled *train_data_labelled(const train_data *data);

/* Memory for `count` sequences of them. */
sifr_status train_data_rows(const train_data *data, int64_t count, int64_t length, train_rows *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* The number of examples, of rows (or sequences of packed rows) in an epoch, or of whole windows of
 * `length` tokens (and the token after them, where that is the last label). */
int64_t train_data_windows(const train_data *data, int64_t length);

/* Window 0 ≤ index < train_data_windows() as sequence `at` of the rows, whose length is that of the
 * windows. Safe from several threads. Masked windows are the same each time. */
void train_data_window(const train_data *data, int64_t index, const train_rows *rows, int64_t at);

/* Sequence `sample` of a run, which a masked window's mask depends on: window number
 * train_permute(seed, epoch, windows, place), where epoch and place are sample / windows and sample
 * % windows. */
void train_data_sample(const train_data *data, uint64_t seed, int64_t sample,
                       const train_rows *rows, int64_t at);

#endif
