/* What a run trains its model for, and the form of its data that follows from it. */
#ifndef TRAIN_RUN_TASK_H
#define TRAIN_RUN_TASK_H

#include "config/config.h"
#include "data/data.h"
#include "engine/handle.h"

/* Where --model is an adapter folder: its base becomes the model, and the folder the adapter to go
 * on from. After config_resolve, which is carried out anew. */
sifr_status train_take_base(sifr_config *config, int64_t world_size,
                            sifr_error *error) SIFR_MUST_CHECK;

/* The adapters that a config asks for, by its own keys or those of the adapter that it names;
 * zeroed where it asks for none. */
sifr_status train_read_lora(const sifr_config *config, model_lora *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE for adapters, and weights in 4 bits, that no run of the config would have. An adapter
 * folder that is not here is not looked into. */
sifr_status train_check_adapters(const sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;

/* Opens the model folder for the config's task. Where that takes a new head, its labels are the
 * config's, else those that the training data have. `lora`, of the same config, must outlive *out.
 */
sifr_status train_open_folder(const sifr_config *config, const model_lora *lora, engine_folder *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Of what is only planned: a model that is neither a folder nor known by name is refused with the
 * nearest name. */
sifr_status train_check_name(const char *model, sifr_error *error) SIFR_MUST_CHECK;

/* Reads config.json alone, for the config's task, as it would be opened: for plans. A head that is
 * made for labels that neither config nor data name has those of config.json, two by default. */
sifr_status train_read_model_config(const sifr_config *config, const model_lora *lora,
                                    model_config *out, sifr_error *error) SIFR_MUST_CHECK;

/* How a model's data are read: `columns` are those that the user names. `options` gets `labelled`
 * where they are rows of examples, and a mask_probability where they are masked. */
void train_data_form(const engine_folder *folder, int64_t length, const data_label_columns *columns,
                     double mask_probability, data_labelled *labelled, data_set_options *options);

/* What `options` need where their paths are rows to fine-tune on. */
typedef struct train_chat_form {
    data_chat_options options;
    data_chat_source *sources;
    char template[BASE_PATH_LENGTH];
} train_chat_form;

/* The chat template that a config gives in place of the model folder's, else that of the adapter
 * that it goes on from, whose path goes to `path`; NULL: neither. */
const char *train_chat_template(const sifr_config *config, char path[BASE_PATH_LENGTH]);
/* The config's key that is for rows of messages alone: of the template, its variables or their
 * turns, whichever is given; NULL: none. */
const char *train_chat_template_key(const sifr_config *config);

/* Whether the paths are files of rows, or directories of such, by their names. SIFR_USAGE where
 * only some are. */
sifr_status train_paths_are_rows(const char *const *paths, size_t count, bool *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE for packing or grouping of data that are no rows to fine-tune on, for both, and for
 * either beside joined texts. */
sifr_status train_check_packing(const sifr_config *config, const model_config *model,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Where the model predicts the next token and the paths of `options` are rows, has them read as the
 * config says. *form, which train_chat_form_free frees, must outlive the call of data_set_open.
 */
sifr_status train_chat_form_make(const engine_folder *folder, int64_t length,
                                 const sifr_config *config, data_set_options *options,
                                 train_chat_form *form, sifr_error *error) SIFR_MUST_CHECK;
/* A source for each path: of the dataset where the paths are the config's own, else as data_type
 * and data_fields say. The caller frees *out. */
sifr_status train_chat_sources_make(const sifr_config *config, const char *const *paths,
                                    size_t count, data_chat_source **out,
                                    sifr_error *error) SIFR_MUST_CHECK;
/* What the config says of all sources: what is learned of a row, and how rows are cut. */
sifr_status train_chat_choices(const sifr_config *config, data_chat_options *out,
                               sifr_error *error) SIFR_MUST_CHECK;
void train_chat_form_free(train_chat_form *form); /* harmless on a zeroed one */

/* The columns that a config names. */
data_label_columns train_config_columns(const sifr_config *config);

#endif
