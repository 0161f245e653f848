/* Tokenises text into a token store with several threads. */
#ifndef DATA_TOKENISE_H
#define DATA_TOKENISE_H

#include <stdint.h>

#include "base/errors.h"
#include "base/progress.h"
#include "data/stream/text_source.h"
#include "text/tokenizer/tokenizer.h"

typedef struct data_tokenised {
    int64_t documents, tokens;
    uint64_t bytes;
    uint64_t invalid;          /* invalid UTF-8 sequences, each read as U+FFFD */
    int64_t invalid_documents; /* with such sequences */
    int64_t doubled;           /* documents before which the tokenizer puts what they begin with */
    int64_t unfinished;        /* documents whose last line has no newline */
    double seconds;
} data_tokenised;

typedef struct data_tokenise_options {
    bool special;      /* add the post-processor's special tokens around each document */
    int32_t separator; /* appended to each document that does not end with it; -1: none */
    int threads;       /* 0: one for each processor */
    const base_progress *progress; /* may be NULL */
} data_tokenise_options;

/* Reads every document and writes them in order as prefix.bin and prefix.idx. The store is the same
 * for any number of threads. */
sifr_status data_tokenise(const data_text_source *source, const text_tokenizer *tokenizer,
                          const data_tokenise_options *options, const char *prefix,
                          data_tokenised *counts, sifr_error *error) SIFR_MUST_CHECK;

/* If the post-processor adds tokens around a document, logs them: "each document is <|begin|> …
 * <|end|>". */
void data_tokenise_say(const text_tokenizer *tokenizer, bool special, int64_t separator,
                       const sifr_log *log);

/* Whether a text, of these ids by itself, begins with the token that the post-processor puts before
 * it: then two stand there. */
bool data_tokenise_doubles(const text_tokenizer *tokenizer, const int32_t *ids, size_t count);
/* Logs how many texts have two, if any, and the option that mends it. */
void data_tokenise_say_doubled(const text_tokenizer *tokenizer, int64_t texts, const char *what,
                               const sifr_log *log);

#endif
