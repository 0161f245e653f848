/* Keys of the data that only some data have a use for. */
#ifndef TRAIN_DATA_KEYS_H
#define TRAIN_DATA_KEYS_H

#include "config/config.h"
#include "model/model_config.h"

/* SIFR_USAGE for a key that is given, other than by its default, and that nothing would read: of
 * what a model of `task` learns, from rows to fine-tune on or not. `path`: of the data, for the
 * message. */
sifr_status train_check_data_keys(const sifr_config *config, model_task task, bool rows,
                                  const char *path, sifr_error *error) SIFR_MUST_CHECK;

#endif
