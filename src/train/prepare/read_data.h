/* Opening of data for those that read a model without training it: as a run reads it. */
#ifndef TRAIN_READ_DATA_H
#define TRAIN_READ_DATA_H

#include "checkpoint/model_source.h"
#include "config/config.h"
#include "data/data.h"

/* Opens options->paths with the model's tokenizer, and sets the options that follow from the model.
 * `config`: how rows are read and learned from. Text is tokenised into a temporary store, whose
 * files are removed as soon as they are mapped. */
sifr_status train_read_data(const checkpoint_model *model, int64_t length,
                            const sifr_config *config, data_set_options *options, data_set **out,
                            sifr_error *error) SIFR_MUST_CHECK;

#endif
