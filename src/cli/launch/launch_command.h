/* The command line that starts ranks: the launcher of the MPI that the ranks will open, its
 * options, and the program again. */
#ifndef CLI_LAUNCH_COMMAND_H
#define CLI_LAUNCH_COMMAND_H

#include <stdbool.h>

#include "base/errors.h"
#include "base/file.h"
#include "comm/launcher.h"
#include "comm/launcher_programs.h"

/* Set to 1 in ranks that sifr itself started. */
#define CLI_LAUNCHED "SIFR_LAUNCHED"

/* Whether the launcher of sifr's MPI passes SIGTERM on and waits: MPICH's does, and ends ranks with
 * SIGKILL when one is lost; other signals, which Open MPI's passes on, would end it. */
bool cli_launcher_passes_sigterm(void);

typedef comm_launcher_program cli_launcher;

/* Opens the MPI, and finds the first launcher of PATH that belongs to it. SIFR_USAGE or SIFR_FAILED
 * where one of both is not there; the message says what is there instead. */
sifr_status cli_launcher_find(cli_launcher *out, sifr_error *error) SIFR_MUST_CHECK;

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
