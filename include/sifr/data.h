/* The data of a run, for loops of one's own: what the config's data, dataset or eval_data name,
 * read as `sifr train` reads them.
 *
 *     sifr_data_open(context, config, NULL, &data, &error);
 *     sifr_data_step(data, engine, step, &batch, &error);
 *     sifr_engine_step(engine, &batch, rate, &result, &error);
 *
 * Data are of one process, each of several ranks opens its own, and belong to one thread at a time.
 * The context must outlive them; the config is read only.
 */
#ifndef SIFR_DATA_H
#define SIFR_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/config.h"
#include "sifr/context.h"
#include "sifr/engine.h"
#include "sifr/loop.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_data sifr_data;

/* How far tokenising is; on the thread that called. */
typedef void sifr_data_progress(void *user, uint64_t bytes, uint64_t total, double seconds);

typedef struct sifr_data_options {
    size_t size;     /* sizeof(sifr_data_options) */
    int64_t ranks;   /* of the run: the config's batch is divided among them; 0: 1 */
    bool evaluation; /* eval_data, or what validation_split holds out, in place of the data */
    /* Folder for token stores that are made from text, to be found there the next time: such as
     * "data" in the output of a run. Two processes may not make stores in it at a time. NULL: they
     * are made anew, and are gone with the data. */
    const char *cache;
    sifr_data_progress *progress; /* may be NULL */
    void *user;
    /* Needed where targets come from a model (sifr.preference, sifr.distill): the loop of the same
     * config, whose ranks then make this call together. A reference that no file has is computed
     * from the loop's weights before its first step, and kept in the config's output; so load a
     * checkpoint before. It must outlive the data. NULL: there are no such targets. */
    sifr_loop *loop;
} sifr_data_options;

/* The config names a model folder, for the tokenizer and what the model reads. SIFR_USAGE where
 * there is nothing to read; SIFR_FAILED, with file and row, for data that cannot be used. */
SIFR_API sifr_status sifr_data_open(sifr_context *context, const sifr_config *config,
                                    const sifr_data_options *options, sifr_data **out,
                                    sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_data_close(sifr_data *data); /* NULL is harmless */

typedef struct sifr_data_figures {
    size_t size;         /* sizeof(sifr_data_figures), set by the caller */
    int64_t windows;     /* sequences of an epoch: windows of text, rows, packs, examples */
    int64_t tokens;      /* in all, without padding */
    int64_t documents;   /* or rows, or examples */
    int64_t seq_length;  /* tokens of a sequence */
    int64_t vocab_size;  /* ids are below it */
    int64_t batch_size;  /* sequences of a step of all ranks */
    int64_t total_steps; /* of the run: max_steps, or by epochs; 0: of eval data */
    uint64_t hash;       /* of the contents as they are stored */
    int64_t targets;     /* numbers that a batch has for each token beside its label */
    int64_t longest;     /* tokens of the longest labelled example; 0: the data are others */
} sifr_data_figures;
SIFR_API void sifr_data_get(const sifr_data *data, sifr_data_figures *out);

/* Sequences by their numbers, from 0 to below `windows`, one behind the other: tokens, labels and
 * what else the model reads. What *out points to belongs to the data, and is good until the next
 * call that reads. */
SIFR_API sifr_status sifr_data_read(sifr_data *data, const int64_t *windows, int64_t count,
                                    sifr_batch *out, sifr_error *error) SIFR_MUST_CHECK;

/* The batch of this engine's rank in step `step`, from 0, of the run: shuffled by the config's
 * seed, epoch by epoch, and divided among the ranks as the engine adds gradients. The engine's
 * micro batch and length are the config's. *out as above. Not of eval data. */
SIFR_API sifr_status sifr_data_step(sifr_data *data, const sifr_engine *engine, int64_t step,
                                    sifr_batch *out, sifr_error *error) SIFR_MUST_CHECK;

/* The order in which a run takes sequences: which of `count` is at `place` of epoch `epoch`, from
 * 0, by the config's seed. Sequences of rows are so taken where all sources have weight 1 and rows
 * are not grouped by length. -1: there is no such place. */
SIFR_API int64_t sifr_data_order(uint64_t seed, int64_t epoch, int64_t count, int64_t place);

typedef struct sifr_data_score {
    const char *name; /* "accuracy"; static */
    double value;     /* NaN: not defined */
} sifr_data_score;

enum { SIFR_DATA_SCORES = 8 };

typedef struct sifr_data_evaluation {
    size_t size;             /* sizeof(sifr_data_evaluation), set by the caller */
    int64_t windows, tokens; /* tokens that have a label; of pairs of answers the pairs */
    double loss;             /* mean over them */
    double seconds;
    int stopped; /* what `stop` returned on some rank; 0: all was evaluated */
    int score_count;
    sifr_data_score scores[SIFR_DATA_SCORES]; /* of labels, or rewards */
} sifr_data_evaluation;

/* Loss and scores of the engine over the first `windows` sequences (0: all), as the run evaluates:
 * the same on any number of ranks. Of all ranks of the engine, each with its own data. `stop` is
 * asked between micro batches, and ends it with a number that is not 0; may be NULL. */
SIFR_API sifr_status sifr_data_evaluate(const sifr_data *data, sifr_engine *engine, int64_t windows,
                                        int (*stop)(void *user), void *user,
                                        sifr_data_evaluation *out,
                                        sifr_error *error) SIFR_MUST_CHECK;

/* --- what data and a model are, before a config is complete: `sifr quickstart` --- */

typedef enum sifr_data_kind {
    SIFR_DATA_STREAM, /* text or token stores: the next token, or masked ones */
    SIFR_DATA_ROWS,   /* rows to fine-tune on */
    SIFR_DATA_PAIRS,  /* rows with a chosen and a rejected answer */
    SIFR_DATA_LABELS, /* texts with a label each */
    SIFR_DATA_TAGS    /* words with a tag each */
} sifr_data_kind;

typedef struct sifr_data_guess {
    size_t size; /* sizeof(sifr_data_guess), set by the caller */
    sifr_data_kind kind;
    const char *form;     /* of rows and pairs: its name in docs/rows.md; NULL: none; static */
    bool stores;          /* all of it is token stores */
    int64_t bytes;        /* of the files */
    int64_t model_length; /* the longest sequence that the model was made for */
    bool decoder;         /* the model predicts the next token */
    bool classifier;      /* its folder has a head for labels already */
} sifr_data_guess;

/* By the names of the config's data and the first row, and the model's config.json; the config's
 * own task counts. Without data it is of the model alone. Rows of no known form are SIFR_DATA_ROWS,
 * and refused by sifr_chat_rows_open. */
SIFR_API sifr_status sifr_data_look(sifr_context *context, const sifr_config *config,
                                    sifr_data_guess *out, sifr_error *error) SIFR_MUST_CHECK;

/* --- rows to fine-tune on, to be looked at: `sifr data inspect` --- */

typedef struct sifr_chat_rows sifr_chat_rows;

/* All rows of the config's data, whole: nothing is cut or left out for its length. Of the model
 * folder it reads config.json, tokenizer and chat template. As sifr_data_open else. */
SIFR_API sifr_status sifr_chat_rows_open(sifr_context *context, const sifr_config *config,
                                         sifr_chat_rows **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_chat_rows_close(sifr_chat_rows *rows); /* NULL is harmless */

/* A row of pairs is an answer with its prompt: the chosen one, then the rejected one. */
typedef struct sifr_chat_rows_figures {
    size_t size;                   /* sizeof(sifr_chat_rows_figures), set by the caller */
    const char *model;             /* the folder of the tokenizer; the rows' */
    bool paired;                   /* rows are answers of pairs */
    int64_t rows, tokens, learned; /* learned: tokens that have a label */
    int64_t longest;               /* tokens of a row */
    int64_t without_learned, bad;  /* rows that are left out: nothing is learned of them;
                                      they cannot be used (skip_bad_rows) */
    int64_t seq_length;            /* of the run; what it would do: */
    int64_t cut_rows, cut_tokens;  /* rows that are longer, and what is cut off */
    int64_t lost_rows;             /* of which nothing is left to learn then */
    int64_t packed_sequences;      /* with packing; of pairs a row each */
} sifr_chat_rows_figures;
SIFR_API void sifr_chat_rows_get(const sifr_chat_rows *rows, sifr_chat_rows_figures *out);

typedef struct sifr_chat_row {
    size_t size;         /* sizeof(sifr_chat_row), set by the caller */
    const int32_t *ids;  /* count; the rows' */
    const bool *learned; /* count: whether the token is a label of the one before it */
    int64_t count;
    int64_t number;   /* in its file, from 1 */
    const char *file; /* NULL: there is one alone */
} sifr_chat_row;
/* The row number `index`, from 0; false behind the last one. */
SIFR_API bool sifr_chat_rows_at(const sifr_chat_rows *rows, int64_t index, sifr_chat_row *out);

#ifdef __cplusplus
}
#endif
#endif
