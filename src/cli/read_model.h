/* Options and opening of a model, for commands that read a model without training it. */
#ifndef CLI_READ_MODEL_H
#define CLI_READ_MODEL_H

#include "checkpoint/model_source.h"
#include "cli/options.h"
#include "infer/inference.h"

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

/* Opens the model and sets out->precision, out->threads and, for an evaluation, the device. Without
 * --device the caller's out->device counts. Where a GPU stays idle, the log says why. The default
 * precision is bf16 or fp16 if all weights are stored in that type (or would be in an export of the
 * checkpoint), otherwise fp32. Close it with checkpoint_model_close. */
sifr_status cli_read_model_open(const cli_read_model *read, checkpoint_model *model,
                                infer_options *out, const sifr_log *log,
                                sifr_error *error) SIFR_MUST_CHECK;

/* "fp32", "bf16" or "fp16". */
const char *cli_precision_name(sifr_precision precision);

/* What an evaluation ran in: "bf16", on a GPU "bf16, sm_90"; writes to and returns `out`. */
enum { CLI_RAN_IN = 64 };
const char *cli_ran_in(const infer_options *options, const infer_inference *inference,
                       char out[CLI_RAN_IN]);
const char *cli_device_name(const infer_options *options); /* "cpu" or "cuda" */

/* After an evaluation: what its device could do faster. */
void cli_say_slow(const infer_inference *inference, const sifr_log *log);

#endif
