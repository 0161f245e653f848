/* Which tokens of a text are learned, from parts of the text. */
#ifndef DATA_CHAT_ALIGN_H
#define DATA_CHAT_ALIGN_H

#include <stdbool.h>

#include "text/template/template.h"
#include "text/tokenizer/tokenizer.h"

/* A part of the text as the tokens from `first` until `end`; first SIZE_MAX: it has none. */
typedef struct data_chat_run {
    size_t first, end;
} data_chat_run;

/* The tokens that have a byte in the part, and those between them. `trims`: what a token begins
 * with of blanks does not count. *placed as below. */
sifr_status data_chat_find_run(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                               const char *text, size_t size, const text_template_span *span,
                               bool trims, const text_tokenizer_ids *ids, data_chat_run *run,
                               bool *placed, sifr_error *error) SIFR_MUST_CHECK;

/* Sets learned[i] where token i has a byte in one of the parts, or stands between two that do of
 * the same part. *placed is false where the ids do not spell the text (a normalizer changed it) and
 * a part does not begin and end between tokens. */
sifr_status data_chat_align(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                            const char *text, size_t size, const text_template_span *spans,
                            size_t span_count, const text_tokenizer_ids *ids, bool *learned,
                            bool *placed, sifr_error *error) SIFR_MUST_CHECK;
/* Where learned tokens end without a special token and one stands behind them, that is learned too:
 * it ends a turn in templates that end turns with the next one's begin alone, as TRL's training
 * form of GLM's has it. */
void data_chat_align_open(const text_tokenizer *tokenizer, const text_tokenizer_ids *ids,
                          bool *learned);

#endif
