/* The ranks of this host that the same launcher started, as /proc shows them: without MPI and
 * without their help. */
#ifndef COMM_SIBLINGS_H
#define COMM_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Says which ranks are stopped or missing, as far as that can be seen: "rank 1 (process 4711) is
 * stopped". Where all of this host are well, the missing ones are elsewhere. True: this rank is the
 * one of its host that should speak. */
bool comm_siblings_describe(char *out, size_t capacity);

/* Whether this program runs here as a lower rank of the same variables, begun within two seconds of
 * this process: so whatever set them started both. None is seen where they are left over. */
bool comm_siblings_lower(void);

#endif
