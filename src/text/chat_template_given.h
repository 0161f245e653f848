/* A chat template that is given in place of the model folder's: a file, a name, or the template
 * itself, which has {{ or {% in it. */
#ifndef TEXT_CHAT_TEMPLATE_GIVEN_H
#define TEXT_CHAT_TEMPLATE_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"
#include "base/file.h"

typedef struct text_given_template {
    char *text; /* owned; NULL: the folder's own is meant */
    size_t size;
    char where[BASE_PATH_LENGTH]; /* for messages */
} text_given_template;

/* `given`: NULL and "tokenizer_default" mean the folder's own, and so does
 * "tokenizer_default_fallback_NAME" where `own` says that the folder has one, else NAME. SIFR_USAGE
 * for a name that is not known, and for one of axolotl's whose text is not here. */
sifr_status text_chat_template_given(const char *given, bool own, text_given_template *out,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* chat_template_names.c: the text of a name, or NULL; whether a name is one of axolotl's whose text
 * is not here; the names, NULL behind the last. */
const char *text_chat_template_named(const char *name);
bool text_chat_template_foreign(const char *name);
const char *text_chat_template_name_at(size_t index);

#endif
