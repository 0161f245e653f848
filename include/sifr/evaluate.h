/* The loss of a model over data, and what a classifier's predictions are worth.
 *
 *     sifr_evaluate_options options = {.size = sizeof options, .model = "model", .paths = &path,
 *                                      .path_count = 1, .seq_length = 1024};
 *     sifr_evaluated result = {.size = sizeof result};
 *     sifr_evaluate(context, &options, &result, &error);
 *
 * Callbacks are called on the caller's thread. Messages name an option by the program's flag.
 */
#ifndef SIFR_EVALUATE_H
#define SIFR_EVALUATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/config.h"
#include "sifr/context.h"
#include "sifr/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_evaluate_options {
    size_t size;              /* sizeof(sifr_evaluate_options) */
    const char *model;        /* a model folder, a checkpoint, or the output folder of a run */
    const char *adapter;      /* folder of an adapter; NULL: none */
    const char *precision;    /* "fp32", "bf16" or "fp16"; NULL: that of the stored weights */
    const char *device;       /* "auto", "cpu" or "cuda"; NULL: "auto" */
    int64_t threads;          /* 0: one for each core */
    const char *const *paths; /* [path_count] text, token stores, or rows */
    size_t path_count;
    int64_t seq_length;        /* tokens of a window; at least 1 */
    int64_t max_windows;       /* the first ones; 0: all */
    int64_t batch_size;        /* windows at a time; 0: as many as make 4096 tokens */
    bool no_special_tokens;    /* leaves out what the post-processor puts around a text */
    const sifr_config *config; /* how rows to fine-tune on are read; NULL: by the defaults */
    /* Of a classifier's rows; NULL: found by their names. */
    const char *text_column, *pair_column, *label_column;
    bool report; /* result->report is wanted */
    void *user;
    /* Called behind each batch with the mean loss until then; may be NULL. */
    void (*progress)(void *user, int64_t windows, int64_t total, double loss);
} sifr_evaluate_options;

enum { SIFR_MOST_SCORES = 8 };

typedef struct sifr_evaluated {
    size_t size;           /* sizeof(sifr_evaluated), set by the caller */
    double loss;           /* mean over the tokens that have a label */
    int64_t tokens;        /* those */
    int64_t windows;       /* or examples */
    bool has_perplexity;   /* e^loss means something: not of a classifier */
    double seconds;        /* of the pass */
    const char *precision; /* static */
    const char *device;    /* static */
    char ran_in[64];       /* the precision; on a GPU also its code: "bf16, sm_90" */
    sifr_train_score scores[SIFR_MOST_SCORES]; /* of a classifier's predictions: score_count */
    int score_count;
    char *report; /* with options.report: JSON, what did the work. The caller's: sifr_text_free */
} sifr_evaluated;

/* Over consecutive windows: window i reads the tokens i N to i N + N, and predicts each from those
 * before it; or over rows. SIFR_USAGE for an option out of range; SIFR_FAILED for data that cannot
 * be read, or are too few, and for a loss that is not finite. */
SIFR_API sifr_status sifr_evaluate(sifr_context *context, const sifr_evaluate_options *options,
                                   sifr_evaluated *out, sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
