/* The regular expressions by which published tokenizers split text: alternatives, groups, classes
 * with \p{…}, repeats, (?i:…), lookahead. They mean what Oniguruma's Ruby syntax says, which the
 * `tokenizers` library uses; any other construct is refused with its place. Matching backtracks
 * within a budget of steps, so that no pattern takes more than linear time: one that asks for more
 * is an error. */
#ifndef TEXT_TOKENIZER_REGEX_H
#define TEXT_TOKENIZER_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct text_regex text_regex;

/* What a search needs besides the pattern; start with {0}, set `budget` before a text. */
typedef struct text_regex_frame {
    uint32_t pc;
    bool run;
    const uint8_t *at, *low;
} text_regex_frame;

typedef struct text_regex_state {
    text_regex_frame *frames;
    size_t count, capacity;
    int64_t budget;
} text_regex_state;

/* `name` begins the message of a refusal. */
sifr_status text_regex_compile(const char *pattern, const char *name, text_regex **out,
                               sifr_error *error) SIFR_MUST_CHECK;
void text_regex_free(text_regex *regex); /* NULL is fine */

/* Steps allowed for a text of `size` bytes. */
int64_t text_regex_budget(size_t size);

/* The first match in [at, end) of the valid UTF-8 that begins at `begin`: *start and *stop, or
 * *start = NULL. A match is never empty. */
sifr_status text_regex_find(const text_regex *regex, text_regex_state *state, const uint8_t *begin,
                            const uint8_t *at, const uint8_t *end, const uint8_t **start,
                            const uint8_t **stop, sifr_error *error) SIFR_MUST_CHECK;

const char *text_regex_pattern(const text_regex *regex);

/* Whether a text may be cut between an ASCII letter and a blank without changing a match. */
bool text_regex_cut_is_safe(const text_regex *regex);
/* Whether every ASCII letter before a blank ends a match. */
bool text_regex_ends_at_blank(const text_regex *regex);

#endif
