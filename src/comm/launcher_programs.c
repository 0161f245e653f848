#include "comm/launcher_programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/mpi_library/mpi_places.h"

/* The file name that a path resolves to, "" where it leads nowhere. */
static void resolve(const char *path, char out[BASE_PATH_LENGTH]) {
    char *resolved = realpath(path, NULL);
    const char *slash = resolved ? strrchr(resolved, '/') : NULL;
    snprintf(out, BASE_PATH_LENGTH, "%s", slash ? slash + 1 : "");
    free(resolved);
}

comm_mpi_kind comm_launcher_kind(const char *path) {
    static const struct {
        const char *part;
        comm_mpi_kind kind;
    } names[] = {{"orterun", COMM_OPEN_MPI},
                 {"prterun", COMM_OPEN_MPI},
                 {"openmpi", COMM_OPEN_MPI},
                 {"hydra", COMM_MPICH},
                 {"mpich", COMM_MPICH}};
    char name[BASE_PATH_LENGTH], library[BASE_PATH_LENGTH];
    resolve(path, name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(name, names[i].part)) return names[i].kind;
    if (comm_mpi_beside(COMM_OPEN_MPI, path, library)) return COMM_OPEN_MPI;
    return comm_mpi_beside(COMM_MPICH, path, library) ? COMM_MPICH : COMM_OTHER_MPI;
}

/* Whether `out` is there, and may belong to `kind`. One of another kind goes into *other. */
static bool fits(comm_mpi_kind kind, comm_launcher_program *out, comm_launcher_program *other) {
    char resolved[BASE_PATH_LENGTH];
    if (!base_is_file(out->path) || access(out->path, X_OK) != 0) return false;
    comm_mpi_kind found = comm_launcher_kind(out->path);
    out->kind = found == COMM_OTHER_MPI ? kind : found;
    resolve(out->path, resolved);
    out->orte = strstr(resolved, "orterun") != NULL;
    if (kind == COMM_OTHER_MPI || out->kind == kind) return true;
    if (!other->path[0]) *other = *out;
    return false;
}

/* In each folder of PATH: names[0], then [1] and so on. */
static bool search(const char *const *names, bool (*takes)(void *user, comm_launcher_program *),
                   void *user, comm_launcher_program *out) {
    const char *list = getenv("PATH");
    for (const char *at = list ? list : ""; *at;) {
        size_t length = strcspn(at, ":");
        for (size_t i = 0; length && names[i]; i++) {
            int used = snprintf(out->path, sizeof out->path, "%.*s/%s", (int)length, at, names[i]);
            if (used < BASE_PATH_LENGTH && takes(user, out)) return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

typedef struct wanted {
    comm_mpi_kind kind;
    comm_launcher_program *other;
} wanted;

static bool takes_kind(void *user, comm_launcher_program *program) {
    const wanted *w = user;
    return fits(w->kind, program, w->other);
}

/* As Debian calls them where both are there, then as everybody does. */
bool comm_launcher_search(comm_mpi_kind kind, comm_launcher_program *out,
                          comm_launcher_program *other) {
    const char *names[] = {kind == COMM_MPICH ? "mpirun.mpich" : "mpirun.openmpi", "mpirun",
                           "mpiexec", NULL};
    wanted w = {kind, other};
    other->path[0] = '\0';
    return search(names, takes_kind, &w, out);
}

static bool takes_known(void *user, comm_launcher_program *program) {
    comm_launcher_program other = {.path = ""};
    (void)user;
    return fits(COMM_OTHER_MPI, program, &other) && program->kind != COMM_OTHER_MPI;
}

bool comm_launcher_first(comm_launcher_program *out) {
    static const char *const names[] = {"mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich",
                                        NULL};
    return search(names, takes_known, NULL, out);
}
