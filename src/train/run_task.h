/* What a run trains its model for, and the form of its data that follows from it. */
#ifndef TRAIN_RUN_TASK_H
#define TRAIN_RUN_TASK_H

#include "config/config.h"
#include "engine/handle.h"
#include "train/data/data.h"

/* Opens the model folder for the config's task. Where that takes a new head, its labels are the
 * config's, else those that the training data have. */
sifr_status train_open_folder(const sifr_config *config, engine_folder *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Reads config.json alone, for the config's task, as it would be opened: for plans. A head that is
 * made for labels that neither config nor data name has those of config.json, two by default. */
sifr_status train_read_model_config(const sifr_config *config, model_config *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* How a model's data are read: `columns` are those that the user names. `options` gets `labelled`
 * where they are rows of examples, and a mask_probability where they are masked. */
void train_data_form(const engine_folder *folder, int64_t length,
                     const train_label_columns *columns, double mask_probability,
                     train_labelled *labelled, train_data_options *options);

/* The columns that a config names. */
train_label_columns train_config_columns(const sifr_config *config);

#endif
