#include "comm/mpi_library/mpi_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "comm/launcher_environment.h"
#include "comm/launcher_programs.h"
#include "comm/mpi_library/mpi_load.h"
#include "comm/mpi_library/mpi_places.h"

static const char *const setting = "SIFR_MPI";

static comm_mpi_kind other_of(comm_mpi_kind kind) {
    return kind == COMM_OPEN_MPI ? COMM_MPICH : COMM_OPEN_MPI;
}

static void take(mpi_choice *out, comm_mpi_kind kind, const char *why) {
    out->kinds[out->count++] = kind;
    snprintf(out->why, sizeof out->why, "%s", why);
}

/* The kind that a library's name tells; COMM_OTHER_MPI: either. */
static comm_mpi_kind kind_of_file(const char *path) {
    char *real = realpath(path, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL, *name = slash ? slash : path;
    comm_mpi_kind kind = strstr(name, "libmpi.so.40")   ? COMM_OPEN_MPI
                         : strstr(name, "libmpi.so.12") ? COMM_MPICH
                         : strstr(name, "libmpich.so")  ? COMM_MPICH
                                                        : COMM_OTHER_MPI;
    free(real);
    return kind;
}

static sifr_status take_setting(mpi_choice *out, const char *word, sifr_error *error) {
    comm_mpi_kind kind = strcmp(word, "openmpi") == 0 ? COMM_OPEN_MPI
                         : strcmp(word, "mpich") == 0 ? COMM_MPICH
                                                      : COMM_OTHER_MPI;
    if (strchr(word, '/')) {
        kind = kind_of_file(word);
        if (snprintf(out->path, sizeof out->path, "%s", word) >= BASE_PATH_LENGTH)
            return base_fail(error, SIFR_USAGE, "%s: the path is too long", setting);
    } else if (kind == COMM_OTHER_MPI && strcmp(word, "off") != 0) {
        return base_fail(
            error, SIFR_USAGE,
            "%s=%s: give openmpi, mpich, off, or the path of an MPI library (with a /)", setting,
            word);
    }
    if (out->path[0] || kind != COMM_OTHER_MPI) take(out, kind, setting);
    snprintf(out->why, sizeof out->why, "%s", setting);
    return SIFR_OK;
}

static bool is_same_file(const char *a, const char *b) {
    char *x = realpath(a, NULL), *y = realpath(b, NULL);
    bool same = x && y && strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

/* Two MPIs in a process would answer each other's calls. */
static sifr_status take_loaded(mpi_choice *out, comm_mpi_kind kind, const char *path,
                               sifr_error *error) {
    bool other =
        out->path[0] ? !is_same_file(out->path, path) : out->count > 0 && out->kinds[0] != kind;
    if (out->why[0] && out->count > 0 && other)
        return base_fail(error, SIFR_USAGE,
                         "%s=%s: this process has loaded %s already; unset %s, or load no MPI "
                         "before sifr does",
                         setting, getenv(setting), path, setting);
    if (out->why[0] && out->count == 0) return SIFR_OK; /* off */
    out->count = 0;
    take(out, kind, "what is loaded already");
    snprintf(out->path, sizeof out->path, "%s", path);
    return SIFR_OK;
}

static void take_both(mpi_choice *out, comm_mpi_kind first, const char *why) {
    take(out, first, why);
    take(out, other_of(first), why);
}

/* srun serves both, each by its own plug-in: PMIx, or PMI. */
static void take_srun(mpi_choice *out, comm_mpi_kind in_path) {
    bool pmi = getenv("PMI_RANK") || getenv("PMI_SIZE");
    comm_mpi_kind first = getenv("PMIX_RANK")         ? COMM_OPEN_MPI
                          : pmi                       ? COMM_MPICH
                          : in_path == COMM_OTHER_MPI ? COMM_OPEN_MPI
                                                      : in_path;
    take_both(out, first, "");
}

/* The variable that one MPI's launchers alone set; NULL: none. */
static const char *launcher_variable(comm_mpi_kind *kind) {
    static const struct {
        const char *name;
        comm_mpi_kind kind;
    } sizes[] = {{"OMPI_COMM_WORLD_SIZE", COMM_OPEN_MPI},
                 {"PMI_SIZE", COMM_MPICH},
                 {"MV2_COMM_WORLD_SIZE", COMM_MPICH}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool pmi = strcmp(sizes[i].name, "PMI_SIZE") == 0;
        if (comm_environment_number(sizes[i].name, 1) < 1 || (pmi && comm_started_by_srun()))
            continue;
        *kind = sizes[i].kind;
        return sizes[i].name;
    }
    return NULL;
}

sifr_status mpi_choose(mpi_choice *out, sifr_error *error) {
    comm_launcher_program program;
    comm_mpi_kind loaded, started = COMM_OTHER_MPI;
    char path[BASE_PATH_LENGTH];
    const char *word = getenv(setting), *variable = launcher_variable(&started);
    *out = (mpi_choice){.launched = variable || comm_started_by_srun()};
    if (word && *word) BASE_TRY(take_setting(out, word, error));
    if (mpi_find_loaded(&loaded, path)) return take_loaded(out, loaded, path, error);
    if (out->why[0]) return SIFR_OK;
    bool found = !variable && comm_launcher_first(&program);
    if (variable)
        take(out, started, variable);
    else if (out->launched)
        take_srun(out, found ? program.kind : COMM_OTHER_MPI);
    else if (found)
        take(out, program.kind, program.path);
    else
        take_both(out, COMM_OPEN_MPI, "");
    return SIFR_OK;
}

bool mpi_choice_place(const mpi_choice *choice, comm_mpi_kind kind, char out[BASE_PATH_LENGTH]) {
    comm_launcher_program program, other;
    base_assert(kind == COMM_OPEN_MPI || kind == COMM_MPICH);
    if (choice->launched && comm_mpi_beside_parents(kind, out)) return true;
    return comm_launcher_search(kind, &program, &other) && comm_mpi_beside(kind, program.path, out);
}
