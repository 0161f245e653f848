/* The table of every key that a config may hold. Private to src/train/config_*.c and to the
 * program that writes docs/config.md. */
#ifndef CONFIG_CONFIG_KEYS_H
#define CONFIG_CONFIG_KEYS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum train_key_type {
    TRAIN_SECTION, /* an object whose members have rows of their own */
    TRAIN_BOOL,
    TRAIN_INT,   /* 500000000 or 5e8 */
    TRAIN_BYTES, /* the same, or "24GiB" */
    TRAIN_NUMBER,
    TRAIN_TEXT,
    TRAIN_CHOICE,  /* one of `choices`, in any case of letters */
    TRAIN_TEXTS,   /* a list of strings; one string counts as a list of one */
    TRAIN_NUMBERS, /* a list of numbers */
    TRAIN_ANY      /* any value; what is inside has no rows */
} train_key_type;

typedef enum train_key_status {
    TRAIN_BUILT,     /* done, except for the choices listed in `later` */
    TRAIN_NO_EFFECT, /* accepted; `doc` says why it changes nothing here */
    TRAIN_LATER,   /* known, not built yet: values that ask for nothing pass, others are refused */
    TRAIN_REMOVED, /* like TRAIN_LATER, but nothing to wait for: `doc` says what to use */
    TRAIN_ALIAS    /* an old or other spelling of the key `alias` */
} train_key_status;

typedef struct train_key {
    const char *path; /* "zero_optimization.stage" */
    train_key_type type;
    train_key_status status;
    const char *fallback; /* default, as JSON; NULL: none */
    const char *unit;     /* "elements", "bytes", "steps" …; "" where there is none */
    const char *doc;      /* one line */
    const char *range;    /* "> 0", ">= 0", "0..1", "0..<1": both ends in, upper end out */
    const char *choices;  /* "a|b|c" */
    const char *later;    /* of a built key: choices (or "true") that are not built yet */
    const char *neutral;  /* of one that is not built: what asks for nothing, beside the default */
    const char *gate;     /* acts only where this other key differs from its default */
    const char *opens;    /* of a built key: acts only where `gate` has this value ... */
    const char *also[3];  /* ... or one of these other keys has it */
    const char *only;     /* the types of optimizer or scheduler that have this parameter */
    const char *alias;    /* the new name; "" where the old one is dropped */
    const char *bool_means; /* the JSON object that `true` stands for */
    const char *over;       /* the DeepSpeed key that this one gives a value to */
    const char *flag;       /* the flag's name; the last part of the path for keys of "sifr" */
    const char *argument;   /* what --help calls its value */
    size_t field;           /* offset in train_config, plus one; 0: none */
    bool ungated; /* asks even where its section is not switched on by name; of a section: asks
              by being there */
} train_key;

/* The row number `index`, from 0; NULL behind the last one. */
const train_key *train_key_at(size_t index);
size_t train_key_count(void);

/* The row with exactly this path, or NULL; *index (may be NULL) is its number. */
const train_key *train_key_find(const char *path, size_t *index);

/* The last part of the path. */
const char *train_key_leaf(const train_key *key);

/* The key that has to ask for something before this one acts: `gate`, or "enabled" or "device"
 * of its own section; NULL where there is none. */
const train_key *train_key_gate(const train_key *key);

/* Whether `word` is one of "a|b|c", letters of any case; *index and the table's spelling. */
bool train_key_has_word(const char *words, const char *word, int *index, char spelling[64]);

#endif
