/* Log-probabilities that a model gives the learned tokens of data, in a file: the reference of
 * preferences, or what another model is distilled from (docs/distillation.md).
 *
 *     sifr_config_create(&config, &error);
 *     sifr_config_set(config, "data", "chats.jsonl", &error);
 *     sifr_score_options options = {.size = sizeof options, .model = "teacher", .config = config,
 *                                   .output = "scores.safetensors", .top_k = 64};
 *     sifr_score(context, &options, NULL, &error);
 *
 * Callbacks are called on the caller's thread. Messages name an option by the program's flag.
 */
#ifndef SIFR_SCORE_H
#define SIFR_SCORE_H

#include <stddef.h>
#include <stdint.h>

#include "sifr/config.h"
#include "sifr/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A learned token. */
typedef struct sifr_token_score {
    size_t size; /* the library's sizeof(sifr_token_score) */
    int64_t row; /* of the data, from 0 */
    float logprob;
    int64_t top_count; /* options.top_k */
    /* [top_count] the likeliest words, the likeliest first, with their log-probabilities. */
    const int32_t *top_ids;
    const float *top_logprobs;
} sifr_token_score;

typedef struct sifr_score_options {
    size_t size;           /* sizeof(sifr_score_options) */
    const char *model;     /* a model folder, a checkpoint, or the output folder of a run */
    const char *adapter;   /* folder of an adapter; NULL: none */
    const char *precision; /* "fp32", "bf16" or "fp16"; NULL: that of the stored weights */
    const char *device;    /* "auto", "cpu" or "cuda"; NULL: the config's */
    int64_t threads;       /* 0: one for each core */
    /* The data, how they are read, and seq_length, as those of the run that reads the file. It is
     * left as it is. */
    const sifr_config *config;
    const char *output; /* the file, which appears whole; one that is there is replaced, which
                           the log says */
    int64_t top_k;      /* so many likeliest words of each token as well */
    const double *temperature; /* divides their logits; NULL: 1 */
    int64_t batch_size;        /* rows at a time; 0: about 4096 tokens */
    void *user;
    /* Gets each token, in the order of the data; may be NULL. A status that is not SIFR_OK ends the
     * work, which returns it with the message that was written into `error`, which is never NULL;
     * then there is no file. */
    sifr_status (*token)(void *user, const sifr_token_score *score, sifr_error *error);
    /* Called behind each batch; may be NULL. */
    void (*progress)(void *user, int64_t rows, int64_t total);
} sifr_score_options;

typedef struct sifr_scored {
    size_t size; /* sizeof(sifr_scored), set by the caller */
    int64_t rows, tokens;
    char ran_in[64]; /* the precision; on a GPU also its code: "bf16, sm_90" */
} sifr_scored;

/* `out` may be NULL. SIFR_USAGE for an option out of range, and for a model that does not predict
 * the next token; SIFR_FAILED for data that cannot be read, or are too few. */
SIFR_API sifr_status sifr_score(sifr_context *context, const sifr_score_options *options,
                                sifr_scored *out, sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
