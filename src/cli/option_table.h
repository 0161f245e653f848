/* The table of commands and options as lines of fields with tabs between: what `--help=table`
 * prints, and scripts/make-pages.sh makes the manual pages and the completion of shells of. Each
 * command prints its own part, so there is no second list.
 *
 *   commands NAME SUMMARY             a command that only has others below it; "": the program
 *   command NAME SUMMARY OPERANDS     OPERANDS is empty where it takes none
 *   about TEXT                        what the command does
 *   heading TEXT                      of the options that follow
 *   option NAME KIND ARGUMENT NEEDED TEXT
 *   example LINE
 *   exit CODE MEANING
 *
 * KIND is flag (no value), switch (an optional one, behind a =), value, or list (one or more). */
#ifndef CLI_OPTION_TABLE_H
#define CLI_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/options.h"

bool cli_table_wanted(int argc, char **argv);

/* Of a command; argv has its summary behind --help=table. */
void cli_table_print(const cli_usage *usage, const cli_option *options, size_t count, int argc,
                     char **argv);

/* Of a command that has others below it, and of all these. */
void cli_table_print_all(const char *parent, const cli_command *commands, size_t count, int argc,
                         char **argv);

#endif
