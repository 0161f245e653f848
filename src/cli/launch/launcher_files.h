/* Where Open MPI's launcher and its ranks keep their files on this machine. By themselves they use
 * /tmp and /dev/shm, and leave them there when they are killed with SIGKILL. MPICH keeps none. */
#ifndef CLI_LAUNCHER_FILES_H
#define CLI_LAUNCHER_FILES_H

#include "cli/launch/launch_choice.h"
#include "cli/launch/launch_command.h"
#include "cli/launch/session.h"

typedef struct cli_launcher_files {
    bool orte;
    cli_session folder; /* in TMPDIR or /tmp */
    cli_session memory; /* in /dev/shm, where that has room: memory that ranks share */
} cli_launcher_files;

/* Removes what killed runs left, and makes folders for this one. There are none where ranks run on
 * other hosts too (the folders would have to be there), under other MPIs, and where the user's
 * environment names folders. What fails is a warning: the launcher then uses its own places. */
void cli_launcher_files_make(const char *name, const cli_launcher *launcher,
                             const cli_launch_choice *choice, cli_launcher_files *out);

/* In the process that becomes the launcher: names the folders in its environment, and lets it hold
 * the locks too, since it may outlive its parent. */
void cli_launcher_files_hand_over(const cli_launcher_files *files);

void cli_launcher_files_remove(cli_launcher_files *files);

#endif
