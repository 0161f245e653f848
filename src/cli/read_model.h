/* Options of commands that read a model without training it. */
#ifndef CLI_READ_MODEL_H
#define CLI_READ_MODEL_H

#include "cli/options.h"
#include "infer/open_model.h"

typedef struct cli_read_model {
    const char *model, *adapter, *precision; /* precision: "fp32", "bf16", "fp16" or NULL */
    const char *device;                      /* "auto", "cpu", "cuda" or NULL: auto */
    int64_t threads;
} cli_read_model;

enum { CLI_READ_MODEL_OPTIONS = 4, CLI_EVALUATE_OPTIONS = 5 };

/* Fills options[CLI_READ_MODEL_OPTIONS]. They point into *read. */
void cli_read_model_options(cli_read_model *read, cli_option *options);
/* Also --device, for commands that evaluate: options[CLI_EVALUATE_OPTIONS]. */
void cli_evaluate_options(cli_read_model *read, cli_option *options);

/* The values of the options; without --device, `wish`. */
sifr_status cli_read_model_source(const cli_read_model *read, sifr_device wish, infer_source *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Opens their model (infer_open_model). Without --device the caller's out->device counts. */
sifr_status cli_read_model_open(const cli_read_model *read, checkpoint_model *model,
                                infer_options *out, const sifr_log *log,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
