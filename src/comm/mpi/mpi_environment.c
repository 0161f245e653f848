/* Settings that Open MPI and MPICH read in the ranks' processes, whichever launcher started them.
 */
#include <stdlib.h>

#include "comm/launcher.h"
#include "comm/mpi/mpi_process.h"

void comm_mpi_prepare_environment(void) {
    /* Waiting must yield: the launcher does not notice every oversubscription. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    setenv("MPIR_CVAR_POLLS_BEFORE_YIELD", "1", 0);
    /* Two to three times as fast as copies by the kernel. */
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    if (comm_shared_memory_is_small(comm_launcher_local_ranks())) {
        const char *directory = getenv("TMPDIR");
        if (!directory || !*directory) directory = "/tmp";
        setenv("OMPI_MCA_btl_vader_backing_directory", directory, 0);
        setenv("UCX_POSIX_DIR", directory, 0); /* Debian's MPICH */
    }
}
