/* Texts that MLflow's server takes. */
#ifndef TRAIN_MLFLOW_TEXT_H
#define TRAIN_MLFLOW_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "train/send/mlflow_server.h"

/* A key of metrics, parameters or tags: what the server does not take becomes "_". */
void train_mlflow_key(const char *key, char out[TRAIN_MLFLOW_KEY + 1]);

/* At most `bytes` bytes of valid UTF-8 into out[bytes + 1]; what is longer ends with "…". */
void train_mlflow_cut(const char *text, size_t bytes, char *out);

/* A number of the spool, as the interface's JSON has it; false: it is none. */
bool train_mlflow_number(const json_t *value, char out[40]);

#endif
