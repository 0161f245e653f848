/* What launchers leave in the environment. */
#ifndef COMM_LAUNCHER_ENVIRONMENT_H
#define COMM_LAUNCHER_ENVIRONMENT_H

#include <stdbool.h>

/* A whole number >= `least` from the environment; least - 1 if there is none. */
int comm_environment_number(const char *name, int least);

/* Whether srun itself started this rank, and not a launcher inside one of its steps. */
bool comm_started_by_srun(void);

#endif
