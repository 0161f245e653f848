#include "cli/launch/launch_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"

enum { WORDS = 48 }; /* more than a launcher's own options */

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The file name that a path resolves to, "" where it leads nowhere. */
static void resolve(const char *path, char out[BASE_PATH_LENGTH]) {
    char *resolved = realpath(path, NULL);
    snprintf(out, BASE_PATH_LENGTH, "%s", resolved ? last_part(resolved) : "");
    free(resolved);
}

bool cli_launcher_passes_sigterm(void) {
    return comm_mpi_built() == COMM_MPICH;
}

comm_mpi_kind cli_launcher_kind(const char *path) {
    static const struct {
        const char *part;
        comm_mpi_kind kind;
    } names[] = {{"orterun", COMM_OPEN_MPI},
                 {"prterun", COMM_OPEN_MPI},
                 {"openmpi", COMM_OPEN_MPI},
                 {"hydra", COMM_MPICH},
                 {"mpich", COMM_MPICH}};
    char name[BASE_PATH_LENGTH];
    resolve(path, name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(name, names[i].part)) return names[i].kind;
    return COMM_OTHER_MPI;
}

/* Is `path` a launcher that may belong to `kind`? One of another kind goes into *other. */
static bool fits(const char *path, comm_mpi_kind kind, cli_launcher *out, cli_launcher *other) {
    char resolved[BASE_PATH_LENGTH];
    if (!base_is_file(path) || access(path, X_OK) != 0) return false;
    comm_mpi_kind found = cli_launcher_kind(path);
    out->kind = found == COMM_OTHER_MPI ? kind : found;
    resolve(path, resolved);
    out->orte = strstr(resolved, "orterun") != NULL;
    if (kind == COMM_OTHER_MPI || out->kind == kind) return true;
    if (!other->path[0]) *other = *out;
    return false;
}

/* In each folder of PATH: as Debian calls them where both are there, then as everybody does. */
static bool find_in_path(comm_mpi_kind kind, cli_launcher *out, cli_launcher *other) {
    const char *names[] = {kind == COMM_MPICH ? "mpirun.mpich" : "mpirun.openmpi", "mpirun",
                           "mpiexec"};
    const char *list = getenv("PATH");
    for (const char *at = list ? list : ""; *at;) {
        size_t length = strcspn(at, ":");
        for (size_t i = 0; length && i < sizeof names / sizeof *names; i++) {
            int used = snprintf(out->path, sizeof out->path, "%.*s/%s", (int)length, at, names[i]);
            if (used < BASE_PATH_LENGTH && fits(out->path, kind, out, other)) return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

sifr_status cli_launcher_find(comm_mpi_kind kind, cli_launcher *out, sifr_error *error) {
    cli_launcher other = {.path = ""};
    if (kind == COMM_NO_MPI)
        return base_fail(error, SIFR_USAGE,
                         "--ranks: this sifr was built without MPI: install libopenmpi-dev and "
                         "openmpi-bin and build it again");
    if (find_in_path(kind, out, &other)) return SIFR_OK;
    const char *package = kind == COMM_MPICH ? "mpich" : "openmpi-bin";
    if (other.path[0])
        return base_fail(error, SIFR_USAGE,
                         "--ranks: %s starts ranks of %s, and this sifr was built with %s: install "
                         "%s",
                         other.path, comm_mpi_name(other.kind), comm_mpi_name(kind), package);
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
