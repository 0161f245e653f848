/* The run's configuration: DeepSpeed's JSON plus one extra section, "sifr", and the flags of
 * `sifr train`, which win. One table (config_keys.c) knows every key; parser, flags, report and
 * docs/config.md are made from it.
 *
 * Order of calls:
 *     config_create                      every key at its default
 *     config_load / config_parse   a config file (may be left out)
 *     config_set …                       flags
 *     config_resolve                     "auto", defaults, batch sizes; refuses what is not
 *                                              built; the plain fields below are valid after it
 *     config_set_total_steps             once the data is known: steps of the whole run
 * Errors of keys and values are SIFR_USAGE with the key's path; a file that cannot be read is
 * SIFR_FAILED. Nothing here logs or prints. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "config/schedule/lr_schedule.h"
#include "sifr/objective.h"
#include "sifr/settings.h"

/* The order of each enum is the order of the spellings in the table. Other choices are handed on by
 * their words, as the table spells them, to the room that knows what they mean; NULL is always the
 * first word. */
/* tile_tokens is a multiple of this. A device may want a multiple of more: its plans say so. */
enum { CONFIG_TOKEN_CHUNK = 1024 };

/* Whose turns are learned, in place of train_on. */
typedef struct config_turns {
    bool given;          /* else nothing of this counts */
    const json_t *roles; /* a list of names; NULL: the assistant, or with train_on all every role */
    const char *eos, *eot; /* which ends of turns are learned: words */
} config_turns;

/* A source of rows. */
typedef struct config_source {
    const char *path;
    const char *type;     /* a word of data_type; NULL: auto */
    double weight;        /* above 0 */
    const json_t *fields; /* {"prompt": "question"}: sifr's names of fields, with the file's; NULL:
                             none */
    const json_t *ignore_fields; /* a list of the file's names; NULL: none */
    /* The text of rows of type alpaca: {instruction}, {input} and {system} stand for the row's
     * fields. NULL: none; no_input_format: as format; system_format: the system alone. */
    const char *format, *no_input_format, *system_format;
    config_turns turns; /* what the source leaves out is that of the config */
} config_source;

/* Operations that can be logged; in the order of comm_operation. */
typedef enum config_operation {
    CONFIG_ALL_GATHER,
    CONFIG_REDUCE_SCATTER,
    CONFIG_CONTROL,
    CONFIG_SEND,
    CONFIG_RECEIVE,
    CONFIG_ALL_TO_ALL,
    CONFIG_ALL_REDUCE,
    CONFIG_OPERATIONS
} config_operation;

/* `operations`: bit 1 << config_operation for each that is logged. */
typedef struct config_comms_logger {
    bool enabled, verbose;
    uint32_t operations;
} config_comms_logger;

typedef struct config_flops_profiler {
    bool enabled, detailed;
    int64_t profile_step; /* from 0 */
    int64_t module_depth, top_modules;
    const char *output_file; /* NULL: printed */
} config_flops_profiler;

/* A monitor of DeepSpeed's that writes files: in output_path/job_name. */
typedef struct config_monitor {
    bool enabled;
    const char *output_path, *job_name;
} config_monitor;

/* What of DeepSpeed's activation_checkpointing is no setting of a step. */
typedef struct config_activations {
    bool profile;
    bool partition_activations; /* as asked for; the step's says whether it acts */
    bool cpu_checkpointing;     /* where devices have memory of their own */
} config_activations;

/* Directories as given, NULL where not: step.offload.nvme_path is the one that acts. */
typedef struct config_nvme_paths {
    const char *optimizer, *param, *rest;
} config_nvme_paths;

/* What of a run's output goes to a server as files. */
typedef enum config_artifacts {
    CONFIG_NO_ARTIFACTS,
    CONFIG_LOG_ARTIFACTS,
    CONFIG_MODEL_ARTIFACTS /* and logs */
} config_artifacts;

typedef struct config_setting config_setting; /* one key's value and where it came from */

typedef struct sifr_config {
    sifr_settings step; /* what the planner and the engine read */

    /* DeepSpeed's other keys. train_batch_size = micro_batch_size x gradient_accumulation_steps x
     * world_size, in sequences. */
    int64_t train_batch_size, world_size;
    int64_t steps_per_print; /* 0: not given */
    bool wall_clock_breakdown, memory_breakdown;
    config_comms_logger comms_logger;
    config_flops_profiler flops_profiler;
    config_monitor csv_monitor, tensorboard;
    double lr;
    double muon_lr, adam_lr;     /* 0: as lr */
    config_lr_schedule schedule; /* total_num_steps is 0 until known where it is "auto" */
    config_activations activations;
    config_nvme_paths nvme_path;

    /* The "sifr" section and the flags. Paths are as given; NULL where not given. */
    const char *model, *output, *eval_data;
    const char *const *data; /* data_count files, directories or globs */
    size_t data_count;
    const config_source *dataset; /* NULL: not given; else data_count sources, whose paths are in
                                     `data` */
    const char *data_type;
    const json_t *data_fields;   /* as a source's fields, of data and eval_data; NULL: none */
    const json_t *ignore_fields; /* a list of names, of all rows; NULL: none */
    const char *chat_template;   /* in place of the folder's; NULL: not given */
    const json_t *chat_template_kwargs; /* variables of the chat template; NULL: not given */
    const char *chat_template_date;     /* NULL: not given */
    const char *train_on;
    config_turns turns;       /* of the data that are not of `dataset` */
    const json_t *eot_tokens; /* texts of tokens that end turns; NULL: not given */
    bool packing, group_by_length;
    const char *joint; /* of rows of text */
    bool drop_last;    /* of rows */
    bool skip_bad_rows;
    int64_t max_samples;       /* of each source; 0: all */
    bool drop_long;            /* rows longer than seq_length, instead of cutting them */
    double validation_split;   /* 0: none; from 1 on a number of rows */
    const char *const *freeze; /* freeze_count globs over names of weights */
    size_t freeze_count;
    const json_t *lora; /* "sifr.lora", with the keys of PEFT's LoraConfig; NULL: not given */
    const json_t *quantization; /* "sifr.quantization", with the keys of BitsAndBytesConfig; NULL:
                                   not given */
    bool quantized_base;        /* frozen weights are held in 8 bits */
    const char *adapter;        /* folder of an adapter to go on from */
    bool no_special_tokens;
    const char *task, *problem_type;
    const char *const *labels; /* label_count names; 0: those of the folder or of the data */
    size_t label_count;
    bool new_head;
    const char *text_column, *pair_column, *label_column; /* NULL: the usual names */
    double mlm_probability;
    int64_t max_steps; /* 0: not given, num_train_epochs counts */
    double num_train_epochs;
    int64_t logging_steps;    /* a record of the metrics each so many steps */
    int64_t eval_steps;       /* 0: at the end only, where eval_data is given */
    bool eval_on_start;       /* before the first step too */
    int64_t max_eval_windows; /* 0: all */
    int64_t save_steps;       /* 0: at the end only */
    int64_t save_total_limit; /* checkpoints kept; 0: all */
    bool resume;
    const char *trace;               /* file of the timeline; NULL: none */
    int64_t trace_first, trace_last; /* steps of the run; 0: the second to the fourth done */
    const char *prometheus_file;     /* NULL: none */
    int64_t prometheus_port;         /* on the loopback; 0: none */
    bool mlflow;
    config_artifacts mlflow_artifacts;
    int64_t collective_timeout; /* seconds; 0: none */

    /* A loss of the caller's, which neither file nor flags can give; NULL: none. */
    sifr_loss_function *loss;
    void *loss_user;

    /* Private to config_*.c. */
    config_setting *settings; /* one for each row of the table, and one for unknown paths; all
                                 strings above point into it */
    char *notes;              /* of the settings, once they are resolved */
    char *name;               /* of the file, for messages */
    json_t *ignored;          /* paths of the keys that begin with "_"; NULL: none */
    const char **data_list, **freeze_list, **label_list;
    config_source *source_list;
    json_t *fields_made;              /* data_fields */
    sifr_optimizer_group *group_list; /* that step.optimizer.groups points to */
    bool resolved;
} sifr_config;

/* Everything at its default. On failure, as after config_free, *config is zeroed. */
sifr_status config_create(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
void config_free(sifr_config *config); /* harmless on a zeroed one */

/* Everything that the file and the flags gave to `config`, resolved or not, in *out, which is not
 * resolved. On failure *out is zeroed. */
sifr_status config_copy(const sifr_config *config, sifr_config *out,
                        sifr_error *error) SIFR_MUST_CHECK;

/* Reads a config file: JSON, with comments (//, #, block) and trailing commas, or HJSON. A path
 * that is no file may be the config itself in base64. Unknown and duplicate keys, wrong types and
 * values out of range are refused. Once for each config; flags that are set already stay. */
sifr_status config_load(sifr_config *config, const char *path, sifr_error *error) SIFR_MUST_CHECK;
/* The same from memory; `name` begins the messages. */
sifr_status config_parse(sifr_config *config, const char *text, size_t size, const char *name,
                         sifr_error *error) SIFR_MUST_CHECK;

/* One flag over the file. `name` is that of the flag ("max-steps" or "max_steps"), or a key's full
 * path ("optimizer.params.lr"). `text` is as typed (counts accept 4k, 1e9); NULL for a switch. For
 * a list, the first call replaces what the file says and further calls append. */
sifr_status config_set(sifr_config *config, const char *name, const char *text,
                       sifr_error *error) SIFR_MUST_CHECK;

/* Takes back what the file or flags gave to one key, by a name as above. */
sifr_status config_clear(sifr_config *config, const char *name, sifr_error *error) SIFR_MUST_CHECK;

/* Works out everything that the file and the flags leave open and fills the fields in. May be
 * called again with another world size. */
sifr_status config_resolve(sifr_config *config, int64_t world_size,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The value of the key that config_set finds by this name, or of the key that a flag gives it to,
 * as JSON on one line: "null" where it has none. *out is the caller's to free. After
 * config_resolve. */
sifr_status config_value_json(const sifr_config *config, const char *name, char **out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Whether the file or a flag gives the key of this full path a value ("auto" is none). */
bool config_gives(const sifr_config *config, const char *path);

/* Whether it asks for the section `name`: its "enabled" is true, or, where the table knows no such
 * key, it is there and not switched off. */
bool config_gives_section(const sifr_config *config, const char *name);

/* Likewise, a value that is not the key's default. */
bool config_changes(const sifr_config *config, const char *path);

/* The value of a key that has no field, since its reader alone knows what it means: an
 * objective's. After config_resolve; NULL, 0 and false where there is none. */
const char *config_get_word(const sifr_config *config, const char *path);
double config_get_number(const sifr_config *config, const char *path);
bool config_get_truth(const sifr_config *config, const char *path);

/* Whether pipeline.stages is "auto": a run takes 1, and `sifr plan --fit` may choose. */
bool config_opens_stages(const sifr_config *config);
/* Whether sifr.shard_size is "auto": a run takes 0, and `sifr plan --fit` may choose. */
bool config_opens_copies(const sifr_config *config);
/* Whether tensor_parallel.size, or sifr.context_parallel.size, is "auto" and no other name of it
 * gives ranks: a run takes 1, and `sifr plan --fit` may choose. */
bool config_opens_tensors(const sifr_config *config);
bool config_opens_contexts(const sifr_config *config);
/* Whether zero_hpz_partition_size is "auto": a run takes none, and `sifr plan --fit` may choose. */
bool config_opens_near(const sifr_config *config);
/* Whether slices of parameters are read for their use, so that stage 3 acts on one rank: on nvme,
 * or in host memory where the run may be on a GPU. */
bool config_moves_parameters(const sifr_config *config);

/* The steps of the run, where they follow from the data (num_train_epochs): resolves a
 * total_num_steps of "auto". Harmless where that is already known. After config_resolve. */
sifr_status config_set_total_steps(sifr_config *config, int64_t steps,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* What each key does, a line each: "path = value: what it does, or why it has no effect", with
 * "[DeepSpeed: …]" where DeepSpeed does something else. First the keys that the file or a flag
 * gives and what follows from them, then defaults that are other than DeepSpeed's, then, with
 * `all`, the other built keys at their defaults, or else how many they are. Where config_resolve
 * refused the config, the lines still say of each given key what would become of it. `line` lives
 * during the call only. */
typedef void config_line(void *user, const char *line);
void config_explain(const sifr_config *config, bool all, config_line *write, void *user);

/* What is given, as a flag, as a key of sifr's own or as one of ranks' work (config_key.told), and
 * has no effect beside the other keys: a line each, such as "--warmup-steps 5: no effect, …". After
 * config_resolve. */
void config_explain_idle(const sifr_config *config, config_line *write, void *user);

/* The path of the `index`-th key of the file that is ignored, since its name begins with "_"; NULL
 * behind the last one. */
const char *config_ignored(const sifr_config *config, size_t index);

/* The effective config, a new object that the caller owns: fed to config_parse it repeats
 * the run. After config_resolve. NULL when memory ran out. */
json_t *config_effective(const sifr_config *config);

/* The same without keys that are given and have no effect: two configs that train alike. */
json_t *config_acting(const sifr_config *config);
/* The keys' defaults in a section and the sections in it, as a new object; NULL where memory ran
 * out. */
json_t *config_fallbacks(const char *section);

/* The effective config as text, indented, with each number in the fewest digits that read back as
 * the same; *out is the caller's to free. */
sifr_status config_text(const sifr_config *config, char **out, sifr_error *error) SIFR_MUST_CHECK;

/* Any value in that form. */
sifr_status config_json_text(const json_t *value, char **out, sifr_error *error) SIFR_MUST_CHECK;

/* The effective config into a file (through a base_writer). */
sifr_status config_save(const sifr_config *config, const char *path,
                        sifr_error *error) SIFR_MUST_CHECK;

/* The flags that the table makes, for the program's option parser and its --help. */
/* Under which heading --help has a flag. */
typedef enum config_flag_group {
    CONFIG_FLAGS_RUN,    /* what to train */
    CONFIG_FLAGS_LENGTH, /* length, batch and rate */
    CONFIG_FLAGS_REPORT, /* evaluation, checkpoints and reports */
    CONFIG_FLAGS_SPEED,  /* precision, memory and speed */
    CONFIG_FLAGS_RANKS,
    CONFIG_FLAG_GROUPS
} config_flag_group;

typedef struct config_flag {
    char name[64];        /* "max-steps", without the dashes */
    const char *path;     /* the key it sets: "sifr.max_steps" */
    const char *argument; /* "N", "X", "PATH", "TEXT", "a|b"; NULL: a switch */
    bool many;            /* takes one or more arguments */
    config_flag_group group;
    const char *fallback; /* default as JSON, NULL where there is none */
    const char *doc;      /* one line */
} config_flag;

/* The flag number `index`, from 0; false behind the last one. */
bool config_flag_at(size_t index, config_flag *flag);

/* A key that `sifr plan --fit` may choose, as its row says. */
typedef enum config_fit_kind {
    CONFIG_FIT_COUNT,
    CONFIG_FIT_BYTES,
    CONFIG_FIT_SWITCH,
    CONFIG_FIT_WORD,
    CONFIG_FIT_TIER /* on disk or not */
} config_fit_kind;

typedef struct config_fit {
    const char *name; /* in the JSON */
    const char *says; /* in the text, with %s for the value, unless it is a tier */
    config_fit_kind kind;
    char directory[96]; /* of a tier: the key of the directory that it needs */
} config_fit;

/* False where the row of this path does not say so. */
bool config_fit_of(const char *path, config_fit *out);
/* The path of the key number `index`, from 0; NULL behind the last one. */
const char *config_fit_at(size_t index);

/* Sets the key of this path, and each key that gives it its value: all say the same. */
sifr_status config_choose(sifr_config *config, const char *path, const char *text,
                          sifr_error *error) SIFR_MUST_CHECK;

#endif
