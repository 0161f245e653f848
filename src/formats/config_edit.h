/* Changes values in the text of a config.json, and no other byte of it. */
#ifndef FORMATS_CONFIG_EDIT_H
#define FORMATS_CONFIG_EDIT_H

#include <stddef.h>

#include "base/errors.h"

/* A member of the outermost object, and the JSON text of its new value; NULL takes it out. */
typedef struct formats_config_change {
    const char *key, *value;
} formats_config_change;

/* A member that is absent is added before the others. *out has a NUL behind it; free with free().
 * `name` begins the message of an error. */
sifr_status formats_config_edit(const char *text, size_t size, const char *name,
                                const formats_config_change *changes, size_t count, char **out,
                                size_t *out_size, sifr_error *error) SIFR_MUST_CHECK;

/* Replaces the value of "torch_dtype" or "dtype" or adds
 * "torch_dtype"; no other byte changes. *out has a NUL behind it; free with free(). */
sifr_status formats_config_set_dtype(const char *text, size_t size, const char *name,
                                     const char *dtype, char **out, size_t *out_size,
                                     sifr_error *error) SIFR_MUST_CHECK;

#endif
