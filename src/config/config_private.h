/* What the files config_*.c share; nobody else includes it. */
#ifndef CONFIG_CONFIG_PRIVATE_H
#define CONFIG_CONFIG_PRIVATE_H

#include "config/config.h"
#include "config/config_keys.h"

typedef enum train_origin { TRAIN_NOT_GIVEN, TRAIN_FROM_FILE, TRAIN_FROM_FLAG } train_origin;

struct train_setting {
    json_t *given; /* checked and in its canonical form, or "auto"; NULL: not given */
    json_t *value; /* after train_config_resolve; NULL: none */
    train_origin origin;
    char note[160]; /* how `value` came about, where it is not simply as given */
};

/* config_text.c: JSON of the same length, lines and columns, with comments and trailing commas
 * turned into blanks. *out is the caller's to free. */
sifr_status train_text_to_json(const char *text, size_t size, const char *name, char **out,
                               sifr_error *error) SIFR_MUST_CHECK;

/* config_value.c. `where` begins a message: "ds.json: gradient_clipping". */

/* Type, range and choices; *out is a new reference to the canonical value: an integer for a whole
 * number written as 5e8, the table's spelling of a choice, a list for a single string. The text
 * "auto" passes for every type but free text. */
sifr_status train_value_check(const train_key *key, json_t *value, const char *where, json_t **out,
                              sifr_error *error) SIFR_MUST_CHECK;
/* The same from a flag's text; NULL stands for true. */
sifr_status train_value_from_text(const train_key *key, const char *text, const char *where,
                                  json_t **out, sifr_error *error) SIFR_MUST_CHECK;
/* The table's default, canonical, as a new reference; NULL where there is none. */
json_t *train_value_default(const train_key *key);
bool train_value_is_auto(const json_t *value);
/* The shortest of the usual precisions that reads back as the same number. */
void train_real_text(double value, char out[40]);
/* Compact JSON on one line, cut to `size`; returns out. */
char *train_value_text(const json_t *value, char *out, size_t size);
/* `text` in quotes and on one line, cut to `size`; returns out. */
char *train_quote(const char *text, char *out, size_t size);
bool train_value_equal(const json_t *a, const json_t *b);

/* "ds.json: path" or "--flag", for messages about this setting; returns out. */
char *train_setting_where(const train_config *config, size_t index, char *out, size_t size);
/* The same by the setting's path, into 300 bytes. */
char *train_path_where(const train_config *config, const char *path, char out[300]);
/* Of a setting that is true or false. */
bool train_is_true(const train_config *config, const char *path);
/* The flag's name for a row, "max-steps"; false where it has none. */
bool train_key_flag_name(const train_key *key, char out[64]);

/* config_verdict.c */
typedef enum train_verdict {
    TRAIN_ACTS,      /* does what its row says */
    TRAIN_NO_MATTER, /* accepted, changes nothing here */
    TRAIN_NEUTRAL,   /* of a feature that is not built, and asks for nothing */
    TRAIN_GATED,     /* its feature is not switched on */
    TRAIN_ALIASED,   /* its new name has the value */
    TRAIN_REFUSED
} train_verdict;

/* What becomes of the value given for row `index`; *gate is the row that switches it off. */
train_verdict train_setting_verdict(const train_config *config, size_t index,
                                    const train_key **gate);
/* SIFR_USAGE for the first given value that is not built. */
sifr_status train_config_verify(const train_config *config, sifr_error *error) SIFR_MUST_CHECK;
/* Whether the optimizer or scheduler of this config has the parameter of row `index`. */
bool train_setting_applies(const train_config *config, size_t index);

/* config_resolve.c: values by path. The path must be one of the table. */
train_setting *train_setting_at(const train_config *config, const char *path);
bool train_setting_given(const train_config *config, const char *path);    /* and not "auto" */
double train_setting_number(const train_config *config, const char *path); /* 0 where none */
int64_t train_setting_int(const train_config *config, const char *path);
/* Takes over the reference `value`; SIFR_NO_MEMORY if it is NULL. */
sifr_status train_setting_put(const train_config *config, const char *path, json_t *value,
                              sifr_error *error, const char *note, ...) SIFR_PRINTF(5, 6);

/* config_batch.c: the three batch keys, from those that are given. */
sifr_status train_config_batch(train_config *config, int64_t world_size,
                               sifr_error *error) SIFR_MUST_CHECK;

/* config_offload.c: checks before the fields are filled, notes after it. */
sifr_status train_config_offload(const train_config *config, int64_t world_size,
                                 sifr_error *error) SIFR_MUST_CHECK;
void train_note_offload(train_config *config);

/* config_activations.c: what activation_checkpointing and activation_memory say for sifr.recompute.
 * Refuses what contradicts itself. */
sifr_status train_config_activations(train_config *config, sifr_error *error) SIFR_MUST_CHECK;

/* config_profile.c: which operations comms_logger logs, and the steps that are traced; after the
 * fields are filled. */
sifr_status train_config_profile(train_config *config, sifr_error *error) SIFR_MUST_CHECK;

#endif
