/* Command lines: one table of long options defines the parser, the usage text and the errors. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "cli/commands.h"
#include "sifr/context.h"

/* The value of an option, and the type that `value` points to. */
typedef enum cli_option_kind {
    CLI_FLAG,   /* no value: bool, set to true */
    CLI_SWITCH, /* an optional word after '=': const char *, "" without it */
    CLI_TEXT,   /* const char *, into argv */
    CLI_COUNT,  /* int64_t >= 0, read by base_parse_count: 4096, 4k, 1e9 */
    CLI_BYTES,  /* int64_t >= 0, read by base_parse_bytes: 24GiB */
    CLI_NUMBER, /* double */
    CLI_LIST,   /* cli_list: one or more words, and the option may be repeated */
    CLI_GROUP   /* not an option: `name` is a heading in --help */
} cli_option_kind;

/* Words of argv. cli_parse makes the array, cli_list_free frees it. Start with {0}. */
typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

typedef struct cli_option {
    const char *name; /* without the dashes: "max-steps" */
    cli_option_kind kind;
    const char *argument; /* name of the value in the usage text: "N"; NULL for a flag */
    const char *help;
    void *value;   /* unchanged if the option is absent, so set the default first */
    bool *given;   /* set to true if the option is given; may be NULL */
    bool required; /* absence is an error */
} cli_option;

typedef struct cli_usage {
    const char *name;     /* "doctor", "tokenizer train" */
    const char *operands; /* "PATH" or "[PATH]…" in the usage line; NULL: the command takes none */
    const char *summary;  /* what the command does: a sentence or more */
    const char *example;  /* one or more command lines that work, one a line */
} cli_usage;

/* Reads argv[1…] into the options' values. False if the command should end because help or an error
 * was printed: *exit_code is then its exit code, and lists are freed. `operands` gets the words
 * that belong to no option; NULL if the command takes none. */
bool cli_parse(const cli_usage *usage, const cli_option *options, size_t option_count, int argc,
               char **argv, cli_list *operands, int *exit_code);

void cli_list_free(cli_list *list);

/* Prints `sifr NAME: MESSAGE` on standard error; returns the exit code of the error. */
int cli_fail(const char *name, const sifr_error *error);
/* The same with the given message; returns `status`. */
int cli_fail_with(const char *name, sifr_status status, const char *format, ...) SIFR_PRINTF(3, 4);

/* A log that prints information and warnings as lines `sifr NAME: …` on standard error. */
sifr_log cli_log(const char *name);

/* A context with that log; `name` is borrowed. Free it with sifr_context_free. */
sifr_status cli_context(const char *name, sifr_context **out, sifr_error *error) SIFR_MUST_CHECK;

/* Runs the command argv[1]; for an unknown one, prints an error that names the nearest. `parent` is
 * the command above ("" for the program itself). */
int cli_run_command(const char *parent, const cli_command *commands, size_t count, int argc,
                    char **argv);

#endif
