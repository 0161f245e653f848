/* Configs of other programs as a config of sifr: axolotl's YAML, accelerate's, and what
 * HfArgumentParser reads (the Trainer's arguments, TRL, LLaMA-Factory, open-instruct, the alignment
 * handbook), as YAML or JSON. */
#ifndef CONFIG_CONFIG_IMPORT_H
#define CONFIG_CONFIG_IMPORT_H

#include "config/config.h"
#include "sifr/convert.h"

typedef struct config_imported {
    json_t *config;     /* for config_parse; the caller's */
    const char *source; /* "an axolotl config" */
    size_t left;        /* keys that ask for something and have no counterpart */
    /* Of a chat template that the source names: tokens of its text, divided by blanks, which the
     * source adds to a tokenizer that does not have them. NULL: it names none. */
    const char *tokens;
} config_imported;

/* What the user says beside the file. */
typedef struct config_import_options {
    const char *from;         /* whose file it is: SIFR_IMPORT_FROM; NULL: found by its keys */
    const char *const *allow; /* keys that pass, although they would be refused */
    size_t allow_count;
} config_import_options;

/* `name` is the file's path: a DeepSpeed config that the text names by a relative path is looked
 * for in the working directory, then beside the file. `say` gets a line for each key that is given:
 * where it went, that it has no effect here, or that it has no counterpart, with the reason; and
 * why the file is whose. SIFR_USAGE where the text is none of these, where a key is not known, or
 * would train something else. `options` may be NULL. */
sifr_status config_import(const char *text, size_t size, const char *name,
                          const config_import_options *options, config_line *say, void *user,
                          config_imported *out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status config_import_file(const char *path, const config_import_options *options,
                               config_line *say, void *user, config_imported *out,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
