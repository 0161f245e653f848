#include "cli/launch/launcher_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static const char shared_memory[] = "/dev/shm";

/* Open MPI's settings, as variables: what the user has set stays. The first is the launcher's, the
 * second that of the ranks. */
static const char *folder_variable(bool orte) {
    return orte ? "OMPI_MCA_orte_tmpdir_base" : "PRTE_MCA_prte_tmpdir_base";
}

static const char *memory_variable(bool orte) {
    return orte ? "OMPI_MCA_btl_vader_backing_directory" : "OMPI_MCA_btl_sm_backing_directory";
}

/* A path too long for a session is no reason to warn: the launcher has its own limits. */
static void make(const char *name, const char *base, cli_session *out) {
    sifr_error error;
    if (cli_session_make(base, out, &error) != SIFR_FAILED) return;
    fprintf(stderr,
            "sifr %s: warning: %s; what the launcher keeps in its own folder instead stays there "
            "if it is killed\n",
            name, error.message);
}

void cli_launcher_files_make(const char *name, const cli_launcher *launcher,
                             const cli_launch_choice *choice, cli_launcher_files *out) {
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = "/tmp";
    *out = (cli_launcher_files){.orte = launcher->orte};
    if (launcher->kind != COMM_OPEN_MPI || choice->hosts) return;
    cli_session_clean(base);
    cli_session_clean(shared_memory);
    if (!getenv(folder_variable(out->orte))) make(name, base, &out->folder);
    if (!getenv(memory_variable(out->orte)) && !comm_shared_memory_is_small(choice->ranks))
        make(name, shared_memory, &out->memory);
}

static void hand_over(const cli_session *session, const char *variable) {
    if (!session->path[0]) return;
    setenv(variable, session->path, 0);
    fcntl(session->lock, F_SETFD, 0);
}

void cli_launcher_files_hand_over(const cli_launcher_files *files) {
    const char *memory = memory_variable(files->orte);
    hand_over(&files->folder, folder_variable(files->orte));
    hand_over(&files->memory, memory);
    /* Small shared memory: see comm_mpi_prepare_environment. */
    if (!files->memory.path[0]) hand_over(&files->folder, memory);
}

void cli_launcher_files_remove(cli_launcher_files *files) {
    cli_session_remove(&files->folder);
    cli_session_remove(&files->memory);
}
