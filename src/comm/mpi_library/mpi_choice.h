/* Which MPI the ranks of this process use, found without opening any. In this order: what SIFR_MPI
 * says (openmpi, mpich, off, or the path of a library), the one that this process has loaded
 * already, that of the launcher that started it, that of the first launcher in PATH, what there is.
 */
#ifndef MPI_CHOICE_H
#define MPI_CHOICE_H

#include <stdbool.h>

#include "base/errors.h"
#include "base/file.h"
#include "comm/mpi_library/mpi_kind.h"

typedef struct mpi_choice {
    comm_mpi_kind kinds[2];      /* to be tried in this order */
    int count;                   /* 0: SIFR_MPI=off */
    bool launched;               /* a launcher started this process */
    char why[BASE_PATH_LENGTH];  /* what decides: "OMPI_COMM_WORLD_SIZE"; "": what there is */
    char path[BASE_PATH_LENGTH]; /* of the library; "": mpi_choice_place tells */
} mpi_choice;

/* SIFR_USAGE: SIFR_MPI has another word, or is at odds with what is loaded. */
sifr_status mpi_choose(mpi_choice *out, sifr_error *error) SIFR_MUST_CHECK;

/* The file of the library of one of the kinds, if it lies beside a launcher: what the one that
 * started this process has beside it, else the first one in PATH. False: the system's loader finds
 * it by its name. */
bool mpi_choice_place(const mpi_choice *choice, comm_mpi_kind kind, char out[BASE_PATH_LENGTH]);

#endif
