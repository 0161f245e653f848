/* Which MPI this is. */
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The library's plug-ins lie in openmpi beside it, or Debian's openmpi/lib/openmpi3; one that has
 * them built in shows none. A function that this program does not call: the address of others may
 * be its own. */
bool comm_mpi_lacks_pmi(void) {
    Dl_info library;
    char real[PATH_MAX], pattern[PATH_MAX + 64];
    void *inner = comm_mpi_built() == COMM_OPEN_MPI ? dlsym(RTLD_DEFAULT, "opal_init") : NULL;
    if (!inner || !dladdr(inner, &library) || !library.dli_fname ||
        !realpath(library.dli_fname, real))
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
