/* How many ranks a command line asks for, and where. */
#ifndef CLI_LAUNCH_CHOICE_H
#define CLI_LAUNCH_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "cli/options.h"

/* As the options have it; texts may be NULL. */
typedef struct cli_launch_request {
    int64_t ranks;
    bool ranks_given;
    const char *hostfile, *include, *exclude; /* hostfile.h has the rules */
} cli_launch_request;

enum { CLI_LAUNCH_OPTIONS = 4, CLI_RANK_LIMIT = 4096 /* of a run */ };

/* --ranks, --hostfile, --include, --exclude, into options[CLI_LAUNCH_OPTIONS], which point into
 * *request. Returns how many. */
size_t cli_launch_options(cli_launch_request *request, cli_option *options);

typedef struct cli_launch_choice {
    int ranks;   /* of the run */
    char *hosts; /* "a:2,b:1"; NULL: this machine */
    bool launch; /* this process has to start them; else it is one of them, or the only one */
} cli_launch_choice;

/* One rank of this machine needs no launcher. In a process that a launcher started, `ranks` are the
 * launcher's, and asking for others is SIFR_USAGE. Free with cli_launch_choice_free. */
sifr_status cli_launch_choose(const cli_launch_request *request, cli_launch_choice *out,
                              sifr_error *error) SIFR_MUST_CHECK;
void cli_launch_choice_free(cli_launch_choice *choice);

#endif
