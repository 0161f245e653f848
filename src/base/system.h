/* The machine as this process sees it: processors, memory and its limits. Linux's own files. */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* There is a limit, but what is held under it could not be read: what it leaves is not known. */
#define BASE_UNKNOWN UINT64_MAX

typedef struct base_system {
    char cpu[128];    /* model name, "" where the system does not say */
    int cpus;         /* logical processors that this process may run on, at least 1 */
    double cpu_quota; /* processors' worth of time that a control group allows; 0: no quota */
    uint64_t memory;  /* bytes of memory in the machine; 0: not known */
    uint64_t memory_available; /* bytes that new work can take without swapping; 0: not known */
    uint64_t memory_limit;     /* the least of the control groups' limits; 0: none below `memory` */
    uint64_t memory_left;      /* the least that such a limit leaves: all of it but what processes
                                  hold and cannot be given back; 0: no limit; BASE_UNKNOWN */
    uint64_t process_left;     /* the least that this process's own limits leave it (RLIMIT_DATA,
                                  RLIMIT_AS: what is mapped, touched or not); 0: no limit;
                                  BASE_UNKNOWN */
} base_system;

/* Cannot fail, and takes nothing from the allocator: what the system does not say is "", 0 or
 * BASE_UNKNOWN. */
void base_system_read(base_system *out);

#endif
