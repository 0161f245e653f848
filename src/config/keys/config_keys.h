/* The table of every key that a config may hold. Private to src/config/ and to the
 * program that writes docs/config.md. */
#ifndef CONFIG_CONFIG_KEYS_H
#define CONFIG_CONFIG_KEYS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

#define CONFIG_MOST_GROUPS 4096 /* patterns of sifr.groups */

typedef enum config_key_type {
    CONFIG_SECTION, /* an object whose members have rows of their own */
    CONFIG_BOOL,
    CONFIG_INT,   /* 500000000 or 5e8 */
    CONFIG_BYTES, /* the same, or "24GiB" */
    CONFIG_NUMBER,
    CONFIG_TEXT,
    CONFIG_CHOICE,  /* one of `choices`, in any case of letters */
    CONFIG_TEXTS,   /* a list of strings; one string counts as a list of one */
    CONFIG_NUMBERS, /* a list of numbers */
    CONFIG_ANY      /* any value; what is inside has no rows */
} config_key_type;

typedef enum config_key_status {
    CONFIG_BUILT,     /* done, except for the choices listed in `later` */
    CONFIG_NO_EFFECT, /* accepted; `doc` says why it changes nothing here */
    CONFIG_LATER, /* known, not supported yet: values that ask for nothing pass, others are refused
                   */
    CONFIG_REMOVED, /* like CONFIG_LATER, but nothing to wait for: `doc` says what to use */
    CONFIG_ALIAS    /* an old or other spelling of the key `alias` */
} config_key_status;

typedef struct config_key {
    const char *path; /* "zero_optimization.stage" */
    config_key_type type;
    config_key_status status;
    const char *fallback; /* default, as JSON; NULL: none */
    const char *unit;     /* "elements", "bytes", "steps" …; "" where there is none */
    const char *doc;      /* one line */
    const char *range;    /* "> 0", ">= 0", "0..1", "0..<1": both ends in, upper end out */
    const char *most;     /* the largest value that is supported, where the key acts */
    const char *least;    /* and the smallest beside 0; only with `most` */
    int64_t multiple;     /* which a value is a multiple of, where the key acts; 0: any */
    const char *choices;  /* "a|b|c" */
    const char *later;    /* of a built key: choices (or "true") that are not supported yet */
    const char *removed;  /* of these: choices that DeepSpeed took out, in 0.19.8 */
    const char *neutral;  /* what asks for nothing, beside the default; of a built key it counts as
                             not given */
    const char *gate;     /* acts only where this other key differs from its default */
    const char *opens;    /* of a built key: acts only where `gate` has this value ... */
    const char *also[3];  /* ... or one of these other keys has it */
    bool host;            /* on GPUs also where one of them is "cpu" */
    const char *only;     /* the types of optimizer or scheduler that have this parameter */
    const char *alias;    /* the new name; "" where the old one is dropped */
    const char *bool_means; /* the JSON object that `true` stands for */
    const char *over;       /* the DeepSpeed key that this one gives a value to */
    const char *fit;        /* what `sifr plan --fit` may choose: its name in --fit --json */
    const char *says;       /* and in its text: "recompute %s" */
    const char *flag;       /* the flag's name; the last part of the path for keys of "sifr" */
    const char *argument;   /* what --help calls its value */
    config_flag_group group;
    size_t field, size; /* offset in sifr_config, plus one, and bytes; 0: none */
    bool is_unsigned;   /* the field is */
    const char *member; /* the field's name, "step.zero.stage" */
    const char
        *unset;   /* what the field may hold, beside the range, where no value is given: "-1" */
    bool secret;  /* its value is shown nowhere */
    bool told;    /* a run says where it has no effect, as of keys of sifr's own */
    bool ungated; /* asks even where its section is not switched on by name; of a section: asks
              by being there */
} config_key;

/* The row number `index`, from 0; NULL behind the last one. */
const config_key *config_key_at(size_t index);
size_t config_key_count(void);

/* The fields of sifr_settings: the next row from *index on, which moves behind it; NULL behind the
 * last one. Begin with 0. */
const config_key *config_field_next(size_t *index);

/* The row with exactly this path, or NULL; *index (may be NULL) is its number. */
const config_key *config_key_find(const char *path, size_t *index);

/* The last part of the path. */
const char *config_key_leaf(const config_key *key);

/* The key that has to ask for something before this one acts: `gate`, or "enabled" or "device"
 * of its own section; NULL where there is none. */
const config_key *config_key_gate(const config_key *key);

/* The name of its field in sifr_settings: "zero.stage". */
const char *config_field_name(const config_key *row);

/* What a range holds; one that is open there does not hold `low` or `high` itself. */
typedef struct config_range {
    double low, high; /* high: infinite where there is no upper end */
    bool open_low, open_high;
} config_range;
config_range config_range_of(const char *range);
bool config_range_holds(const char *range, double value); /* NULL holds all */
/* False for a number that fp32 cannot have, of a key whose number kernels take. */
bool config_fits_kernels(const config_key *key, double value);

/* Whether `word` is one of "a|b|c", letters of any case; *index and the table's spelling. */
bool config_key_has_word(const char *words, const char *word, int *index, char spelling[64]);

#endif
