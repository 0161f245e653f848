/* The machine as this process sees it: processors, memory and its limits. Linux's own files. */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct base_system {
    char cpu[128];    /* model name, "" where the system does not say */
    int cpus;         /* logical processors that this process may run on, at least 1 */
    double cpu_quota; /* processors' worth of time that a control group allows; 0: no quota */
    uint64_t memory;  /* bytes of memory in the machine */
    uint64_t memory_available; /* bytes that new work can take without swapping */
    uint64_t memory_limit;     /* the least of the control groups' limits; 0: none below `memory` */
    uint64_t memory_left;      /* the least that such a limit leaves: all of it but what processes
                                  hold and cannot be given back; 0 where there is no limit */
    uint64_t process_left;     /* the least that this process's own limits leave it (RLIMIT_DATA,
                                  RLIMIT_AS: what is mapped, touched or not); 0: no limit */
} base_system;

/* Cannot fail: what the system does not say is 0 or "". */
void base_system_read(base_system *out);

/* The first line of a small file, without its newline; false where it cannot be read. */
bool base_read_line(const char *path, char *out, size_t size);

#endif
