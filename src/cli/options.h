/* Command lines: a table of long options gives the parser, the usage text and the error lines. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "cli/commands.h"

/* What an option takes, and the type that `value` points to. */
typedef enum cli_option_kind {
    CLI_FLAG,   /* nothing: bool, set to true */
    CLI_SWITCH, /* nothing, or a word behind '=': const char *, "" where it is alone */
    CLI_TEXT,   /* const char *, into argv */
    CLI_COUNT,  /* int64_t >= 0, as base_parse_count reads it: 4096, 4k, 1e9 */
    CLI_BYTES,  /* int64_t >= 0, as base_parse_bytes reads it: 24GiB */
    CLI_NUMBER, /* double */
    CLI_LIST,   /* cli_list: one or more words, and the option may be repeated */
    CLI_GROUP   /* no option: `name` is the heading, in --help, of those that follow */
} cli_option_kind;

/* Words of argv; the array is cli_parse's, freed by cli_list_free. Start with {0}. */
typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

typedef struct cli_option {
    const char *name; /* without the dashes: "max-steps" */
    cli_option_kind kind;
    const char *argument; /* how the usage text calls the value: "N"; NULL for a flag */
    const char *help;
    void *value;   /* keeps what it holds where the option is absent: set defaults before */
    bool *given;   /* set to true where the option is there; may be NULL */
    bool required; /* absence is an error */
} cli_option;

typedef struct cli_usage {
    const char *name;     /* "doctor", "tokenizer train" */
    const char *operands; /* "PATH" or "[PATH]…" in the usage line; NULL: none are taken */
    const char *summary;  /* what the command does: a sentence or more */
    const char *example;  /* a command line that works, or several, one a line */
} cli_usage;

/* Reads argv[1…] into the options' values. True: go on. False: the run is over (help was asked for
 * and printed, or an error was), and *exit_code is what the command returns; lists are freed.
 * `operands` gets the words that belong to no option; NULL where the command takes none. */
bool cli_parse(const cli_usage *usage, const cli_option *options, size_t option_count, int argc,
               char **argv, cli_list *operands, int *exit_code);

void cli_list_free(cli_list *list);

/* Prints `sifr NAME: MESSAGE` on standard error; returns the exit code of the error. */
int cli_fail(const char *name, const sifr_error *error);
/* The same with a message of its own; returns `status`. */
int cli_fail_with(const char *name, sifr_status status, const char *format, ...) SIFR_PRINTF(3, 4);

/* For the library's log: information and warnings as lines `sifr NAME: …` on standard error. */
sifr_log cli_log(const char *name);

/* Runs the row called `name`; an unknown one is an error that names the nearest. `parent` is the
 * command above ("" for the program itself). */
int cli_run_command(const char *parent, const cli_command *commands, size_t count, int argc,
                    char **argv);

#endif
