/* What a run learns: a row for each objective, in a file of its own. The rest of the training loop
 * asks the run's row, and names no objective. What is NULL or 0 in a row is not there. */
#ifndef TRAIN_OBJECTIVES_H
#define TRAIN_OBJECTIVES_H

#include <jansson.h>

#include "config/config.h"
#include "data/data.h"
#include "engine/handle.h"
#include "model/model_objective.h"
#include "train/evaluate/measure.h"

struct train_state;

/* Of an objective, at most: keys of the config, and numbers beside the loss. */
enum { TRAIN_KEYS = 8, TRAIN_MEASURES = 10 };

typedef struct train_objective {
    unsigned tasks; /* bits 1 << model_task: the models that learn it */
    /* Its section of the config, which is also the name of its fact in checkpoints; NULL: it is
     * what models of its tasks learn where no objective is asked for. */
    const char *key;

    /* --- the config --- */
    const char *keys[TRAIN_KEYS]; /* paths of the section's keys */
    const char *file;             /* of them, that of the file that targets are read from */
    bool (*asked)(const sifr_config *config);
    /* SIFR_USAGE for keys that do not go with it. */
    sifr_status (*check)(const sifr_config *config, sifr_error *error);
    /* The model's part, with its numbers. */
    sifr_status (*choose)(const sifr_config *config, model_objective *out, sifr_error *error);
    /* Whether the model's dropout and the adapters' is off, and what is said where there is some.
     */
    bool (*undropped)(const sifr_config *config);
    const char *says_undropped;
    const char *says; /* at the start of each run and loop; NULL: nothing */

    /* --- the data --- */
    bool chats; /* the data may be rows to fine-tune on */
    bool pairs; /* rows have a chosen and a rejected answer: two sequences for a loss */
    const char *unasked, *unfit; /* of pairs: "data: …" where it is not asked for, and "key: …" of
                                    other rows */
    const char *sample;          /* what a sequence is called: "answer" */
    void (*form)(const sifr_config *config, data_chat_options *options);
    /* How data that are no rows to fine-tune on are read. `labelled` outlives the options. */
    void (*read)(const data_labelled *labelled, double mask_probability, data_set_options *options);
    /* Opens what targets are made from, once the data are open and the engine has its first weights
     * or those of a checkpoint. All ranks call it. */
    sifr_status (*open)(struct train_state *t, sifr_error *error);

    /* --- checkpoints --- */
    /* The fact under `key`. */
    void (*describe)(const model_objective *objective, bool undropped, char *out, size_t size);
    /* Facts of labels, behind the others; false where memory ran out. */
    bool (*put_labels)(const engine_folder *folder, json_t *must_match);

    /* --- metrics --- */
    const char *measures[TRAIN_MEASURES]; /* keys; those of evaluations begin with "eval_" */
    const char *shown;                    /* the name of measure `shows` in progress lines */
    int shows;
    bool perplexity; /* e^loss means something */
    /* Of the step that is done, in the order of `measures`; NULL: they are of evaluations alone,
     * and metrics.csv has them in every run. All ranks call it. */
    sifr_status (*measure)(struct train_state *t, double *out, sifr_error *error);
    const train_measure *evaluated; /* of an evaluation, beside its loss */
} train_objective;

/* All of them; the first that is asked for counts. */
#define TRAIN_OBJECTIVES(ROW)                                                                      \
    ROW(train_preference)                                                                          \
    ROW(train_distil)                                                                              \
    ROW(train_own_loss)                                                                            \
    ROW(train_next_token)                                                                          \
    ROW(train_masked)                                                                              \
    ROW(train_classes)
#define TRAIN_OBJECTIVE_DECLARED(row) extern const train_objective row;
TRAIN_OBJECTIVES(TRAIN_OBJECTIVE_DECLARED)

/* The objective that a config asks for by a section of its own; NULL: none. */
const train_objective *train_objective_asked(const sifr_config *config);

/* What a run of the config learns with a model for `task`. */
const train_objective *train_objective_of(const sifr_config *config, model_task task);
/* What models for `task` learn where the config asks for nothing else. */
const train_objective *train_objective_for(model_task task);

/* The model's part of what the config asks for. SIFR_USAGE where it asks for two objectives. */
sifr_status train_objective_choose(const sifr_config *config, model_objective *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE where it compares pairs and a micro batch of so many sequences is not whole pairs. */
sifr_status train_objective_check_sequences(const sifr_config *config, int64_t sequences,
                                            sifr_error *error) SIFR_MUST_CHECK;

/* Whether the config has dropout off for its objective. */
bool train_objective_undropped(const sifr_config *config);

/* How rows to fine-tune on are cut for the config's objective. */
void train_objective_form(const sifr_config *config, data_chat_options *options);

/* SIFR_USAGE for pairs of answers that the objective does not learn from, and for other rows where
 * it needs pairs. */
sifr_status train_objective_check_data(const train_objective *objective, const data_set *data,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* How many numbers it has of each step. */
int train_objective_measures(const train_objective *objective);

/* The name of column number `column` that metrics.csv has behind the common ones, in runs of `own`
 * (NULL: of none that measures steps); NULL: there is no more. */
const char *train_objective_column(const train_objective *own, size_t column, char out[64]);

/* Likewise, the keys that the history of a run may have of its steps and evaluations. */
const char *train_objective_history(size_t key, char out[64]);

/* Opens a file of scores for the targets. All ranks call it. */
sifr_status train_objective_scores(struct train_state *t, data_set *data, data_set_use use,
                                   const char *path, sifr_error *error) SIFR_MUST_CHECK;

#endif
