/* A kernel that refuses what containers and file systems refuse: a seccomp filter for this process
 * and what it starts. There is no way back. */
#ifndef SUPPORT_REFUSE_CALLS_H
#define SUPPORT_REFUSE_CALLS_H

#include <stdbool.h>

enum { REFUSE_SKIPPED = 77 }; /* exit code where no filter can be had */

typedef struct refused_calls {
    int rings;   /* errno of io_uring_setup: ENOSYS of old kernels, EPERM of containers; 0: works */
    bool direct; /* opening with O_DIRECT fails with EINVAL, as some file systems have it */
} refused_calls;

/* False where the kernel, or the machine's kind, does not let it. */
bool refuse_calls(refused_calls calls);

#endif
