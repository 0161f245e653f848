/* What the choice of an MPI means for those who start ranks. */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/launcher.h"
#include "comm/mpi_library/mpi_choice.h"
#include "comm/mpi_library/mpi_library.h"

comm_mpi_kind comm_mpi_chosen(void) {
    mpi_choice choice;
    mpi_library mpi;
    if (mpi_choose(&choice, NULL) != SIFR_OK || !choice.count) return COMM_NO_MPI;
    if (choice.count == 1) return choice.kinds[0];
    if (!choice.launched) return COMM_OTHER_MPI;
    return mpi_library_open(&mpi, NULL) == SIFR_OK ? mpi.kind : COMM_NO_MPI;
}

/* The library's plug-ins lie in openmpi beside it, or Debian's openmpi/lib/openmpi3; one that has
 * them built in shows none. */
bool comm_mpi_lacks_pmi(void) {
    char real[PATH_MAX], pattern[PATH_MAX + 64];
    mpi_library mpi;
    if (mpi_library_open(&mpi, NULL) != SIFR_OK || mpi.kind != COMM_OPEN_MPI ||
        !realpath(mpi.path, real))
        return false;
    char *end = strrchr(real, '/');
    if (!end) return false;
    *end = '\0';
    snprintf(pattern, sizeof pattern, "%s/openmpi{,/lib/openmpi}*/mca_pmix_*.so", real);
    glob_t found;
    if (glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &found) != 0) return false;
    bool lacks = found.gl_pathc > 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/');
        if (strcmp(name, "/mca_pmix_s1.so") == 0 || strcmp(name, "/mca_pmix_s2.so") == 0)
            lacks = false;
    }
    globfree(&found);
    return lacks;
}
