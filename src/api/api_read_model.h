/* Which model is read, as callers say it in words. */
#ifndef API_READ_MODEL_H
#define API_READ_MODEL_H

#include "infer/open_model.h"

/* Options that calls which read a model have in common. NULL and 0: the default. */
typedef struct api_read_model {
    const char *model, *adapter, *precision, *device;
    int64_t threads;
} api_read_model;

/* Without a device, `wish`. SIFR_USAGE for a word that is none, and for too many threads. */
sifr_status api_read_model_source(const api_read_model *read, sifr_device wish, infer_source *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

#endif
