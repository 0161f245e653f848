#include "comm/mpi_library/mpi_library.h"

#include <stdio.h>
#include <string.h>

#include "comm/mpi_library/mpi_choice.h"
#include "comm/mpi_library/mpi_load.h"

/* `why` gets what was tried in vain: of several files one that is there, but cannot be used. */
static bool load_file(const char *file, mpi_library *out, sifr_error *why) {
    sifr_error failed = {.message = ""};
    char missing[BASE_PATH_LENGTH + 32];
    if (mpi_load(file, out, &failed) == SIFR_OK) return true;
    snprintf(missing, sizeof missing, "%s: cannot open ", file);
    if (!why->message[0] || strncmp(failed.message, missing, strlen(missing)) != 0) *why = failed;
    return false;
}

static bool load_kind(const mpi_choice *choice, comm_mpi_kind kind, mpi_library *out,
                      sifr_error *why) {
    char path[BASE_PATH_LENGTH];
    if (mpi_choice_place(choice, kind, path)) return load_file(path, out, why);
    for (const char *const *file = comm_mpi_files(kind); *file; file++)
        if (load_file(*file, out, why)) return true;
    return false;
}

static sifr_status fail_setting(const mpi_choice *choice, const sifr_error *why,
                                sifr_error *error) {
    return base_fail(error, SIFR_FAILED,
                     "%s: %s; give the file of Open MPI's libmpi.so.40 or of MPICH's libmpi.so.12",
                     choice->why, why->message);
}

static sifr_status fail_kind(const mpi_choice *choice, const sifr_error *why, sifr_error *error) {
    comm_mpi_kind kind = choice->count == 1 ? choice->kinds[0] : COMM_OTHER_MPI;
    if (!choice->why[0])
        return base_fail(error, SIFR_FAILED,
                         "more than one rank needs MPI, and neither Open MPI's library nor MPICH's "
                         "can be opened (%s); install %s, or set SIFR_MPI to the library's path",
                         why->message, comm_mpi_package(kind));
    return base_fail(error, SIFR_FAILED,
                     "%s means ranks of %s, whose library cannot be opened (%s); "
                     "install %s, or set SIFR_MPI to the library's path",
                     choice->why, comm_mpi_name(kind), why->message, comm_mpi_package(kind));
}

static sifr_status open_chosen(const mpi_choice *choice, mpi_library *out, sifr_error *error) {
    sifr_error why = {.message = ""};
    if (!choice->count)
        return base_fail(error, SIFR_USAGE,
                         "SIFR_MPI=off: more than one rank needs MPI; unset SIFR_MPI");
    if (choice->path[0]) {
        if (mpi_load(choice->path, out, &why) == SIFR_OK) return SIFR_OK;
        return fail_setting(choice, &why, error);
    }
    for (int i = 0; i < choice->count; i++)
        if (load_kind(choice, choice->kinds[i], out, &why)) return SIFR_OK;
    return fail_kind(choice, &why, error);
}

sifr_status mpi_library_open(mpi_library *out, sifr_error *error) {
    mpi_choice choice;
    *out = (mpi_library){.kind = COMM_NO_MPI};
    BASE_TRY(mpi_choose(&choice, error));
    sifr_status status = open_chosen(&choice, out, error);
    if (status != SIFR_OK) *out = (mpi_library){.kind = COMM_NO_MPI};
    return status;
}
