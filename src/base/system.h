/* The machine as this process sees it: processors, memory and its limits. Linux's own files. */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A limit exists, but the memory in use under it could not be read: what is left is not known. */
#define BASE_UNKNOWN UINT64_MAX

typedef struct base_system {
    char cpu[128];    /* model name; "": not known */
    int cpus;         /* logical processors that this process may run on, at least 1 */
    double cpu_quota; /* processor time that a control group allows, in processors; 0: no quota */
    uint64_t memory;  /* bytes of memory in the machine; 0: not known */
    uint64_t memory_available; /* bytes that can be allocated without swapping; 0: not known */
    uint64_t memory_limit;     /* the lowest limit of the control groups; 0: none below `memory` */
    uint64_t memory_left;      /* the least that these limits leave: a limit, less what processes
                                  hold and the kernel cannot reclaim; 0: no limit; BASE_UNKNOWN */
    uint64_t process_left;     /* the least that the process's own limits leave (RLIMIT_DATA,
                                  RLIMIT_AS, which count mapped memory, touched or not); 0: no
                                  limit; BASE_UNKNOWN */
} base_system;

/* Cannot fail, and allocates nothing. Figures that the system does not report are "", 0 or
 * BASE_UNKNOWN. */
void base_system_read(base_system *out);

#endif
