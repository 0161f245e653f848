#include "cli/launch/launch_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "comm/mpi_library/mpi_library.h"

enum { WORDS = 48 }; /* more than a launcher's own options */

bool cli_launcher_passes_sigterm(void) {
    return comm_mpi_chosen() == COMM_MPICH;
}

/* The library is opened here, where one line can say that this is not possible, and not one of each
 * rank. */
sifr_status cli_launcher_find(cli_launcher *out, sifr_error *error) {
    cli_launcher other;
    mpi_library mpi;
    sifr_error why;
    sifr_status status = mpi_library_open(&mpi, &why);
    if (status != SIFR_OK) return base_fail(error, status, "--ranks: %s", why.message);
    if (comm_launcher_search(mpi.kind, out, &other)) return SIFR_OK;
    const char *package = comm_mpi_package(mpi.kind);
    if (other.path[0])
        return base_fail(error, SIFR_USAGE,
                         "--ranks: %s starts ranks of %s, and the MPI here is %s (%s): install %s, "
                         "or let SIFR_MPI name the other one",
                         other.path, comm_mpi_name(other.kind), comm_mpi_name(mpi.kind), mpi.path,
                         package);
    return base_fail(error, SIFR_USAGE,
                     "--ranks: there is neither mpirun nor mpiexec in PATH: install %s", package);
}

static void put(cli_command_line *line, const char *word) {
    line->words[line->count++] = word;
}

static void put_two(cli_command_line *line, const char *name, const char *value) {
    put(line, name);
    put(line, value);
}

/* More ranks than cores are welcome. Each rank finds its share of the cores for itself, so none is
 * bound. */
static void put_open_mpi(cli_command_line *line, const cli_launcher *launcher, const char *hosts) {
    put(line, "--oversubscribe");
    put_two(line, "--bind-to", "none");
    if (!hosts && launcher->orte) { /* this machine only: no ssh, and no scheduler's hosts */
        put(line, "--mca");
        put_two(line, "plm", "isolated");
        put(line, "--mca");
        put_two(line, "ras", "^slurm,tm,gridengine,lsf");
    }
    if (!hosts) return;
    put_two(line, "--host", hosts);
    put_two(line, "-x", CLI_LAUNCHED);
    if (getenv("LD_LIBRARY_PATH")) put_two(line, "-x", "LD_LIBRARY_PATH");
    if (getenv("SIFR_MPI")) put_two(line, "-x", "SIFR_MPI");
}

static void put_here_mpich(cli_command_line *line) {
    put_two(line, "-rmk", "user");
    put_two(line, "-launcher", "fork");
    put_two(line, "-hosts", "localhost");
}

sifr_status cli_command_line_make(const cli_launcher *launcher, int argc, char **argv, int ranks,
                                  const char *hosts, cli_command_line *out, sifr_error *error) {
    *out = (cli_command_line){.count = 0};
    ssize_t length = readlink("/proc/self/exe", out->program, sizeof out->program - 1);
    if (length <= 0) return base_fail_errno(error, errno, "/proc/self/exe");
    out->program[length] = '\0';
    BASE_TRY(base_alloc((size_t)argc + WORDS, sizeof *out->words, &out->words, error));
    snprintf(out->ranks, sizeof out->ranks, "%d", ranks);
    put(out, launcher->path);
    put_two(out, "-n", out->ranks);
    if (launcher->kind == COMM_OPEN_MPI)
        put_open_mpi(out, launcher, hosts);
    else if (hosts)
        put_two(out, "-hosts", hosts);
    else if (launcher->kind == COMM_MPICH)
        put_here_mpich(out);
    put(out, out->program);
    for (int i = 0; i < argc; i++) put(out, argv[i]);
    put(out, NULL);
    return SIFR_OK;
}

void cli_command_line_free(cli_command_line *line) {
    free(line->words);
    *line = (cli_command_line){.count = 0};
}
