/* What config_import.c and the tables of keys share; nobody else includes it. */
#ifndef CONFIG_IMPORT_PRIVATE_H
#define CONFIG_IMPORT_PRIVATE_H

#include "config/config_private.h"
#include "config/import/config_import.h"

typedef struct import_state import_state;

typedef enum import_action {
    IMPORT_COPY,    /* the value goes to `to` */
    IMPORT_FILL,    /* the same, but a value that the DeepSpeed config gives counts before it */
    IMPORT_STEPS,   /* the same as IMPORT_COPY; a share of the run (below 1) has no counterpart */
    IMPORT_SWITCH,  /* true sets `to` to `words`, which is JSON */
    IMPORT_IGNORE,  /* changes nothing here; `note` says why */
    IMPORT_EXPECT,  /* one of `words` changes nothing; others have no counterpart */
    IMPORT_NEED,    /* the same, but others would train something else: refused */
    IMPORT_REFUSE,  /* what asks for something would train something else: refused */
    IMPORT_NONE,    /* what asks for something has no counterpart; `note` says why */
    IMPORT_SPECIAL, /* `special` */
    IMPORT_LATER    /* read by import_finish */
} import_action;

typedef sifr_status import_special(import_state *s, const char *key, json_t *value);

typedef struct import_row {
    const char *from;
    import_action action;
    const char *to, *words, *note;
    import_special *special;
    bool zero_is_none; /* of REFUSE and NONE: 0 asks for nothing in the source program */
} import_row;

/* Rows of a table. */
#define IMPORT_ROW(from_, action_, ...)                                                            \
    { .from = from_, .action = IMPORT_##action_, __VA_ARGS__ }
#define COPY(from_, to_) IMPORT_ROW(from_, COPY, .to = to_)
#define FILL(from_, to_) IMPORT_ROW(from_, FILL, .to = to_)
#define STEPS(from_, to_) IMPORT_ROW(from_, STEPS, .to = to_)
#define SWITCH(from_, to_, json_) IMPORT_ROW(from_, SWITCH, .to = to_, .words = json_)
#define IGNORE(from_, why_) IMPORT_ROW(from_, IGNORE, .note = why_)
#define EXPECT(from_, why_, words_, else_)                                                         \
    IMPORT_ROW(from_, EXPECT, .to = why_, .words = words_, .note = else_)
#define NEED(from_, why_, words_, else_)                                                           \
    IMPORT_ROW(from_, NEED, .to = why_, .words = words_, .note = else_)
#define REFUSE(from_, why_) IMPORT_ROW(from_, REFUSE, .note = why_)
#define NONE(from_, why_) IMPORT_ROW(from_, NONE, .note = why_)
/* The same where the source program takes 0 for none. */
#define REFUSE_BUT_0(from_, why_) IMPORT_ROW(from_, REFUSE, .note = why_, .zero_is_none = true)
#define NONE_BUT_0(from_, why_) IMPORT_ROW(from_, NONE, .note = why_, .zero_is_none = true)
#define SPECIAL(from_, special_) IMPORT_ROW(from_, SPECIAL, .special = special_)
#define LATER(from_) IMPORT_ROW(from_, LATER, .note = NULL)

/* A key that a program's classes know; its default as JSON. */
typedef struct import_known {
    const char *key, *value;
} import_known;

typedef struct import_source {
    const char *word;    /* of --from */
    const char *name;    /* "an axolotl config" */
    const char *section; /* sections of the source that are walked too: "deepspeed_config|…" */
    const import_row *rows;
    size_t count;
    sifr_status (*begin)(import_state *s); /* refuses a file that trains nothing; NULL: none */
    sifr_status (*finish)(import_state *s);
} import_source;

struct import_state {
    json_t *out;    /* the config that is made */
    json_t *source; /* what is read */
    const import_source *kind;
    const char *name;
    config_line *say;
    void *user;
    size_t left;
    const char *tokens;       /* config_imported.tokens */
    const char *const *allow; /* keys that pass, although they would be refused */
    size_t allow_count;
    json_t *said;         /* keys that a line or a fault is about */
    json_t *unknown;      /* keys that the program does not know, or sifr */
    config_faults faults; /* what would train something else */
    sifr_error *error;
};

extern const import_source import_axolotl, import_accelerate, import_trainer, import_trl,
    import_factory, import_instruct, import_factory_v1;

/* import_known.c */
/* The program whose keys these are; says why. NULL where no program knows any of them. */
const import_source *import_find(import_state *s);
const import_source *import_by_word(const char *word); /* NULL: none has it */
const char *import_version(const import_source *source);
bool import_knows(const import_source *source, const char *key);
bool import_any_knows(const char *key); /* whether a program does */
bool import_is_default(const import_source *source, const char *key, const json_t *value);
const char *import_nearest(const import_source *source, const char *key); /* NULL: none is near */

/* import_idle.c: why a key that has no row changes no training; NULL: it may. */
const char *import_idle_reason(const char *key);

/* import_actions.c */
/* Sets a path of the config that is made; takes the reference over. */
sifr_status import_put(import_state *s, const char *path, json_t *value);
json_t *import_get(const import_state *s, const char *path); /* borrowed; NULL where none */
void import_drop(const import_state *s, const char *path);
/* Lines about a key: where it went, that it does nothing here, that it has no counterpart. */
void import_say_kept(import_state *s, const char *key, const json_t *value, const char *to);
/* config_value_text, but "…" for a token or a password, which no message shows. */
char *import_value_text(const char *key, const json_t *value, char *out, size_t size);

void import_say_idle(import_state *s, const char *key, const json_t *value, const char *why);
void import_say_left(import_state *s, const char *key, const json_t *value, const char *why);
sifr_status import_refuse(import_state *s, const char *key, const json_t *value, const char *why);
bool import_is_allowed(const import_state *s, const char *key);
bool import_is_given(const json_t *value); /* there, and not null or "" */
sifr_status import_apply(import_state *s, const import_row *row, const char *key, json_t *value);
bool import_asks(const json_t *value); /* not null, false, 0, "", "none", "no", [] or {} */
/* The same, where 0 is a value, unless the row says that it is none. */
bool import_row_asks(const import_row *row, const json_t *value);
import_special import_deepspeed; /* a DeepSpeed config by path, or as an object or text */
import_special import_kwargs;    /* lr_scheduler_kwargs, as an object or text */
import_special import_clipping;  /* a norm; 0 and less: none */

/* import_axolotl_rows.c */
import_special import_axolotl_datasets; /* files of rows with their forms; or of text */
import_special import_axolotl_tests;    /* one file that is held out */

/* import_data.c */
extern const char import_on_hub[]; /* why a name on a hub has no counterpart */
/* A file that sifr reads rows from, by its name; other names are those of data sets on a hub. */
bool import_names_file(const char *path);
import_special import_rows_file;  /* a file of rows; a name on a hub has no counterpart */
import_special import_text_field; /* the field of a row's text */
import_special import_loss_parts; /* TRL's completion_only_loss, assistant_only_loss */
import_special import_inputs_too; /* true: all tokens */
import_special import_last_only;  /* true: the assistant's last turn */
import_special import_sampling;   /* the order of rows: random, or by length */
import_special import_turn_key;   /* axolotl's, of a set alone */
/* Puts the names that are neither among `reads`, which are names here, nor those of a column of
 * `fields` into the source's ignore_fields. Lists end with NULL. */
void import_put_ignored(json_t *source, const json_t *fields, const char *const *names,
                        const char *const *reads);
/* TRL reads the columns of its dataset formats and no others: the others are left out. */
sifr_status import_ignore_as_trl(import_state *s) SIFR_MUST_CHECK;
/* Once all keys are read: `share` is the key of the share of rows that is held out. */
sifr_status import_finish_rows(import_state *s, const char *share);

/* import_turns.c: roles_to_train, train_on_eos and train_on_eot of axolotl's sets, and eot_tokens.
 */
bool import_is_turn_key(const char *name);
/* Why a set's names of roles change nothing: they are axolotl's own, or some of them; NULL: they
 * are others. */
const char *import_usual_roles(const json_t *roles);
bool import_has_turns(const import_state *s, size_t index); /* whether set `index` has messages */
sifr_status import_axolotl_turns(import_state *s);

/* import_reports.c */
import_special import_report_to; /* names of services, or one */
import_special import_logging_dir;
import_special import_use_tensorboard, import_mlflow_experiment, import_mlflow_uri,
    import_mlflow_artifacts;

/* import_script.c */
sifr_status import_begin_trainer(import_state *s);
import_special import_max_rows;           /* how many rows of each file count */
import_special import_split;              /* the name of a split, or several */
import_special import_prompt_cut;         /* max_prompt_length of earlier versions of TRL */
import_special import_script_model;       /* model_type */
import_special import_script_share;       /* validation_split_percentage, for import_script_rows */
bool import_is_part(const json_t *value); /* names of parts of splits, or one */
sifr_status import_script_rows(import_state *s); /* once all keys are read */

/* import_template.c */
import_special import_template_path;      /* a file; another tokenizer's template is refused */
import_special import_template_text;      /* the template itself */
import_special import_template_variables; /* an object */
/* Once all keys are read: chat_template and chat_template_jinja, also of single sets. */
sifr_status import_axolotl_template(import_state *s);

/* import_lora.c: adapters, once all keys are read, and what a program takes where its keys are
 * absent; 0: as PEFT does. Keys of adapters do nothing where they are off, for the reason `off`. */
typedef struct import_lora {
    bool on, all; /* all: every product is a target */
    const char *off;
    double r, alpha, alpha_by_rank, dropout;
} import_lora;
sifr_status import_finish_lora(import_state *s, const import_lora *lora);
sifr_status import_check_lora(import_state *s); /* axolotl's must have a rank and alpha */
/* Weights in 4 bits, as sifr.quantization; `doubled` where the source does not say. */
sifr_status import_finish_codes(import_state *s, bool doubled);

/* import_optimizer.c: the optimizer that `key` names as the Trainer does, once all keys are read.
 */
sifr_status import_finish_optimizer(import_state *s, const char *key);

/* import_preference.c: what is learned in place of labels, once all keys are read. */
sifr_status import_trainer_objective(import_state *s);
sifr_status import_axolotl_objective(import_state *s);
bool import_trl_prefers(const import_state *s); /* whether TRL's keys are those of pairs */

/* import_trainer.c: what axolotl shares with the Trainer, once all keys are read. `usual` is the
 * schedule where none is given. */
sifr_status import_finish_schedule(import_state *s, const char *usual);
sifr_status import_finish_trainer(import_state *s);

/* import_defaults.c: what a source takes where it leaves a key out, once all keys are read. */
sifr_status import_axolotl_defaults(import_state *s);
sifr_status import_axolotl_packed(import_state *s); /* after import_finish_rows */
sifr_status import_axolotl_long(import_state *s);   /* likewise */
sifr_status import_trainer_defaults(import_state *s);

/* import_folder.c: what the model folder has here, and is refused where it is something else. */
import_special import_model_kwargs, import_dataset_kwargs, import_special_tokens, import_eos_token,
    import_same_model, import_plugins, import_accelerator;

/* import_factory.c: LLaMA-Factory's own. */
sifr_status import_begin_factory(import_state *s);
sifr_status import_begin_factory_v1(import_state *s);
import_special import_factory_packing, import_adapter_path;
sifr_status import_factory_stage(import_state *s); /* pt or sft, once all keys are read */

/* import_factory_rows.c: names of dataset_info.json, and those of held-out rows once all keys are
 * read. */
import_special import_factory_datasets, import_factory_held_out;
sifr_status import_factory_eval(import_state *s);

/* import_factory_template.c: a template by its name, and what goes into its text. */
import_special import_factory_template, import_thinking, import_factory_system,
    import_factory_preserve;

#endif
