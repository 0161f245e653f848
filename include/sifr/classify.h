/* What a classifier makes of texts, of pairs of texts, or of the words of texts.
 *
 *     sifr_classifier_options options = {.size = sizeof options, .model = "mail"};
 *     sifr_classifier_open(context, &options, &classifier, &error);
 *     sifr_classifier_add(classifier, text, strlen(text), NULL, 0, &error);
 *     sifr_classifier_run(classifier, take, NULL, &error);
 *
 * A classifier is used by one thread at a time; callbacks are called on that thread, and must not
 * call the classifier. Messages name an option by the program's flag.
 */
#ifndef SIFR_CLASSIFY_H
#define SIFR_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_classifier sifr_classifier;

typedef struct sifr_classifier_options {
    size_t size;           /* sizeof(sifr_classifier_options) */
    const char *model;     /* a model folder, a checkpoint, or the output folder of a run */
    const char *adapter;   /* folder of an adapter; NULL: none */
    const char *precision; /* "fp32", "bf16" or "fp16"; NULL: that of the stored weights */
    const char *device;    /* "auto", "cpu" or "cuda"; NULL: "auto" */
    int64_t threads;       /* 0: one for each core */
    int64_t seq_length;    /* cuts what has more tokens; 0: the model's positions, at most 512 */
    const char *text_column, *pair_column; /* of rows in files; NULL: found by their names */
    const char *name; /* of rows that were added, in messages; NULL: "the rows added" */
} sifr_classifier_options;

/* Opens a model for classes; all is copied, and the context is borrowed. SIFR_USAGE for another
 * model, and for an option out of range. */
SIFR_API sifr_status sifr_classifier_open(sifr_context *context,
                                          const sifr_classifier_options *options,
                                          sifr_classifier **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_classifier_free(sifr_classifier *classifier); /* NULL is harmless */

/* Whether each word of a text gets a class; else a text does, or a pair of them. */
SIFR_API bool sifr_classifier_tags(const sifr_classifier *classifier);

/* What the scores are. */
typedef enum sifr_class_scores {
    SIFR_ONE_CLASS,    /* probabilities of classes of which one is right: their sum is 1 */
    SIFR_MANY_CLASSES, /* of classes that may each be right */
    SIFR_NUMBERS       /* numbers of a regression */
} sifr_class_scores;
SIFR_API sifr_class_scores sifr_classifier_scores(const sifr_classifier *classifier);

/* The number of classes, and the name of one, which is the classifier's. */
SIFR_API int64_t sifr_classifier_count(const sifr_classifier *classifier);
SIFR_API const char *sifr_classifier_label(const sifr_classifier *classifier, int64_t index);

/* Adds a row to those of the next run; it is copied. `pair`: the second text, or NULL. SIFR_FAILED
 * for what is no UTF-8; SIFR_USAGE where the model reads words. */
SIFR_API sifr_status sifr_classifier_add(sifr_classifier *classifier, const char *text, size_t size,
                                         const char *pair, size_t pair_size,
                                         sifr_error *error) SIFR_MUST_CHECK;
/* The same for a model that reads words. */
SIFR_API sifr_status sifr_classifier_add_words(sifr_classifier *classifier,
                                               const char *const *words, size_t count,
                                               sifr_error *error) SIFR_MUST_CHECK;
/* Reads the next run's rows from files (CSV, JSON lines …), which need no label, instead: `paths`
 * are copied. SIFR_USAGE where the model reads words. */
SIFR_API sifr_status sifr_classifier_read(sifr_classifier *classifier, const char *const *paths,
                                          size_t count, sifr_error *error) SIFR_MUST_CHECK;

/* What is said of a row; there during the callback alone. */
typedef struct sifr_classified {
    size_t size;              /* the library's sizeof(sifr_classified) */
    int64_t row;              /* from 0 */
    int64_t count;            /* 1; of words, those that the model has read: a long text is cut */
    const double *scores;     /* [count x classes], row-major */
    const int64_t *best;      /* [count] the class with the highest score */
    const char *const *words; /* [word_count] the row's own, at least `count`; NULL: no words */
    int64_t word_count;
} sifr_classified;

/* Gets a row. `error` is never NULL. A status that is not SIFR_OK ends the run, which returns it
 * with the message that was written into `error`. */
typedef sifr_status sifr_take_classified(void *user, const sifr_classified *row, sifr_error *error);

/* Classifies the rows in order; then there are none, also after an error. */
SIFR_API sifr_status sifr_classifier_run(sifr_classifier *classifier, sifr_take_classified *take,
                                         void *user, sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
