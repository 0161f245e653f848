/* Models and configs of other programs, to and from: export of checkpoints, GGUF files, adapters
 * put into their base, import of checkpoints and configs.
 *
 *     sifr_export_options options = {.size = sizeof options, .source = "run/checkpoint-200",
 *                                    .destination = "model"};
 *     sifr_export(context, &options, NULL, &error);
 *
 * Each call does its work before it returns, in bounded memory, and says in the context's log what
 * should be known. What is written appears complete or not at all. Calls may go on in several
 * threads at once. `out` may be NULL; else its size is set by the caller. Messages name an option
 * by the program's flag. SIFR_USAGE: an option that is wrong, or a model that cannot become what is
 * asked for, by name; SIFR_FAILED: a file that cannot be read or written; SIFR_NO_MEMORY: the disk
 * has no room.
 */
#ifndef SIFR_CONVERT_H
#define SIFR_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SIFR_PATH_LENGTH = 4096 };

typedef struct sifr_export_options {
    size_t size; /* sizeof(sifr_export_options) */
    const char
        *source; /* a checkpoint of any number of ranks, the output folder of a run, or a model
                    folder; of "gguf" a model folder, of "deepspeed-universal" a checkpoint */
    const char *destination; /* a folder, new or empty; of "gguf" a file that is not there */
    const char *format;      /* "hf" (also NULL), "gguf" or "deepspeed-universal" */
    const char *type; /* of "gguf": type of matrices, "f32", "f16" (also NULL), "bf16" or "q8_0" */
    bool average;     /* of "hf": the checkpoint's average of the weights (sifr.ema) */
    bool text_model;  /* of "hf": of a folder with a tower, the text model alone */
} sifr_export_options;

typedef struct sifr_exported {
    size_t size; /* sizeof(sifr_exported), set by the caller */
    int64_t parameters;
    uint64_t bytes;              /* written; but for "gguf", of the weights alone */
    int64_t step;                /* of the checkpoint; -1: a model folder */
    char from[SIFR_PATH_LENGTH]; /* the checkpoint or folder that was read */
} sifr_exported;

SIFR_API sifr_status sifr_export(sifr_context *context, const sifr_export_options *options,
                                 sifr_exported *out, sifr_error *error) SIFR_MUST_CHECK;

typedef struct sifr_merge_options {
    size_t size;             /* sizeof(sifr_merge_options) */
    const char *base;        /* a model folder */
    const char *adapter;     /* an adapter folder, of PEFT or of a run with sifr.lora */
    const char *destination; /* a folder, new or empty */
    bool unmerge;            /* takes the adapter out of `base` again: rounding stays */
} sifr_merge_options;

typedef struct sifr_merged {
    size_t size; /* sizeof(sifr_merged), set by the caller */
    int64_t parameters;
    uint64_t bytes;  /* of weights */
    int64_t modules; /* that the adapter changed */
} sifr_merged;

SIFR_API sifr_status sifr_merge(sifr_context *context, const sifr_merge_options *options,
                                sifr_merged *out, sifr_error *error) SIFR_MUST_CHECK;

typedef struct sifr_import_checkpoint_options {
    size_t size;             /* sizeof(sifr_import_checkpoint_options) */
    const char *checkpoint;  /* of DeepSpeed, with the file `latest` */
    const char *model;       /* folder of config.json and tokenizer; NULL: the checkpoint's */
    const char *destination; /* a folder, new or empty */
} sifr_import_checkpoint_options;

typedef struct sifr_imported_checkpoint {
    size_t size;                 /* sizeof(sifr_imported_checkpoint), set by the caller */
    int32_t stage;               /* of ZeRO; -1: universal */
    int64_t ranks, weights;      /* weights: tensors */
    int64_t parameters, step;    /* step -1: not known */
    char from[SIFR_PATH_LENGTH]; /* the folder of the tag */
} sifr_imported_checkpoint;

/* Its fp32 weights; moments are not taken over. */
SIFR_API sifr_status sifr_import_checkpoint(sifr_context *context,
                                            const sifr_import_checkpoint_options *options,
                                            sifr_imported_checkpoint *out,
                                            sifr_error *error) SIFR_MUST_CHECK;

/* ---- configs ---- */

/* Values of `from`. */
#define SIFR_IMPORT_FROM "axolotl, trl, trainer, accelerate, llamafactory, open-instruct"

typedef struct sifr_import_config_options {
    size_t size;              /* sizeof(sifr_import_config_options) */
    const char *path;         /* YAML or JSON */
    const char *from;         /* whose config it is: of SIFR_IMPORT_FROM; NULL: found by its keys */
    const char *const *allow; /* [allow_count] keys that pass, although they would be refused */
    size_t allow_count;
    /* Gets a line for each key that is given: where it went, or why it is not taken over; there
     * during the call alone. May be NULL. */
    void (*line)(void *user, const char *line);
    void *user;
} sifr_import_config_options;

typedef struct sifr_imported_config {
    size_t size;        /* sizeof(sifr_imported_config), set by the caller */
    const char *source; /* "an axolotl config"; static */
    int64_t left;       /* keys that ask for something and have no counterpart */
} sifr_imported_config;

/* The config of sifr that does what that of the other program says: a JSON text, which the caller
 * gives back by sifr_text_free. SIFR_USAGE, by name, for a key that is not known, or that would
 * make it another training. */
SIFR_API sifr_status sifr_import_config(sifr_context *context,
                                        const sifr_import_config_options *options, char **text,
                                        sifr_imported_config *out,
                                        sifr_error *error) SIFR_MUST_CHECK;

/* Whether a run takes such a text as it is: settings of its own may still mend what is refused.
 * `name` begins the message. */
SIFR_API sifr_status sifr_import_check(const char *text, size_t size, const char *name,
                                       sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
