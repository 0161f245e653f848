/* What the files config_*.c share; nobody else includes it. */
#ifndef CONFIG_CONFIG_PRIVATE_H
#define CONFIG_CONFIG_PRIVATE_H

#include "config/config.h"
#include "config/keys/config_keys.h"

typedef enum config_origin { CONFIG_NOT_GIVEN, CONFIG_FROM_FILE, CONFIG_FROM_FLAG } config_origin;

struct config_setting {
    json_t *given; /* checked and in its canonical form, or "auto"; NULL: not given */
    json_t *value; /* after config_resolve; NULL: none */
    config_origin origin;
    /* How `value` came about, where it is not simply as given: CONFIG_NOTE bytes, into
     * config->notes. NULL: the config was never resolved. */
    char *note;
};

/* Most configs that are copied are not resolved, and notes are most of what a setting takes. */
enum { CONFIG_NOTE = 160 };

static inline const char *config_note_of(const config_setting *setting) {
    return setting->note ? setting->note : "";
}

/* config_text.c: JSON of the same length, lines and columns, with comments and trailing commas
 * turned into blanks. *out is the caller's to free. */
sifr_status config_text_to_json(const char *text, size_t size, const char *name, char **out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* config_hjson.c: *out is the caller's. */
sifr_status config_hjson(const char *text, size_t size, const char *name, json_t **out,
                         sifr_error *error) SIFR_MUST_CHECK;
/* Whether a text that is no JSON begins as HJSON does: with a key without quotes, or no brace. */
bool config_hjson_likely(const char *text, size_t size);

/* config_base64.c: a config as launchers pass it on a command line, in either alphabet of base64.
 * False where the text is none that decodes to an object; else *out is the caller's to free. */
bool config_from_base64(const char *text, char **out, size_t *size);

/* config_report.c: sets root.a.b.c, making the objects on the way; false where one is none. */
bool config_put_path(json_t *root, const char *path, json_t *value);

/* config_parse.c: JSON or HJSON, whichever the text is. */
sifr_status config_read_text(const char *text, size_t size, const char *name, json_t **out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* config_value.c. `where` begins a message: "ds.json: gradient_clipping". */

/* Type, range and choices; *out is a new reference to the canonical value: an integer for a whole
 * number written as 5e8, the table's spelling of a choice, a list for a single string. The text
 * "auto" passes for every type but free text. */
sifr_status config_value_check(const config_key *key, json_t *value, const char *where,
                               json_t **out, sifr_error *error) SIFR_MUST_CHECK;
/* The table's default, canonical, as a new reference; NULL where there is none. */
json_t *config_value_default(const config_key *key);
bool config_value_is_auto(const json_t *value);
/* The shortest of the usual precisions that reads back as the same number. */
void config_real_text(double value, char out[40]);
/* Compact JSON on one line, cut to `size`; returns out. */
char *config_value_text(const json_t *value, char *out, size_t size);

/* Whether keys of this name have tokens or passwords, in any program's config. */
bool config_names_secret(const char *name);

/* Whether an unknown key of a section looks like a login: of a service's, one that is long and no
 * word; anywhere, an address with a user in it. */
bool config_may_be_login(const char *section, const char *name);

/* Whether a value of this key is for no message and no file; value: may be NULL. */
bool config_is_secret(const config_key *key, const json_t *value);
/* `text` in quotes and on one line, cut to `size`; returns out. */
char *config_quote(const char *text, char *out, size_t size);
bool config_value_equal(const json_t *a, const json_t *b);

/* config_lookup.c: values by path. A path that is not in the table has
 * no value, is not given, and cannot be set. */
config_setting *config_setting_at(const sifr_config *config, const char *path);
bool config_setting_given(const sifr_config *config, const char *path);    /* and not "auto" */
double config_setting_number(const sifr_config *config, const char *path); /* 0 where none */
int64_t config_setting_int(const sifr_config *config, const char *path);
/* Takes over the reference `value`; SIFR_NO_MEMORY if it is NULL. */
sifr_status config_setting_put(const sifr_config *config, const char *path, json_t *value,
                               sifr_error *error, const char *note, ...) SIFR_PRINTF(5, 6);

/* "ds.json: path" or "--flag", for messages about this setting; returns out. */
char *config_setting_where(const sifr_config *config, size_t index, char *out, size_t size);
/* The same by the setting's path, into 300 bytes. */
char *config_path_where(const sifr_config *config, const char *path, char out[300]);
/* Of a setting that is true or false. */
bool config_is_true(const sifr_config *config, const char *path);
/* The flag's name for a row, "max-steps"; false where it has none. */
bool config_key_flag_name(const config_key *key, char out[64]);

/* config_faults.c: the faults that were met, to be refused together. Begins as zeros. */
typedef struct config_faults {
    size_t count, shown;
    sifr_error first;
    char text[SIFR_ERROR_LENGTH - 64]; /* " (1) ... (2) ...", as many as fit */
} config_faults;

/* Keeps a SIFR_USAGE of `error` and returns SIFR_OK; returns any other status as it is. */
sifr_status config_faults_add(config_faults *faults, sifr_status status,
                              const sifr_error *error) SIFR_MUST_CHECK;
/* SIFR_USAGE where there were any. */
sifr_status config_faults_end(const config_faults *faults, sifr_error *error) SIFR_MUST_CHECK;

/* config_verdict.c */
typedef enum config_verdict {
    CONFIG_ACTS,      /* does what its row says */
    CONFIG_NO_MATTER, /* accepted, changes nothing here */
    CONFIG_NEUTRAL,   /* of a feature that is not built, and asks for nothing */
    CONFIG_GATED,     /* its feature is not switched on */
    CONFIG_ALIASED,   /* its new name has the value */
    CONFIG_REFUSED
} config_verdict;

/* Given, as something else than the default. */
bool config_differs(const sifr_config *config, size_t index);

/* What becomes of the value given for row `index`; *gate is the row that switches it off. */
config_verdict config_setting_verdict(const sifr_config *config, size_t index,
                                      const config_key **gate);
/* Whether a key that its gate switches off acts on GPUs, whose state in host memory moves. */
bool config_acts_on_gpus(const sifr_config *config, const config_key *key);
/* SIFR_USAGE for the given values that are not built. */
sifr_status config_verify(const sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
/* The same, added to `faults`. */
sifr_status config_verify_into(const sifr_config *config, config_faults *faults) SIFR_MUST_CHECK;
/* Whether the optimizer or scheduler of this config has the parameter of row `index`. */
bool config_setting_applies(const sifr_config *config, size_t index);

/* config_departures.c: what DeepSpeed does instead where row `index`, given or not, acts otherwise
 * in this config; NULL: the same, or the key does not act. After config_resolve. */
const char *config_departure(const sifr_config *config, size_t index);

/* config_mesh.c: whether the ranks, of which `ranks` each take a part of the batch, can be divided
 * as the config says. */
sifr_status config_resolve_mesh(const sifr_config *config, int64_t world_size, int64_t ranks,
                                sifr_error *error) SIFR_MUST_CHECK;
int32_t config_shard_size(const sifr_config *config); /* of either key; 0: none */
/* Whether stages, tensors and contexts together divide the ranks of the world. */
sifr_status config_check_ranks(const sifr_config *config, int64_t world_size,
                               sifr_error *error) SIFR_MUST_CHECK;
/* Ranks that each take a part of the batch; what does nothing on these. Once the fields are
 * filled and settled. */
int64_t config_data_ranks(const sifr_config *config);
void config_note_mesh(sifr_config *config);

/* config_batch.c: the three batch keys, from those that are given. */
/* *data_ranks: ranks that each take a part of the batch. */
sifr_status config_resolve_pipeline(sifr_config *config, int64_t world_size, int64_t *data_ranks,
                                    sifr_error *error) SIFR_MUST_CHECK;
/* Fills in what stages and their absence imply, once the fields are filled. */
void config_settle_pipeline(sifr_config *config);
int64_t config_stages(const sifr_config *config); /* 1: none */

/* config_tensor.c: the same of tensor ranks. *ranks: those that take a part of the batch so far. */
sifr_status config_resolve_tensors(sifr_config *config, int64_t *ranks,
                                   sifr_error *error) SIFR_MUST_CHECK;
void config_settle_tensors(sifr_config *config);
int64_t config_tensor_ranks(const sifr_config *config, const char **key); /* NULL, and 1: none */

/* config_context.c: the same of context ranks. */
sifr_status config_resolve_contexts(sifr_config *config, int64_t *ranks,
                                    sifr_error *error) SIFR_MUST_CHECK;
void config_settle_contexts(sifr_config *config);
int32_t config_context_ranks(const sifr_config *config);   /* by either key; 1: none */
const char *config_context_key(const sifr_config *config); /* which of both; NULL: none */

/* config_compression.c */
sifr_status config_resolve_compression(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
void config_settle_compression(sifr_config *config);

sifr_status config_resolve_batch(sifr_config *config, int64_t world_size,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* config_optimizer.c: defaults of the type, the rate, and what the type does not go with. */
#define CONFIG_LR "optimizer.params.lr"
sifr_status config_resolve_optimizer(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
/* Whether the type keeps an average of the weights beside those that it trains. */
bool config_trains_average(const sifr_config *config);

/* config_scheduler.c. The kind that scheduler.type names. */
config_lr_kind config_scheduler_kind(const sifr_config *config);
bool config_lr_is_trainer(config_lr_kind kind);
/* Which parameters count, before the fields are filled; the fields; and what is worth a note. */
sifr_status config_resolve_scheduler(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
sifr_status config_fill_schedule(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
void config_note_length(sifr_config *config);

/* config_offload.c: checks before the fields are filled, notes after it. */
sifr_status config_resolve_offload(const sifr_config *config, int64_t world_size,
                                   sifr_error *error) SIFR_MUST_CHECK;
void config_note_offload(sifr_config *config);
/* The directory that acts, once the fields are filled; NULL where nothing is on nvme. */
const char *config_nvme_path(const sifr_config *config);

/* config_dataset.c: the sources of sifr.dataset, into source_list and data_list. */
sifr_status config_fill_dataset(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
/* The texts "prompt=question" of sifr.data_fields, into data_fields. */
sifr_status config_fill_data_fields(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;

/* config_turns.c. The roles that messages have, with "|" between them. */
extern const char config_roles[];
/* roles_to_train, train_on_eos, train_on_eot of the config and of a source, whose
 * name in messages is `where`. */
sifr_status config_fill_turns(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
/* After config_fill_dataset. */
sifr_status config_check_turns(const sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
sifr_status config_fill_source_turns(const sifr_config *config, const json_t *source,
                                     const char *where, config_turns *out,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* config_groups.c: sifr.groups, into group_list, once the schedule is filled in. */
sifr_status config_fill_groups(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;

/* config_activations.c: what activation_checkpointing and activation_memory say for sifr.recompute.
 * Refuses what contradicts itself. */
sifr_status config_resolve_activations(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;

/* config_profile.c: which operations comms_logger logs, and the steps that are traced; after the
 * fields are filled. */
sifr_status config_resolve_profile(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;

#endif
