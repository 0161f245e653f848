/* Training and evaluation data: one stream of tokens, read in windows, or labelled examples
 * (labelled/examples.h) or rows to fine-tune on (chat/chat_rows.h), each of which counts as a
 * window.
 *
 * The stream is the documents in the order of the paths, each followed by the end-of-text id unless
 * it already ends with one; documents made from text may begin with a BOS. Window i of length T
 * reads the tokens iT … iT+T: T inputs, and the T labels that follow them. Of a masked model the
 * window is T tokens, and the labels are those that masking.h hides.
 */
#ifndef DATA_H
#define DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/progress.h"
#include "data/chat/chat_rows.h"
#include "data/labelled/examples.h"
#include "data/rows.h"
#include "data/token_scores.h"

typedef struct data_set data_set;

typedef struct data_set_options {
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
    const data_labelled *labelled; /* the paths are rows of examples; NULL: they are text */
    const data_chat_options *chat; /* the sources of rows to fine-tune on, and how they are read;
                                       NULL: there are none */
    double mask_probability;       /* above 0: windows are masked; the stream has no separators */
} data_set_options;

/* SIFR_USAGE if a path names nothing; SIFR_FAILED for data that cannot be read or has wrong ids.
 * Text is tokenised into a store in `cache`, unless one from an earlier run is there (same names,
 * sizes, times and tokenizer). If a path names neither a store nor text, nothing on disk changes.
 */
sifr_status data_set_open(const data_set_options *options, data_set **out,
                          sifr_error *error) SIFR_MUST_CHECK;
void data_set_close(data_set *data); /* NULL is harmless */

/* Rows to fine-tune on, or NULL. */
const data_chat *data_set_chat(const data_set *data);

/* Moves a share of the rows to fine-tune on to data of their own. SIFR_USAGE for other data. */
sifr_status data_set_split(data_set *data, double share, uint64_t seed, data_set **held_out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Joins rows of text that were read for it into full windows. After the split. */
sifr_status data_set_join(data_set *data, sifr_error *error) SIFR_MUST_CHECK;

/* Puts several rows to fine-tune on into each window. SIFR_USAGE for other data. After the split.
 */
sifr_status data_set_pack(data_set *data, sifr_error *error) SIFR_MUST_CHECK;

/* Puts rows to fine-tune on of about the same length into a step of `batch` sequences. The same. */
sifr_status data_set_group(data_set *data, int64_t batch, sifr_error *error) SIFR_MUST_CHECK;

/* The sequences that a file of scores is about, in its order: rows to fine-tune on, each once, or
 * windows of text. Not for labelled examples. */
int64_t data_set_scored(const data_set *data, int64_t length);
void data_set_scored_read(const data_set *data, int64_t index, const data_rows *rows, int64_t at);

/* What the targets of labels are, in rows that are made after data_set_use_scores. */
typedef enum data_set_use {
    DATA_USE_NONE,
    DATA_USE_LOGPROBS, /* their log-probabilities in a file of scores */
    DATA_USE_OWN,      /* likewise, in a file that was made after the data were split */
    DATA_USE_TOPS,     /* the top words in the file, then their log-probabilities */
    DATA_USE_ANSWERS   /* of pairs, without a file: data_chat_learn_prompts */
} data_set_use;

/* Opens the file of scores (NULL for answers), after any split and packing. SIFR_FAILED if its
 * labels are not those of the data. `words`: number of the model's words. */
sifr_status data_set_use_scores(data_set *data, data_set_use use, const char *path, int64_t words,
                                int64_t length, sifr_error *error) SIFR_MUST_CHECK;

/* Counts the labels of all sequences for a new file of scores, and lists them. */
sifr_status data_set_begin_scores(const data_set *data, int64_t length, const char *path,
                                  int64_t top, double temperature, data_score_writer *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

int64_t data_set_tokens(const data_set *data);    /* separators included, padding not */
int64_t data_set_documents(const data_set *data); /* or examples */
int64_t data_set_longest(const data_set *data);   /* tokens of an example; 0: there are none */
uint64_t data_set_hash(const data_set *data);     /* of the contents, not their location */

/* How examples were read; NULL: the data are a stream. */
const data_labelled *data_set_labelled(const data_set *data);

/* Targets of a token; 0: none. */
int64_t data_set_columns(const data_set *data);

/* Memory for `count` sequences of them. */
sifr_status data_set_rows(const data_set *data, int64_t count, int64_t length, data_rows *out,
                          sifr_error *error) SIFR_MUST_CHECK;

/* The number of examples, of rows (or sequences of packed rows) in an epoch, or of whole windows of
 * `length` tokens (and the token after them, where that is the last label). */
int64_t data_set_windows(const data_set *data, int64_t length);

/* Window 0 ≤ index < data_set_windows() as sequence `at` of the rows, whose length is that of the
 * windows. Safe from several threads. Masked windows are the same each time. */
void data_set_window(const data_set *data, int64_t index, const data_rows *rows, int64_t at);

/* Sequence `sample` of a run, which a masked window's mask depends on: window number
 * data_permute(seed, epoch, windows, place), where epoch and place are sample / windows and sample
 * % windows. */
void data_set_sample(const data_set *data, uint64_t seed, int64_t sample, const data_rows *rows,
                     int64_t at);

#endif
