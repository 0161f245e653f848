/* A file of `sifr score`: log-probabilities that a model gives the labels of rows of data, and
 * perhaps the likeliest words at each. A safetensors file:
 *
 *   offsets       I64 [rows + 1]  row r has the entries offsets[r] … offsets[r + 1] - 1
 *   ids           I32 [n]         the labels, in the order of the tokens
 *   logprobs      F32 [n]         their log-probabilities
 *   top_ids       I32 [n, k]      the k likeliest words, the likeliest first (absent: none)
 *   top_logprobs  F32 [n, k]      their log-probabilities, of logits divided by temperature
 *   temperature   F32 [1]
 *
 * Rows are the rows of the data in the order in which they are read, but for those that are left
 * out. With preferences each answer is a row, the chosen one of a pair before the rejected one.
 * With text each window is a row. */
#ifndef DATA_TOKEN_SCORES_H
#define DATA_TOKEN_SCORES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/safetensors/safetensors.h"

/* An open file; the arrays are mapped. */
typedef struct data_token_scores {
    formats_safetensors file;
    char path[BASE_PATH_LENGTH];
    const int64_t *offsets;
    const int32_t *ids, *top_ids; /* top_ids and top_logprobs NULL where `top` is 0 */
    const float *logprobs, *top_logprobs;
    int64_t rows, entries, top;
    double temperature;
} data_token_scores;

/* SIFR_FAILED for a file of another kind, or one whose numbers cannot be scores: offsets that fall,
 * a log-probability that is above 0 or not finite, a word that comes twice or is not below `words`
 * (0: not known). */
sifr_status data_token_scores_open(const char *path, int64_t words, data_token_scores *out,
                                   sifr_error *error) SIFR_MUST_CHECK;
/* Only what a model needs to be described: entries are not looked at. */
sifr_status data_token_scores_peek(const char *path, int64_t *top, double *temperature,
                                   sifr_error *error) SIFR_MUST_CHECK;
void data_token_scores_close(data_token_scores *scores); /* harmless on a zeroed one */

/* --- writing --- */

/* Entries are given in order. Top words wait in files without a name, in the folder of the path. */
typedef struct data_score_writer {
    char path[BASE_PATH_LENGTH];
    int64_t rows, entries, top;
    double temperature;
    int64_t *offsets; /* owned: rows + 1 */
    int32_t *ids;     /* owned: entries */
    float *logprobs;
    int64_t put;               /* entries that were given */
    FILE *top_ids, *top_probs; /* NULL without top words */
} data_score_writer;

/* Takes memory for `rows` and `entries`, whose offsets and ids the caller fills in. */
sifr_status data_score_writer_open(const char *path, int64_t rows, int64_t entries, int64_t top,
                                   double temperature, data_score_writer *out,
                                   sifr_error *error) SIFR_MUST_CHECK;
/* The next entry; `top` words each where the writer has them. */
sifr_status data_score_writer_put(data_score_writer *writer, float logprob, const int32_t *top_ids,
                                  const float *top_logprobs, sifr_error *error) SIFR_MUST_CHECK;
/* Writes the file, which appears whole. */
sifr_status data_score_writer_commit(data_score_writer *writer, sifr_error *error) SIFR_MUST_CHECK;
void data_score_writer_free(data_score_writer *writer); /* harmless on a zeroed one */

/* --- top words --- */

/* The `top` likeliest of `words` logits divided by `temperature`, the likeliest first and of equals
 * the lower id, and their log-probabilities. */
void data_top_words(const float *logits, int64_t words, double temperature, int64_t top,
                    int32_t *ids, float *logprobs);

#endif
