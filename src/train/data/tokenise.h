/* Text into a token store, by several threads. */
#ifndef TRAIN_TOKENISE_H
#define TRAIN_TOKENISE_H

#include <stdint.h>

#include "base/errors.h"
#include "formats/text_source.h"
#include "formats/tokenizer/tokenizer.h"
#include "train/progress.h"

typedef struct train_tokenised {
    int64_t documents, tokens;
    uint64_t bytes;
    uint64_t invalid;          /* sequences that are no UTF-8, each read as U+FFFD */
    int64_t invalid_documents; /* with such sequences */
    int64_t unfinished;        /* documents whose last line has no newline */
    double seconds;
} train_tokenised;

/* Reads every document and writes them in order as prefix.bin and prefix.idx, without special
 * tokens around them; `separator` (-1: none) goes behind each that does not end with it. The store
 * is the same for any number of threads (0: one for each processor). `progress` may be NULL. */
sifr_status train_tokenise(const formats_text_source *source, const formats_tokenizer *tokenizer,
                           int32_t separator, const char *prefix, int threads,
                           const train_progress *progress, train_tokenised *counts,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
