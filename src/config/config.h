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
#include "config/lr_schedule.h"
#include "sifr/step.h"

/* The order of each enum is the order of the spellings in the table. */
typedef enum config_optimizer_kind { CONFIG_ADAMW, CONFIG_ADAM } config_optimizer_kind;
typedef enum config_step_order {
    CONFIG_STEP_AUTO,
    CONFIG_STEP_BATCH,
    CONFIG_STEP_UNIT
} config_step_order;
typedef enum config_gradient_order {
    CONFIG_GRADIENT_TREE,
    CONFIG_GRADIENT_SEQUENTIAL
} config_gradient_order;
typedef enum config_recompute {
    CONFIG_RECOMPUTE_NONE,
    CONFIG_RECOMPUTE_UNIT,
    CONFIG_RECOMPUTE_AUTO
} config_recompute;
typedef enum config_tier { CONFIG_TIER_NONE, CONFIG_TIER_CPU, CONFIG_TIER_NVME } config_tier;
typedef enum config_state_kind {
    CONFIG_STATE_ALL,
    CONFIG_STATE_MASTERS,
    CONFIG_STATE_MOMENTS
} config_state_kind;
typedef enum config_dtype { CONFIG_FP32, CONFIG_BF16, CONFIG_FP16 } config_dtype;

typedef struct config_optimizer {
    config_optimizer_kind kind;
    double lr, beta1, beta2, eps, weight_decay;
    bool bias_correction;
    bool decoupled; /* true: AdamW; false: weight decay is added to the gradient (L2) */
} config_optimizer;

/* tile_tokens is a multiple of this: DEVICE_TOKEN_CHUNK, which config may not include. */
enum { CONFIG_TOKEN_CHUNK = 1024 };

/* Operations that can be logged; in the order of comm_operation. */
typedef enum config_operation {
    CONFIG_ALL_GATHER,
    CONFIG_REDUCE_SCATTER,
    CONFIG_CONTROL,
    CONFIG_OPERATIONS
} config_operation;

/* `operations`: bit 1 << config_operation for each that is logged. */
typedef struct config_comms_logger {
    bool enabled, verbose;
    uint32_t operations;
} config_comms_logger;

/* DeepSpeed's "fp16" section. */
typedef struct config_fp16 {
    bool enabled;
    double loss_scale; /* fixed; 0: dynamic, as the rest says */
    int64_t initial_scale_power, loss_scale_window, hysteresis;
    bool consecutive_hysteresis;
    double min_loss_scale;
} config_fp16;

/* DeepSpeed's offload_optimizer, with sub_group_size, and its "aio" section. Counts of 0 are worked
 * out from the model. */
typedef struct config_offload_optimizer {
    config_tier device;
    config_state_kind state; /* what of the state that is */
    const char *nvme_path;   /* as given; NULL where not */
    int64_t sub_group_size, buffer_count;
    bool pin_memory, pipeline_read, pipeline_write;
    double ratio; /* share of the state that is offloaded */
} config_offload_optimizer;

/* DeepSpeed's offload_param. */
typedef struct config_offload_param {
    config_tier device;
    const char *nvme_path; /* as given; NULL where not */
    int64_t buffer_count, buffer_size, max_in_cpu;
    bool pin_memory;
} config_offload_param;

typedef struct config_aio {
    int64_t block_size, queue_depth, intra_op_parallelism;
    bool single_submit, overlap_events;
} config_aio;

/* DeepSpeed's activation_checkpointing, and what bounds "recompute": "auto". */
typedef struct config_activations {
    int64_t activation_memory;  /* bytes; 0: not given, what the machine leaves */
    int64_t number_checkpoints; /* 0: every unit's input */
    int64_t tile_tokens;        /* 0: all at once */
    bool profile;
    bool partition_activations; /* there is nothing to split */
    bool cpu_checkpointing;     /* where devices have memory of their own */
} config_activations;

typedef struct config_setting config_setting; /* one key's value and where it came from */

typedef struct sifr_config {
    /* DeepSpeed's keys. train_batch_size = micro_batch_size x gradient_accumulation_steps x
     * world_size, in sequences. */
    int64_t train_batch_size, micro_batch_size, gradient_accumulation_steps, world_size;
    double gradient_clipping; /* global L2 norm; 0: off */
    int64_t steps_per_print;  /* 0: not given */
    bool wall_clock_breakdown, memory_breakdown;
    config_comms_logger comms_logger;
    bool bf16;                       /* bf16 parameters beside fp32 masters */
    config_fp16 fp16;                /* the same in fp16; neither: fp32 */
    bool bf16_masters, bf16_moments; /* where bf16: no masters beside, moments in bf16 too */
    config_dtype grad_accum_dtype;
    int64_t zero_stage;
    sifr_zero_options zero;
    config_offload_optimizer offload_optimizer;
    config_offload_param offload_param;
    config_aio aio;
    config_dtype communication_data_type;
    config_optimizer optimizer;
    config_lr_schedule schedule; /* total_num_steps is 0 until known where it is "auto" */

    /* The "sifr" section and the flags. Paths are as given; NULL where not given. */
    const char *model, *output, *eval_data;
    const char *const *data; /* data_count files, directories or globs */
    size_t data_count;
    const char *const *freeze; /* freeze_count globs over names of weights */
    size_t freeze_count;
    int64_t seq_length; /* tokens; 0: not given, the model's own maximum */
    bool no_special_tokens;
    int64_t max_steps; /* 0: not given, num_train_epochs counts */
    double num_train_epochs;
    uint64_t seed;
    int64_t logging_steps;    /* a record of the metrics each so many steps */
    int64_t eval_steps;       /* 0: at the end only, where eval_data is given */
    int64_t max_eval_windows; /* 0: all */
    int64_t save_steps;       /* 0: at the end only */
    int64_t save_total_limit; /* checkpoints kept; 0: all */
    bool resume;
    config_step_order step_order;
    config_gradient_order gradient_order;
    config_recompute recompute;
    config_activations activations;
    config_tier offload_gradients;
    config_tier offload_activations;
    const char *nvme_path;           /* of the activations, as given; NULL where not */
    const char *trace;               /* file of the timeline; NULL: none */
    int64_t trace_first, trace_last; /* steps of the run; 0: the second to the fourth done */
    int64_t threads;                 /* 0: one for each core that the process may use */
    const char *isa;                 /* instruction set; NULL: the best there is */
    int64_t collective_timeout;      /* seconds; 0: none */

    /* Private to config_*.c. */
    config_setting *settings; /* one for each row of the table, and one for unknown paths; all
                                 strings above point into it */
    char *name;               /* of the file, for messages */
    json_t *ignored;          /* paths of the keys that begin with "_"; NULL: none */
    const char **data_list, **freeze_list;
    bool resolved;
} sifr_config;

/* Everything at its default. On failure, as after config_free, *config is zeroed. */
sifr_status config_create(sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;
void config_free(sifr_config *config); /* harmless on a zeroed one */

/* Reads a config file: JSON, with comments (//, #, block) and trailing commas. Unknown and
 * duplicate keys, wrong types and values out of range are refused. Once for each config. */
sifr_status config_load(sifr_config *config, const char *path, sifr_error *error) SIFR_MUST_CHECK;
/* The same from memory; `name` begins the messages. */
sifr_status config_parse(sifr_config *config, const char *text, size_t size, const char *name,
                         sifr_error *error) SIFR_MUST_CHECK;

/* One flag over the file. `name` is that of the flag ("max-steps" or "max_steps"), or a key's full
 * path ("optimizer.params.lr"). `text` is as typed (counts accept 4k, 1e9); NULL for a switch. For
 * a list, the first call replaces what the file says and further calls append. */
sifr_status config_set(sifr_config *config, const char *name, const char *text,
                       sifr_error *error) SIFR_MUST_CHECK;

/* Works out everything that the file and the flags leave open and fills the fields in. May be
 * called again with another world size. */
sifr_status config_resolve(sifr_config *config, int64_t world_size,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Whether the file or a flag gives the key of this full path a value ("auto" is none). */
bool config_gives(const sifr_config *config, const char *path);

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

/* The path of the `index`-th key of the file that is ignored, since its name begins with "_"; NULL
 * behind the last one. */
const char *config_ignored(const sifr_config *config, size_t index);

/* The effective config, a new object that the caller owns: fed to config_parse it repeats
 * the run. After config_resolve. NULL when memory ran out. */
json_t *config_effective(const sifr_config *config);

/* The same without keys that are given and have no effect: two configs that train alike. */
json_t *config_acting(const sifr_config *config);

/* The effective config as text, indented, with each number in the fewest digits that read back as
 * the same; *out is the caller's to free. */
sifr_status config_text(const sifr_config *config, char **out, sifr_error *error) SIFR_MUST_CHECK;

/* The same into a file (through a base_writer). */
sifr_status config_save(const sifr_config *config, const char *path,
                        sifr_error *error) SIFR_MUST_CHECK;

/* The flags that the table makes, for the program's option parser and its --help. */
typedef struct config_flag {
    char name[64];        /* "max-steps", without the dashes */
    const char *path;     /* the key it sets: "sifr.max_steps" */
    const char *argument; /* "N", "X", "PATH", "TEXT", "a|b"; NULL: a switch */
    bool many;            /* takes one or more arguments */
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
