/* What a resolved config asks of the engine: for the run, and for whoever plans one. */
#ifndef TRAIN_RUN_SETTINGS_H
#define TRAIN_RUN_SETTINGS_H

#include "comm/comm.h"
#include "config/config.h"
#include "model/model_config.h"
#include "plan/search/search.h"
#include "sifr/engine.h"
#include "train/prepare/output_space.h"

/* Tokens of a sequence: the config's, else the model's own maximum. SIFR_USAGE beyond learned
 * positions; beyond other models' maximum a warning. */
sifr_status train_sequence_length(const sifr_config *config, const model_config *model,
                                  const sifr_log *log, int64_t *length,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Freezes what the config names, says how much is left to train, and groups it for the optimizer.
 * Before an engine is made of the model. SIFR_USAGE where a pattern matches no weight, or nothing
 * is left. */
sifr_status train_freeze(const sifr_config *config, sifr_model *model, const sifr_log *log,
                         sifr_error *error) SIFR_MUST_CHECK;

/* Groups the weights for the config's optimizer, and says the groups where there are several.
 * SIFR_USAGE where a group's pattern has no trained weight. */
sifr_status train_group(const sifr_config *config, sifr_model *model, const sifr_log *log,
                        sifr_error *error) SIFR_MUST_CHECK;

/* The config's settings of a step, of sequences of `length` tokens. */
sifr_settings train_step_settings(const sifr_config *config, int64_t length);

/* The same for planning, by one of those ranks: recompute "auto" stays it, with the limit that the
 * config gives, if any (plan_limit). */
plan_settings train_plan_settings(const sifr_settings *step, const comm_group *group);

/* For trying other settings than the config's, where a rank's block may take `capacity` bytes and
 * `ranks` share the host's disks: optimizer state may go to one if the config names a directory. */
plan_search train_search(const sifr_config *config, const sifr_model *model, device *dev,
                         const plan_machine *machine, int64_t capacity, const train_disk *disk,
                         int32_t ranks);

/* The id that ends a document: that of the model in `folder`, else its tokenizer's; -1, with a
 * warning, where neither has one in the vocabulary. */
sifr_status train_separator(const char *folder, const model_config *model, const sifr_log *log,
                            int64_t *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
