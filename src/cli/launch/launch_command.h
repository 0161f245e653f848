/* The command line that starts ranks: the launcher of the MPI that this sifr was built with, its
 * options, and the program again. */
#ifndef CLI_LAUNCH_COMMAND_H
#define CLI_LAUNCH_COMMAND_H

#include <stdbool.h>

#include "base/errors.h"
#include "base/file.h"
#include "comm/launcher.h"

/* Set to 1 in ranks that sifr itself started. */
#define CLI_LAUNCHED "SIFR_LAUNCHED"

/* Whether the launcher of sifr's MPI passes SIGTERM on and waits: MPICH's does, and ends ranks with
 * SIGKILL when one is lost; other signals, which Open MPI's passes on, would end it. */
bool cli_launcher_passes_sigterm(void);

typedef struct cli_launcher {
    comm_mpi_kind kind;
    bool orte; /* Open MPI's launcher up to version 4, which has options of its own */
    char path[BASE_PATH_LENGTH];
} cli_launcher;

/* The first launcher of PATH that belongs to `kind` (COMM_OTHER_MPI: any). SIFR_USAGE where there
 * is none; the message says what is there instead. */
sifr_status cli_launcher_find(comm_mpi_kind kind, cli_launcher *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* A launcher's kind, from what its path resolves to; COMM_OTHER_MPI: it does not tell. */
comm_mpi_kind cli_launcher_kind(const char *path);

/* What execv takes; `words` ends with NULL and points into the operands, which must live on. */
typedef struct cli_command_line {
    char program[BASE_PATH_LENGTH], ranks[16];
    const char **words;
    size_t count;
} cli_command_line;

/* `sifr argv[0] argv[1] …` on `ranks` ranks: on this machine (hosts NULL), or on `hosts`,
 * "a:2,b:1". Free with cli_command_line_free, also after failure. */
sifr_status cli_command_line_make(const cli_launcher *launcher, int argc, char **argv, int ranks,
                                  const char *hosts, cli_command_line *out,
                                  sifr_error *error) SIFR_MUST_CHECK;
void cli_command_line_free(cli_command_line *line);

#endif
