/* Chat templates: the part of Jinja that published templates use, with the settings of Hugging
 * Face's transformers (trim_blocks, lstrip_blocks, sandbox, loop controls, generation marks, its
 * own tojson). Any other construct is refused with its line. A template reads no file, and its
 * steps, depth, memory and output are bounded. A text_template is not written after it was
 * parsed: any number of threads may render one. */
#ifndef TEXT_TEMPLATE_H
#define TEXT_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/errors.h"

typedef struct text_template text_template;

/* `name` (a path) begins the messages; it is copied. SIFR_USAGE for a construct that is not built
 * and for text that is no template. */
sifr_status text_template_parse(const char *text, size_t size, const char *name,
                                text_template **out, sifr_error *error) SIFR_MUST_CHECK;
void text_template_free(text_template *t); /* NULL is fine */

/* Whether it has {% generation %} blocks. */
bool text_template_marks(const text_template *t);

/* Whether a name in it, also of a member, or a string is this word. */
bool text_template_mentions(const text_template *t, const char *word);

/* Whether it has a variable of this name. */
bool text_template_names(const text_template *t, const char *name);

typedef struct text_template_input {
    const json_t *messages;            /* an array of objects, at least one */
    const json_t *tools;               /* an array of objects, or NULL */
    const json_t *documents;           /* an array, or NULL */
    const json_t *variables;           /* an object with further variables, or NULL */
    const char *bos_token, *eos_token; /* NULL: undefined */
    bool add_generation_prompt;
    const struct tm *now; /* for strftime_now, which is refused without it */
} text_template_input;

/* A part of the text, in bytes, that {% generation %} encloses. */
typedef struct text_template_span {
    size_t begin, end;
} text_template_span;

/* A part of the text that was written while a loop over the messages was at one of them. */
typedef struct text_template_piece {
    size_t begin, end; /* at least a byte */
    size_t message;    /* its number in the list */
} text_template_piece;

typedef struct text_template_output {
    char *text; /* with a NUL behind it */
    size_t size;
    text_template_span *spans; /* in the order in which their blocks ended */
    size_t span_count;
    text_template_piece *pieces; /* in the order of the text */
    size_t piece_count;
    /* A piece of the assistant's may hold what another message says: the template read that there
     * in a way that does not show where it went. */
    bool mixed;
} text_template_output;

/* As transformers' apply_chat_template: members of messages that are null are left out, and
 * "reasoning_content", "thinking" and "reasoning" stand for each other. SIFR_USAGE, with the line,
 * where the template raises an error or uses what is not built. */
sifr_status text_template_render(const text_template *t, const text_template_input *input,
                                 text_template_output *out, sifr_error *error) SIFR_MUST_CHECK;
void text_template_output_free(text_template_output *out);

#endif
