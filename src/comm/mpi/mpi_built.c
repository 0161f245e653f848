/* Which MPI this is. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "comm/launcher.h"

comm_mpi_kind comm_mpi_built(void) {
#if defined(OPEN_MPI)
    return COMM_OPEN_MPI;
#elif defined(MPICH)
    return COMM_MPICH;
#else
    return COMM_OTHER_MPI;
#endif
}

void comm_mpi_version(char *out, size_t size) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' '; /* MPICH sets its lines as a table */
    snprintf(out, size, "%s", text);
}
