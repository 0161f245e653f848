/* A run's config: DeepSpeed's JSON with sifr's own section, and the flags of `sifr train` over it
 * (docs/config.md lists the keys).
 *
 *     sifr_config_create(&config, &error);
 *     sifr_config_load(config, "ds.json", &error);
 *     sifr_config_set(config, "max-steps", "1000", &error);
 *
 * Runs and plans read a config and leave it as it is: one config may serve several, also with other
 * settings set in between. A config writes no log. It belongs to one thread at a time.
 *
 * SIFR_USAGE: a key or value that is wrong, by its path, with what it may be; SIFR_FAILED: a file
 * that cannot be read.
 */
#ifndef SIFR_CONFIG_H
#define SIFR_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/objective.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_config sifr_config;

/* With nothing given. */
SIFR_API sifr_status sifr_config_create(sifr_config **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_config_free(sifr_config *config); /* NULL is harmless */

/* What was given to `config`, as one of its own. */
SIFR_API sifr_status sifr_config_copy(const sifr_config *config, sifr_config **out,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* A file: JSON, with comments and trailing commas, or HJSON; a path that is no file may be the
 * config itself in base64. Once for each config. Flags count over the file, whether they are set
 * before or after it is read. What is refused leaves the config as it was. */
SIFR_API sifr_status sifr_config_load(sifr_config *config, const char *path,
                                      sifr_error *error) SIFR_MUST_CHECK;
/* The same from memory; `name` begins the messages. The text is copied. */
SIFR_API sifr_status sifr_config_parse(sifr_config *config, const char *text, size_t size,
                                       const char *name, sifr_error *error) SIFR_MUST_CHECK;

/* One flag over the file. `name` is the flag's ("max-steps", "max_steps"), or a key's full path
 * ("optimizer.params.lr"). `value` is as typed ("4k", "1e-3"); NULL for a switch. Of a list, the
 * first call replaces what the file says, and further ones append. */
SIFR_API sifr_status sifr_config_set(sifr_config *config, const char *name, const char *value,
                                     sifr_error *error) SIFR_MUST_CHECK;
/* Takes back what the file or flags gave to one key, by a name as above: it is as never given, and
 * a list can be set anew. */
SIFR_API sifr_status sifr_config_clear(sifr_config *config, const char *name,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* A loss of the program's own (sifr/objective.h) for the runs, loops and plans of the config and of
 * its copies; NULL: none. `sifr.own_loss.memory` of the config bounds its chunks. Function and user
 * must outlive what is made from the config. Refused beside `preference` and `distill`, and for
 * models that classify or fill masks in. */
SIFR_API sifr_status sifr_config_set_loss(sifr_config *config, sifr_loss_function *loss, void *user,
                                          sifr_error *error) SIFR_MUST_CHECK;

/* Works out for so many ranks what was left open: "auto", defaults, batch sizes. Refuses what
 * contradicts itself or is not supported. Values can be read after it, until something is set. */
SIFR_API sifr_status sifr_config_resolve(sifr_config *config, int64_t ranks,
                                         sifr_error *error) SIFR_MUST_CHECK;

/* After sifr_config_resolve; else SIFR_USAGE. The texts are the caller's: sifr_text_free. */

/* The value of one key, by a name as above, as JSON on one line: "0.001", "\"out\"", "null". Of a
 * flag that gives another key its value ("gradient-accumulation-steps"), that of the other key. */
SIFR_API sifr_status sifr_config_value(const sifr_config *config, const char *name, char **out,
                                       sifr_error *error) SIFR_MUST_CHECK;
/* The effective config as JSON: parsed again, it repeats the run. */
SIFR_API sifr_status sifr_config_json(const sifr_config *config, char **out,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Resolves, and says what each key does, a line each, as `sifr train --dry-run`; `all`: also of
 * keys at their defaults. Where the config is refused, the lines still say what would become of
 * each given key, and the status is the refusal's. A line is valid only during the call. */
SIFR_API sifr_status sifr_config_explain(sifr_config *config, int64_t ranks, bool all,
                                         void (*line)(void *user, const char *text), void *user,
                                         sifr_error *error) SIFR_MUST_CHECK;

/* The flags, for programs that read command lines. */
typedef enum sifr_config_group {
    SIFR_CONFIG_RUN,    /* what to train */
    SIFR_CONFIG_LENGTH, /* length, batch and rate */
    SIFR_CONFIG_REPORT, /* evaluation, checkpoints and reports */
    SIFR_CONFIG_SPEED,  /* precision, memory and speed */
    SIFR_CONFIG_RANKS,
    SIFR_CONFIG_GROUPS
} sifr_config_group;

typedef struct sifr_config_flag {
    size_t size;          /* sizeof(sifr_config_flag), set by the caller */
    char name[64];        /* "max-steps", without the dashes */
    const char *path;     /* the key that it sets: "sifr.max_steps" */
    const char *argument; /* "N", "X", "PATH", "TEXT", "a|b"; NULL: a switch */
    const char *fallback; /* the default, as JSON; NULL: none */
    const char *doc;      /* one line */
    sifr_config_group group;
    bool many; /* takes one or more arguments */
} sifr_config_flag;

/* The flag number `index`, from 0; false behind the last one. Its texts are static. */
SIFR_API bool sifr_config_flag_at(size_t index, sifr_config_flag *flag);

#ifdef __cplusplus
}
#endif
#endif
