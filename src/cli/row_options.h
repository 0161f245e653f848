/* How rows to fine-tune on are read: the options that every command on rows shares with sifr train.
 */
#ifndef CLI_ROW_OPTIONS_H
#define CLI_ROW_OPTIONS_H

#include "cli/options.h"
#include "sifr/config.h"

enum { CLI_ROW_OPTIONS = 12 };

/* Start with {0}. */
typedef struct cli_rows {
    cli_list fields, ignored, roles, eot_tokens;
    const char *type, *train_on, *eos, *eot, *template, *variables, *date;
    bool skip_bad_rows;
} cli_rows;

/* Puts CLI_ROW_OPTIONS options at `options`: data-type, data-fields, ignore-fields, train-on,
 * roles-to-train, train-on-eos, train-on-eot, eot-tokens, skip-bad-rows, chat-template,
 * chat-template-kwargs, chat-template-date. */
void cli_row_options(cli_rows *rows, cli_option *options);

/* Sets the keys of the options that are given. SIFR_USAGE for a wrong value. */
sifr_status cli_rows_configure(const cli_rows *rows, sifr_config *config,
                               sifr_error *error) SIFR_MUST_CHECK;

void cli_rows_free(cli_rows *rows);

#endif
