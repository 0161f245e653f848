/* Options of commands that read a model without training it. */
#ifndef CLI_READ_FLAGS_H
#define CLI_READ_FLAGS_H

#include "cli/options.h"

typedef struct cli_read_flags {
    const char *model, *adapter, *precision; /* precision: "fp32", "bf16", "fp16" or NULL */
    const char *device;                      /* "auto", "cpu", "cuda" or NULL: auto */
    int64_t threads;
} cli_read_flags;

enum { CLI_READ_OPTIONS = 4, CLI_EVALUATE_OPTIONS = 5 };

/* Fills options[CLI_READ_OPTIONS]. They point into *read. */
void cli_read_options(cli_read_flags *read, cli_option *options);
/* Also --device, for commands that evaluate: options[CLI_EVALUATE_OPTIONS]. */
void cli_evaluate_options(cli_read_flags *read, cli_option *options);

#endif
